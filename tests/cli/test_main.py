"""The command line as an impatient user meets it: one sentence and status 2, or what was asked for."""

import contextlib
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from twofold.cli import COMMANDS, main

TINY = [
    "--width",
    "2",
    "--batch-size",
    "16",
    "--precision",
    "float32",
    "--projector.hidden",
    "8",
    "--projector.dim",
    "4",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", "--steps", "3", "--out", str(out), *TINY]) == 0
    return out


@pytest.fixture
def vectors(tmp_path):
    file = tmp_path / "x.npy"
    np.save(file, np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32))
    return file


def answer(capsys, *words):
    """Run a command that is to succeed, and read the JSON that it prints on standard output."""
    capsys.readouterr()
    assert main(list(words)) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_help_lists_every_command(words, capsys):
    assert main(words) == 0
    said = capsys.readouterr().out
    assert all(f"  {command} " in said for command in COMMANDS)
    assert "examples:" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command, capsys):
    with contextlib.suppress(SystemExit):
        assert main([command, "--help"]) == 0
    said = capsys.readouterr().out
    assert "examples:" in said
    assert f"twofold {command}" in said


def test_help_of_train_shows_the_flags_of_the_chosen_method(capsys):
    main(["train", "--method", "byol", "--predictor", "linear", "--help"])
    said = capsys.readouterr().out
    assert "--predictor.bias" in said
    assert "--target.decay" in said
    assert "--predictor.hidden" not in said


def test_the_version_is_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("twofold 0.")


MISTAKES = [
    (["trian"], "unknown command 'trian', .*did you mean 'train'"),
    (["--jsn"], "'--jsn' stands before any command"),
    (["train", "--metod", "byol"], "unknown flag '--metod'; did you mean '--method'"),
    (["train", "--method", "boyl"], "unknown method 'boyl', .*did you mean 'byol'"),
    (["train", "--data", "cifar11"], "unknown data 'cifar11', .*did you mean 'cifar10'"),
    (["train", "--data", "./nowhere"], "nowhere"),
    (["train", "--encoder", "resnet19"], "unknown encoder 'resnet19', .*did you mean 'resnet18'"),
    (["train", "--lr", "-1"], "lr must be greater than 0, not '-1'"),
    (["train", "--lr", "fast"], "lr must be a valid number, .*not 'fast'"),
    (["train", "--lr"], "the flag --lr needs a value"),
    (["train", "--lr", "1", "--lr", "2"], "the flag --lr is given twice"),
    (["train", "--epochs", "1", "--steps", "1"], "^twofold: give either epochs .* or steps .*, not both$"),
    (["train", "--batch-size", "100000"], "a batch of 100000 is larger than the data"),
    (["train", "--method", "byol", "--target.dekay", "1"], "setting of target ema 'dekay', .*did you mean 'decay'"),
    (["train", "--predictor.kind", "liner"], "unknown predictor 'liner', .*did you mean 'linear'"),
    (["train", "--out", "1", "2"], "--out takes one value"),
    (["train", "--out.x", "y"], "--out takes one value"),
    (["train", "--data", "5", "6"], "--data takes one value"),
    (["train", "--lr", "inf"], "lr must be a finite number"),
    (["train", "--predictor", "None", "--predictor.hidden", "3"], "does not fit --predictor"),
    (["train", "--projector.dim", "1000000000000"], "projector.dim must be less than or equal to 65536"),
    (["train", "byol"], "'byol' is no flag"),
    (["train", "--resume"], "resuming needs the run's folder"),
    (["train", "--resume", "--out", "nowhere"], "there is no run in nowhere"),
    (["train", "--config", "nowhere.yaml"], "the settings nowhere.yaml cannot be read"),
    (["train", "--out", "/dev/null/run", "--steps", "1", *TINY], "cannot be made"),
    (["evaluate"], "the following arguments are required: RUN"),
    (["evaluate", "nowhere"], "there is no run in nowhere"),
    (["evaluate", "nowhere", "--checkpoint", "worst"], "invalid choice: 'worst'"),
    (["embed", "nowhere", "--out", "z.csv"], "written to .npy, .npz, .parquet, not 'z.csv'"),
    (["embed", "nowhere", "--out", "no/where/z.npy"], "the folder 'no/where' for z.npy"),
    (["report", "nowhere"], "there is no run in nowhere"),
    (["runs", "nowhere"], "there is no folder 'nowhere'"),
    (["methods", "--jsn"], "unrecognized arguments: --jsn; did you mean '--json'"),
    (["bench", "vews"], "unknown benchmark 'vews', .*did you mean 'views'"),
    (["data", "fetch", "cifar11"], "did you mean 'cifar10'"),
    (["demo", "--steps", "many"], "invalid int value: 'many'"),
    (["demo", "--steps", "0"], "steps must be greater than or equal to 1, not 0"),
]


@pytest.mark.parametrize(("words", "sentence"), MISTAKES, ids=lambda it: " ".join(it) if isinstance(it, list) else "")
def test_a_mistake_is_one_sentence_status_2_and_nothing_written(words, sentence, capsys, in_empty_folder):
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    last = said.err.strip().splitlines()[-1]
    assert last.startswith("twofold: ")
    assert sum(line.startswith("twofold: ") for line in said.err.splitlines()) == 1
    assert re.search(sentence, last), last
    assert "Traceback" not in said.err
    assert not list(in_empty_folder.iterdir())


def test_train_prints_numbers_for_people_and_for_machines(run, capsys, in_empty_folder):
    document = answer(capsys, "train", "--steps", "2", "--out", "again", "--json", *TINY)
    assert document["folder"] == "again"
    assert document["settings"]["method"] == "simclr"
    assert 0 <= document["evaluation"]["accuracy"]["knn"] <= 1
    main(["evaluate", str(run)])
    said = capsys.readouterr().out
    assert "raw samples" in said
    assert "untrained encoder" in said
    assert "chance" in said


def test_a_run_can_be_repeated_from_its_settings(run, capsys, in_empty_folder):
    document = answer(capsys, "train", "--config", str(run / "settings.yaml"), "--out", "again", "--json")
    assert (in_empty_folder / "again" / "settings.yaml").read_text() == (run / "settings.yaml").read_text()
    stored = json.loads((run / "evaluation.json").read_text())
    assert document["evaluation"]["accuracy"] == stored["accuracy"]


def test_flags_lie_over_the_settings_of_a_file(run, capsys, in_empty_folder):
    words = ["--config", str(run / "settings.yaml"), "--method", "byol", "--target.decay", "0.5", "--out", "again"]
    settings = answer(capsys, "train", *words, "--json")["settings"]
    assert settings["method"] == "byol"
    assert settings["predictor"]["kind"] == "mlp"
    assert settings["target"]["decay"] == 0.5
    assert settings["width"] == 2


def test_resuming_a_run_that_is_done_changes_nothing(run, capsys):
    before = (run / "encoder.safetensors").read_bytes()
    assert answer(capsys, "train", "--resume", "--out", str(run), "--json")["folder"] == str(run)
    assert (run / "encoder.safetensors").read_bytes() == before
    assert main(["train", "--resume", "--out", str(run), "--lr", "0.5"]) == 2
    assert "was started with lr" in capsys.readouterr().err


def test_the_runs_on_this_disk_are_listed(run, capsys):
    (found,) = answer(capsys, "runs", str(run.parent), "--json")
    assert (found["method"], found["state"], found["step"]) == ("simclr", "done", 3)
    assert main(["runs", str(run.parent)]) == 0
    assert "simclr" in capsys.readouterr().out


def test_a_report_is_one_page(run, capsys, tmp_path):
    page = tmp_path / "page.html"
    assert answer(capsys, "report", str(run), "--control", str(run), "--out", str(page), "--json") == {
        "page": str(page)
    }
    assert page.read_text().lstrip().startswith("<!")
    assert main(["report", str(run)]) == 0
    assert (run / "report.html").is_file()


def test_the_methods_are_listed(capsys):
    rows = {row["name"]: row for row in answer(capsys, "methods", "--json")}
    assert rows["byol"]["predictor"] == {"kind": "mlp", "hidden": 512}
    assert rows["alpha-cl-inverse"]["objective"]["importance"] == {"kind": "inverse", "temperature": 0.5, "gamma": 2.0}
    assert all(row["paper"] and row["place"] for row in rows.values())
    assert main(["methods"]) == 0
    assert "pair-weighted(importance=inverse)" in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["npy", "npz", "parquet"])
def test_embeddings_are_written_in_order_and_with_names(run, ending, capsys, tmp_path):
    import pyarrow.parquet as pq

    import twofold

    finished = twofold.load(run)
    split = finished.source.test
    expected = finished.embed(split.samples)
    out = tmp_path / f"z.{ending}"
    document = answer(capsys, "embed", str(run), "--out", str(out), "--json")
    assert document == {"file": str(out), "samples": len(split), "dim": 16}
    labels = None
    if ending == "npy":
        found = np.load(out, allow_pickle=False)
    elif ending == "npz":
        with np.load(out, allow_pickle=False) as arrays:
            found, labels = arrays["z"], arrays["labels"]
    else:
        table = pq.read_table(out)
        found, labels = np.stack(table["embedding"].to_numpy()), table["label"].to_numpy()
    np.testing.assert_array_equal(found, expected)
    assert labels is None or np.array_equal(labels, split.labels)
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_projections_can_be_written_too(run, capsys, tmp_path):
    words = ["embed", str(run), "--projections", "--out", str(tmp_path / "z.npy"), "--json"]
    assert answer(capsys, *words)["dim"] == 4


def test_files_and_folders_are_embedded_whole(vectors, capsys, tmp_path):
    out = tmp_path / "run"
    assert main(["train", "--data", str(vectors), "--steps", "1", "--out", str(out), *TINY]) == 0
    document = answer(capsys, "embed", str(out), "--out", str(tmp_path / "z.parquet"), "--json")
    assert document["samples"] == 60
    shutil.rmtree(out / "checkpoint")
    assert main(["embed", str(out), "--out", str(tmp_path / "z.npy")]) == 2
    assert "has no 'last' checkpoint yet" in capsys.readouterr().err


def test_a_reader_who_leaves_early_is_no_error():
    words = f"{sys.executable} -m twofold --help | head -c 1"
    done = subprocess.run(words, shell=True, capture_output=True, text=True)
    assert done.stderr == ""
