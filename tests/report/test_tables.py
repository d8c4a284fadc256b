import re
from dataclasses import replace
from html import unescape

from twofold.records import Accuracy, RunRecord
from twofold.report.markup import Markup
from twofold.report.tables import accuracy_table, environment_table, flat, geometry_table, settings_table


def cells(table: Markup | None) -> list[list[str]]:
    assert table is not None
    rows = re.findall(r"<tr>(.*?)</tr>", table.html)
    return [[unescape(re.sub(r"<.*?>", "", cell)) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows]


def test_accuracies_stand_beside_control_baselines_and_chance(run: RunRecord, control: RunRecord) -> None:
    assert cells(accuracy_table(run, control)) == [
        ["accuracy of", "kNN", "linear probe", "class mean"],
        ["this run (simclr)", "88.0 %", "90.0 %", "86.0 %"],
        ["the control (no-predictor)", "11.0 %", "13.0 %", "9.0 %"],
        ["the raw samples", "45.0 %", "–", "40.0 %"],
        ["the untrained encoder", "18.0 %", "–", "20.0 %"],
        ["chance (always the largest class)", "10.0 %", "10.0 %", "10.0 %"],
    ]


def test_bars_have_the_length_of_their_share(run: RunRecord) -> None:
    drawn = accuracy_table(run)
    assert drawn is not None
    assert re.search(r'style="--share:88\.0%">88\.0 %<', drawn.html)


def test_without_labels_there_are_no_accuracies(run: RunRecord, control: RunRecord) -> None:
    assert run.evaluation is not None
    unlabelled = replace(run, evaluation=replace(run.evaluation, accuracy=None))
    assert accuracy_table(unlabelled, control) is None
    assert accuracy_table(replace(run, evaluation=None), control) is None


def test_a_baseline_with_another_name_keeps_it(run: RunRecord) -> None:
    assert run.evaluation is not None
    evaluation = replace(run.evaluation, baselines={"pca <2>": Accuracy(float("nan"))}, chance=None)
    assert cells(accuracy_table(replace(run, evaluation=evaluation)))[2:] == [["pca <2>", "–", "–", "–"]]


def test_shapes_are_compared_without_labels(run: RunRecord, control: RunRecord) -> None:
    rows = cells(geometry_table(run, control))
    assert [row[0] for row in rows[1:]] == [
        "this run, features",
        "this run, projections",
        "the control, features",
        "the control, projections",
    ]
    assert rows[1][1:] == ["5.5", "32", "0.25", "-2.5", "2"]


def test_settings_are_listed_under_their_flags(run: RunRecord) -> None:
    assert ["objective.temperature", "0.1"] in cells(settings_table(run))
    assert ["method", "simclr"] in cells(settings_table(run))


def test_settings_of_the_control_are_listed_where_they_differ(run: RunRecord, control: RunRecord) -> None:
    rows = {row[0]: row[1:] for row in cells(settings_table(run, control))}
    assert rows["method"] == ["simclr", "≠ no-predictor"]
    assert rows["seed"] == ["0", ""]
    assert rows["objective.temperature"] == ["0.1", "≠ –"]
    assert rows["objective.normalised"] == ["–", "≠ true"]


def test_environment_is_listed(run: RunRecord) -> None:
    assert cells(environment_table(run))[1:] == [["python", "3.11"], ["devices", "[]"]]


def test_nested_values_are_flat_and_written_as_in_json() -> None:
    nested = {"a": {"b": {"c": 1e-6}, "d": {}}, "e": None, "f": [0.5, 0.9], "g": "text", "h": True}
    assert dict(flat(nested)) == {
        "a.b.c": "1e-06",
        "a.d": "{}",
        "e": "null",
        "f": "[0.5, 0.9]",
        "g": "text",
        "h": "true",
    }
