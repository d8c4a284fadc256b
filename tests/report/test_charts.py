import json
import math
from dataclasses import replace

import plotly.graph_objects as go
import pytest

from twofold.records import Evaluation, Geometry, RunRecord
from twofold.report.charts import FLOOR, Chart, curve_charts, plain_text, spectrum_charts


def all_charts(run: RunRecord, control: RunRecord | None = None) -> list[Chart]:
    return [*curve_charts(run, control), *spectrum_charts(run, control)]


def evaluation(run: RunRecord) -> Evaluation:
    assert run.evaluation is not None
    return run.evaluation


def test_every_figure_has_only_what_plotly_knows(run: RunRecord, control: RunRecord) -> None:
    for chart in all_charts(run, control):
        go.Figure(chart.figure)


def test_plotly_refuses_a_misspelled_property(run: RunRecord) -> None:
    figure = curve_charts(run)[0].figure
    figure["layout"]["xaxis"]["gridcolour"] = "red"
    with pytest.raises(ValueError, match="gridcolour"):
        go.Figure(figure)


def test_loss_comes_first_and_the_learning_rate_last(run: RunRecord) -> None:
    titles = [chart.title for chart in curve_charts(run)]
    assert titles == ["Loss", "kNN accuracy", "Effective rank", "cosine", "Learning rate"]


def test_run_and_control_differ_in_more_than_colour(run: RunRecord, control: RunRecord) -> None:
    for chart in all_charts(run, control):
        traces = [trace for trace in chart.figure["data"] if "dash" in trace["line"]]
        assert [trace["name"] for trace in traces] == ["simclr", "no-predictor (control)"]
        assert len({trace["line"]["dash"] for trace in traces}) == 2
        assert len({trace["marker"]["symbol"] for trace in traces}) == 2


def test_accuracy_is_drawn_beside_chance_and_baselines(run: RunRecord) -> None:
    lines = curve_charts(run)[1].figure["layout"]["shapes"]
    heights = {line["label"]["text"]: line["y0"] for line in lines}
    assert heights == {
        "chance, 10.0 %": 0.1,
        "the raw samples, 45.0 %": 0.45,
        "the untrained encoder, 18.0 %": 0.18,
    }
    assert all(line["y0"] == line["y1"] for line in lines)


def test_what_the_run_logged_is_drawn_with_the_control_where_it_logged_the_same(
    run: RunRecord, control: RunRecord
) -> None:
    other = replace(control, metrics=tuple({"step": row["step"], "forth": 1.0} for row in control.metrics))
    charts = curve_charts(run, other)
    assert "forth" not in [chart.title for chart in charts]
    assert {trace["name"] for chart in charts for trace in chart.figure["data"]} == {"simclr"}


def test_a_divergence_is_marked_where_it_happened(run: RunRecord) -> None:
    rows = tuple({**row, "loss": math.nan} if row["step"] > 120 else row for row in run.metrics)
    chart = curve_charts(replace(run, metrics=rows))[0]
    (line,) = chart.figure["layout"]["shapes"]
    assert line["x0"] == line["x1"] == 121
    assert "step 121" in chart.note
    assert json.dumps(chart.figure, allow_nan=False)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_short_logs_are_drawn_as_they_are(run: RunRecord, rows: int) -> None:
    charts = curve_charts(replace(run, metrics=run.metrics[:rows]))
    assert len(charts) == (3 if rows else 0)
    for chart in charts:
        (trace,) = chart.figure["data"]
        assert trace["x"] == list(range(1, rows + 1))
        assert "markers" in trace["mode"]


def test_dense_curves_show_every_value_behind_their_mean(run: RunRecord) -> None:
    faint, line = curve_charts(run)[0].figure["data"]
    assert faint["y"] == [float(f"{row['loss']:.6g}") for row in run.metrics]
    assert faint["opacity"] < 1
    assert max(line["y"]) < max(faint["y"])


def test_a_learning_rate_is_never_averaged(run: RunRecord) -> None:
    (trace,) = curve_charts(run)[-1].figure["data"]
    assert trace["y"] == [float(f"{row['lr']:.6g}") for row in run.metrics]


def test_steps_are_exact_however_many(run: RunRecord) -> None:
    rows = tuple({"step": 12_345_670.0 + i, "loss": 1.0} for i in range(3))
    (trace,) = curve_charts(replace(run, metrics=rows))[0].figure["data"]
    assert trace["x"] == [12_345_670, 12_345_671, 12_345_672]


def test_spectra_are_shares_of_the_largest_eigenvalue(run: RunRecord) -> None:
    features, projections = spectrum_charts(run)
    (trace,) = features.figure["data"]
    expected = [0.8**i for i in range(30)]
    assert trace["y"][:30] == pytest.approx(expected, rel=1e-5)
    assert trace["customdata"][0] == 2.0
    assert trace["y"][30:] == [None, None]
    assert features.figure["layout"]["yaxis"]["type"] == "log"
    assert "2 eigenvalues" in features.note
    assert projections.title == "Projections"


def test_eigenvalues_below_the_floor_are_counted(run: RunRecord) -> None:
    cloud = Geometry(9, 3, 1.0, 0.5, (1.0, 2 * FLOOR, FLOOR / 2))
    chart = spectrum_charts(replace(run, evaluation=replace(evaluation(run), features=cloud)))[0]
    assert chart.figure["data"][0]["y"] == [1.0, 2 * FLOOR, None]
    assert "1 eigenvalues below" in chart.note


@pytest.mark.parametrize(
    ("spectrum", "words"),
    [((0.0, 0.0), "zero"), ((), "zero"), ((math.nan, math.nan), "not numbers")],
)
def test_a_spectrum_without_variance_is_said_in_words(run: RunRecord, spectrum: tuple[float, ...], words: str) -> None:
    cloud = Geometry(9, 2, 0.0, 0.0, spectrum)
    chart = spectrum_charts(replace(run, evaluation=replace(evaluation(run), features=cloud)))[0]
    assert words in chart.note
    assert set(chart.figure["data"][0]["y"]) <= {None}
    assert json.dumps(chart.figure, allow_nan=False)


def test_without_evaluation_there_is_no_spectrum(run: RunRecord, control: RunRecord) -> None:
    assert spectrum_charts(replace(run, evaluation=None), control) == []
    assert len(spectrum_charts(run, replace(control, evaluation=None))[0].figure["data"]) == 1


def test_names_are_no_markup_for_plotly() -> None:
    assert plain_text("<b>\x00 & 'x'") == "&lt;b&gt;\\x00 &amp; 'x'"
    assert plain_text("x" * 100) == "x" * 39 + "…"
