import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.records import RunRecord
from twofold.report.curves import (
    STRETCHES,
    Curve,
    breakdown,
    curve,
    envelope,
    quantities,
    smoothed,
    smoothing,
    sparse,
    usual_range,
)

moderate = st.floats(-1e6, 1e6) | st.just(math.nan)
wild = st.floats(allow_nan=False, allow_infinity=False) | st.just(math.nan)


def made(values: list[float]) -> Curve:
    return Curve(np.arange(1.0, len(values) + 1), np.array(values, dtype=np.float64))


def naive_mean(values: list[float], row: int, width: int) -> float:
    if math.isnan(values[row]):
        return math.nan
    near = values[max(0, row - width // 2) : row + width // 2 + 1]
    finite = [value for value in near if not math.isnan(value)]
    return math.fsum(finite) / len(finite)


@given(st.lists(moderate, min_size=7, max_size=40), st.sampled_from([1, 3, 7]))
def test_smoothing_is_the_mean_over_a_centred_window(values: list[float], width: int) -> None:
    expected = [naive_mean(values, row, width) for row in range(len(values))]
    np.testing.assert_allclose(smoothed(made(values), width).values, expected, rtol=1e-9, atol=1e-8)


@given(st.integers(0, 10_000))
def test_windows_are_odd_and_no_longer_than_a_twentieth(points: int) -> None:
    width = smoothing(points)
    assert width % 2 == 1
    assert width <= max(1, points / 20)


@pytest.mark.parametrize("points", [0, 1, STRETCHES, 2 * STRETCHES + 1, 10_000])
def test_thinned_curves_are_short_and_keep_their_ends_and_extremes(points: int) -> None:
    whole = made(list(np.random.default_rng(points).normal(size=points)))
    few, tall = sparse(whole), envelope(whole)
    assert len(few) <= STRETCHES + 1
    assert len(tall) <= 2 * STRETCHES
    if points:
        assert few.steps[[0, -1]].tolist() == [1.0, float(points)]
        assert tall.values.min() == whole.values.min()
        assert tall.values.max() == whole.values.max()
    for thin in (few, tall):
        assert (np.diff(thin.steps) > 0).all()
        np.testing.assert_array_equal(whole.values[thin.steps.astype(int) - 1], thin.values)


def test_a_single_spike_survives_and_every_nth_point_would_lose_it() -> None:
    values = [0.0] * 10_000
    values[4_321] = 1.0
    assert envelope(made(values)).values.max() == 1.0
    assert sparse(made(values)).values.max() == 0.0


def test_a_stretch_of_nothing_stays_a_gap() -> None:
    values = [1.0] * 5_000
    values[2_000:3_000] = [math.nan] * 1_000
    assert np.isnan(envelope(made(values)).values).any()


def test_curves_collect_what_was_logged_and_leave_gaps(run: RunRecord) -> None:
    rows = ({"step": 1.0, "loss": 2.0}, {"step": 2.0, "loss": math.inf, "knn": 0.5}, {"step": 3.0, "epoch": 1.0})
    record = replace(run, metrics=rows)
    assert quantities(record) == ["loss", "knn"]
    loss = curve(record, "loss")
    assert loss.steps.tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(loss.values, [2.0, math.nan])
    assert len(curve(record, "lr")) == 0


def test_a_breakdown_is_the_first_loss_that_is_no_number(run: RunRecord) -> None:
    rows = ({"step": 3.0, "loss": 1.0}, {"step": 4.0, "loss": math.nan}, {"step": 5.0, "loss": math.inf})
    assert breakdown(replace(run, metrics=rows)) == 4
    assert breakdown(run) is None
    assert breakdown(replace(run, metrics=())) is None


def test_a_burst_is_left_out_of_the_axis_and_an_ordinary_start_is_not() -> None:
    ordinary = [1.0 + 5.0 * math.exp(-step / 30) for step in range(300)]
    assert usual_range(made(ordinary)) is None
    shown = usual_range(made([*ordinary, 1e4, 1e9]))
    assert shown is not None
    assert shown[0] < min(ordinary)
    assert max(ordinary) < shown[1] < 10


def test_an_axis_needs_values_that_differ() -> None:
    assert usual_range(made([])) is None
    assert usual_range(made([1.0] * 50)) is None


@given(st.lists(wild, min_size=1, max_size=40))
def test_the_widest_numbers_do_no_harm(values: list[float]) -> None:
    drawn = made(values)
    shown = usual_range(drawn)
    assert shown is None or all(math.isfinite(end) for end in shown)
    assert not np.isinf(smoothed(drawn, 1).values).any()
