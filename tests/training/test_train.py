"""Training from Python: what comes out, what is refused, and what a run that goes wrong leaves behind."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import twofold
from twofold.errors import BadInput, Diverged, Failed
from twofold.networks import EMA
from twofold.objectives import BYOL
from twofold.predictors import Linear
from twofold.records import Loss
from twofold.training import Quiet, checkpoint
from twofold.training.folder import RunFolder

SMALL = {
    "width": 2,
    "batch_size": 16,
    "precision": "float32",
    "projector": {"hidden": 8, "dim": 4},
    "observer": Quiet(),
}


def images(n=60, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, 3, 8, 8), dtype=np.uint8)


def vectors(n=60):
    return np.random.default_rng(0).normal(size=(n, 5)).astype(np.float32)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    return twofold.train(method="byol", steps=6, watch_every=3, out=out, **SMALL)


def test_a_run_leaves_what_the_interface_promises(run):
    names = {path.name for path in run.folder.path.iterdir()}
    assert {"settings.yaml", "metrics.jsonl", "checkpoint", "encoder.safetensors", "environment.json"} <= names
    assert run.record.state == "done"
    assert [row["step"] for row in run.record.metrics if "loss" in row] == [1, 2, 3, 4, 5, 6]
    looks = [row for row in run.record.metrics if "knn" in row]
    assert [row["step"] for row in looks] == [3, 6]
    assert all(0 <= row["knn"] <= 1 <= row["effective_rank"] for row in looks)


def test_the_encoder_file_is_the_encoder(run):
    stored = load_file(run.folder.encoder_file)
    assert stored.keys() == run.encoder.state_dict().keys()
    assert all(torch.equal(stored[name], weight) for name, weight in run.encoder.state_dict().items())


def test_everything_is_measured_on_samples_that_no_training_saw(run):
    measured = run.evaluation
    assert measured.split == "test"
    assert measured.samples == len(run.source.test)
    assert set(measured.baselines) == {"raw", "untrained"}
    assert 0.05 < measured.chance < 0.2
    assert measured.classes == 10
    assert measured.features.alignment is not None
    assert measured.accuracy.probe is not None


def test_a_run_is_opened_again_and_embeds_the_same(run):
    again = twofold.load(run.folder.path)
    samples = run.source.test.samples[:7]
    embedded = run.embed(samples)
    assert embedded.shape == (7, 16)
    assert np.array_equal(embedded, again.embed(samples))
    assert again._source is None  # embedding needs the preparation, not the data


def test_embedding_other_samples_than_it_was_trained_on_is_refused(run):
    with pytest.raises(BadInput, match=r"takes samples of shape \(1, 24, 24\), not \(1, 8, 8\)"):
        run.embed(np.zeros((2, 1, 8, 8), np.uint8))


def test_one_seed_gives_one_run(run, tmp_path):
    again = twofold.train(method="byol", steps=6, watch_every=3, out=tmp_path / "run", **SMALL)
    other = twofold.train(method="byol", steps=6, watch_every=3, out=tmp_path / "other", seed=1, **SMALL)
    assert all(torch.equal(a, b) for a, b in zip(run.encoder.parameters(), again.encoder.parameters(), strict=True))
    assert not torch.equal(next(run.encoder.parameters()), next(other.encoder.parameters()))


def test_training_leaves_the_users_generators_alone(tmp_path):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    twofold.train(vectors(), steps=1, out=tmp_path / "run", **SMALL)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("method", [row.name for row in twofold.methods()])
def test_every_method_trains_on_vectors_and_on_images(method, tmp_path):
    for name, data in (("vectors", vectors()), ("images", images())):
        made = twofold.train(data, method=method, steps=2, out=tmp_path / name, **SMALL)
        assert made.evaluation.accuracy is None
        assert (made.record.gallery is None) == (name == "vectors")


@pytest.mark.parametrize("choice", [{"optimizer": kind} for kind in ("sgd", "adam", "adamw", "lars")] + [{"clip": 0.1}])
def test_every_optimiser_moves_the_weights(choice, tmp_path):
    made = twofold.train(vectors(), steps=2, warmup=0.0, out=tmp_path / "run", **choice, **SMALL)
    start = made.plan.encoder()
    assert any(not torch.equal(a, b) for a, b in zip(start.parameters(), made.encoder.parameters(), strict=True))


@pytest.mark.parametrize("row", twofold.methods(), ids=lambda row: row.name)
def test_every_row_of_the_zoo_trains_and_is_found_again(row, tmp_path):
    made = twofold.train(images(), method=row.name, steps=3, warmup=0.0, out=tmp_path / "run", **SMALL)
    losses = [step["loss"] for step in made.record.metrics if "loss" in step]
    assert len(losses) == 3
    assert np.isfinite(losses).all()
    start = made.plan.encoder()
    assert any(not torch.equal(a, b) for a, b in zip(start.parameters(), made.encoder.parameters(), strict=True))
    again = twofold.load(tmp_path / "run")
    assert again.settings.objective == row.objective
    assert np.array_equal(again.embed(images()), made.embed(images()))


def test_bf16_trains(tmp_path):
    made = twofold.train(images(), steps=2, out=tmp_path / "run", **{**SMALL, "precision": "bf16"})
    assert made.evaluation.verdict


def test_any_module_is_an_encoder_and_stays_as_it_was(tmp_path):
    mine = nn.Sequential(nn.Flatten(), nn.Linear(192, 6))
    before = mine[1].weight.clone()
    made = twofold.train(images(), encoder=mine, steps=3, warmup=0.0, out=tmp_path / "run", **SMALL)
    assert torch.equal(mine[1].weight, before)
    assert not torch.equal(made.encoder[1].weight, before)
    with pytest.raises(BadInput, match="an encoder of your own"):
        twofold.load(tmp_path / "run")
    again = twofold.load(tmp_path / "run", encoder=mine)
    assert np.array_equal(again.embed(images()), made.embed(images()))


def test_a_folder_is_found_where_none_is_wished(in_empty_folder):
    first = twofold.train(vectors(), steps=1, **SMALL)
    second = twofold.train(vectors(), steps=1, **SMALL)
    assert str(first.folder.path) == "runs/simclr-vectors-1"
    assert str(second.folder.path) == "runs/simclr-vectors-2"
    assert [str(path) for path, _ in twofold.runs()] == ["runs/simclr-vectors-1", "runs/simclr-vectors-2"]


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        ({"batch_size": 61}, "a batch of 61 is larger than the data"),
        ({"encoder": "resnet18"}, "these samples are vectors"),
        ({"encoder": nn.Identity(), "projector": "none"}, "has no weights to train"),
        ({"views": "cifar"}, "views do not fit"),
        ({"method": "simclear"}, "did you mean 'simclr'"),
        ({"colour": "red"}, "unknown setting 'colour'"),
        ({"resume": True}, "there is no run in"),
    ],
)
def test_what_is_refused_leaves_nothing_behind(tmp_path, choices, sentence):
    with pytest.raises(BadInput, match=sentence):
        twofold.train(vectors(), **{**SMALL, "steps": 1, "out": tmp_path / "run", **choices})
    assert not (tmp_path / "run").exists()


def test_a_folder_with_a_run_or_with_something_else_is_not_touched(run, tmp_path):
    with pytest.raises(BadInput, match=r"already holds a run \(step 6\): go on with --resume"):
        twofold.train(vectors(), out=run.folder.path, **SMALL)
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(BadInput, match="is already there and is no run"):
        twofold.train(vectors(), out=tmp_path, **SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_output_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be made: Not a directory"):
        twofold.train(vectors(), steps=1, out=tmp_path / "file" / "run", **SMALL)


def test_resuming_with_other_settings_is_refused_and_with_the_same_is_not(run):
    given = {**SMALL, "method": "byol", "out": run.folder.path, "resume": True}
    with pytest.raises(BadInput, match=r"was started with lr 0\.06, not 0\.5"):
        twofold.train(**given, steps=6, lr=0.5)
    assert twofold.train(**given, steps=6, watch_every=3).folder.path == run.folder.path
    assert twofold.train(out=run.folder.path, resume=True, observer=Quiet()).record.step == 6


class Bomb:
    """An objective that is fine for some calls, and then not a number."""

    def __init__(self, fuse: int) -> None:
        self.fuse = fuse

    def __call__(self, pair):
        self.fuse -= 1
        value = pair.online[0].square().mean()
        return Loss(value if self.fuse > 0 else value * float("nan"))


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_last_good_checkpoint(tmp_path, monkeypatch):
    from twofold.training import student

    build = student.Student.__init__

    def with_bomb(self, dual, objective):
        build(self, dual, Bomb(fuse=5))

    monkeypatch.setattr(student.Student, "__init__", with_bomb)
    out = tmp_path / "run"
    with pytest.raises(Diverged, match=r"the loss is nan at step 5 .*the checkpoint of step 4 is kept.*--lr"):
        twofold.train(vectors(), steps=9, checkpoint_seconds=0, out=out, **SMALL)
    assert checkpoint.step_of(out / "checkpoint") == 4
    weights, _ = checkpoint.load(out / "checkpoint")
    assert all(weight.isfinite().all() for weight in weights.values())
    assert RunFolder(out).record().state == "diverged"


def test_weights_that_are_no_numbers_are_never_a_checkpoint(tmp_path):
    with pytest.raises(Diverged, match=r"after step|the loss is"):
        twofold.train(vectors(), steps=50, lr=1e30, warmup=0.0, optimizer="sgd", out=tmp_path / "run", **SMALL)
    kept = tmp_path / "run" / "checkpoint"
    if checkpoint.exists(kept):
        weights, _ = checkpoint.load(kept)
        assert all(weight.isfinite().all() for weight in weights.values())


def test_a_norm_that_overflows_is_a_divergence_and_no_traceback(tmp_path):
    with pytest.raises(Diverged, match="learning rate of 1e"):
        twofold.train(
            vectors(), steps=30, lr=1e30, clip=1e30, warmup=0.0, optimizer="sgd", out=tmp_path / "run", **SMALL
        )


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(5, 5, bias=False)
        self.other = nn.Linear(5, 5, bias=False)
        self.other.weight = self.one.weight

    def forward(self, x):
        return self.other(self.one(x).relu())


def test_tied_weights_stay_tied(tmp_path):
    made = twofold.train(vectors(), encoder=Tied(), steps=2, out=tmp_path / "run", **SMALL)
    assert made.encoder.one.weight is made.encoder.other.weight
    again = twofold.load(tmp_path / "run", encoder=Tied())
    assert np.array_equal(again.embed(vectors()), made.embed(vectors()))


def test_an_encoder_that_comes_in_evaluation_mode_is_trained_all_the_same(tmp_path):
    mine = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)).eval()
    made = twofold.train(vectors(), encoder=mine, steps=3, out=tmp_path / "run", **SMALL)
    assert made.encoder[1].num_batches_tracked == 6
    assert mine[1].num_batches_tracked == 0


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros((2, 24, 24, 1), np.uint8),
        np.zeros((1, 24, 24), np.uint8),
        np.zeros((2, 1, 24, 24), np.float32),
        np.zeros((0, 1, 24, 24), np.uint8),
        np.zeros((2, 576), np.float32),
    ],
)
def test_samples_that_are_no_such_images_are_refused(run, samples):
    with pytest.raises(BadInput, match=r"takes bytes \(uint8\) of shape \(n, 1, height, width\), not torch"):
        run.embed(samples)


def test_vectors_of_another_dimension_or_with_holes_are_refused(tmp_path):
    made = twofold.train(vectors(), steps=1, out=tmp_path / "run", **SMALL)
    with pytest.raises(BadInput, match=r"takes numbers of shape \(n, 5\)"):
        made.embed(np.zeros((3, 1), np.float32))
    with pytest.raises(BadInput, match="not finite numbers"):
        made.embed(np.full((3, 5), np.nan, np.float32))


def test_data_of_ones_own_must_be_given_again(tmp_path):
    made = twofold.train(vectors(), steps=1, out=tmp_path / "run", **SMALL)
    again = twofold.load(tmp_path / "run")
    assert np.array_equal(again.embed(vectors()), made.embed(vectors()))
    with pytest.raises(BadInput, match=r"trained on data of your own .*give them as data="):
        again.evaluate()
    assert twofold.load(tmp_path / "run", data=vectors()).evaluate() == made.evaluation


def test_a_run_does_not_go_on_with_other_data(tmp_path):
    given = {**SMALL, "steps": 3, "out": tmp_path / "run"}
    twofold.train(vectors(), **given)
    (tmp_path / "run" / "status.json").unlink()
    with pytest.raises(BadInput, match=r"was started with data|the data have changed"):
        twofold.train(vectors(90), resume=True, **given)


def test_a_file_is_found_again_from_another_folder(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", vectors())
    monkeypatch.chdir(tmp_path)
    twofold.train("x.npy", steps=1, out="run", **SMALL)
    monkeypatch.chdir("/")
    assert len(twofold.load(tmp_path / "run").source.pool) > 0


def test_a_method_of_ones_own_has_a_run_like_any_other(tmp_path):
    mine = twofold.Method("mine", BYOL(), Linear(), EMA(0.5))
    given = {**SMALL, "steps": 2, "out": tmp_path / "run"}
    twofold.train(vectors(), method=mine, **given)
    again = twofold.load(tmp_path / "run")
    assert (again.settings.method, again.settings.target) == ("mine", EMA(0.5))
    assert [record.settings["method"] for _, record in twofold.runs(tmp_path)] == ["mine"]


def test_evaluating_the_best_checkpoint_says_whose_it_is(run):
    best = twofold.load(run.folder.path, "best")
    assert best.step in (3, 6)
    assert best.evaluate().step == best.step
    run.evaluate()


def test_weights_that_do_not_fit_are_a_sentence(tmp_path):
    twofold.train(vectors(), encoder=nn.Linear(5, 4), steps=1, out=tmp_path / "run", **SMALL)
    with pytest.raises(Failed, match="do not fit the encoder"):
        twofold.load(tmp_path / "run", encoder=nn.Linear(5, 3))
