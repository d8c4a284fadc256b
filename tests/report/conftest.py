"""Records of a run that went well and of a control that collapsed, small but complete."""

import math

import numpy as np
import pytest

from twofold.records import Accuracy, Evaluation, Gallery, Geometry, RunRecord, Verdict

STEPS = 200


def _metrics(start: float, end: float) -> tuple[dict[str, float], ...]:
    rows: list[dict[str, float]] = []
    for step in range(1, STEPS + 1):
        loss = end + (start - end) * math.exp(-step / 40) + 0.1 * math.sin(17 * step)
        row = {"step": float(step), "loss": loss, "cosine": -loss, "lr": 1e-3 * (1 - step / STEPS)}
        rows.append(row | ({"knn": 0.1 + step / 400, "effective_rank": 2.0 + step / 10} if step % 50 == 0 else {}))
    return tuple(rows)


def _evaluation(accuracy: float, decay: float, verdict: Verdict) -> Evaluation:
    spectrum = (*(2.0 * decay**i for i in range(30)), 0.0, 0.0)
    cloud = Geometry(400, 32, 5.5, 0.5, spectrum, alignment=0.25, uniformity=-2.5)
    baselines = {"raw": Accuracy(0.45, class_mean=0.4), "untrained": Accuracy(0.18, class_mean=0.2)}
    found = Accuracy(accuracy, probe=accuracy + 0.02, class_mean=accuracy - 0.02)
    return Evaluation("digits", "test", STEPS, 400, cloud, cloud, verdict, found, baselines, chance=0.1, classes=10)


def _settings(method: str, objective: dict[str, object]) -> dict[str, object]:
    return {"method": method, "data": "digits", "encoder": "convnet", "objective": objective, "seed": 0}


@pytest.fixture
def gallery() -> Gallery:
    draw = np.random.default_rng(0)

    def pictures(*shape: int) -> np.ndarray:
        return draw.integers(0, 256, (*shape, 12, 10, 1), dtype=np.uint8)

    cosines = np.array([[0.99, 0.9, 0.81], [0.7, 0.6, 0.55]], dtype=np.float32)
    labels = (("cat", "dog", "cat"), ("dog", "dog", "dog"))
    return Gallery(pictures(4, 2), pictures(2), pictures(2, 3), cosines, ("cat", "dog"), labels)


@pytest.fixture
def run(gallery: Gallery) -> RunRecord:
    verdict = Verdict("alive", "It fills 5 of 32 directions.", ("effective rank 5.5",))
    return RunRecord(
        "first",
        "done",
        STEPS,
        STEPS,
        _settings("simclr", {"kind": "infonce", "temperature": 0.1}),
        {"python": "3.11", "devices": []},
        _metrics(5.0, 1.0),
        _evaluation(0.88, 0.8, verdict),
        gallery,
    )


@pytest.fixture
def control() -> RunRecord:
    verdict = Verdict("collapsed", "All samples have one embedding.")
    settings = _settings("no-predictor", {"kind": "byol", "normalised": True})
    evaluation = _evaluation(0.11, 0.3, verdict)
    return RunRecord("second", "done", STEPS, STEPS, settings, {}, _metrics(2.0, 0.0), evaluation)
