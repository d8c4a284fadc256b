import multiprocessing
import time
from pathlib import Path

import numpy as np
import pytest

from twofold.data import Preparation
from twofold.errors import BadInput, Failed
from twofold.records import Accuracy, Evaluation, Gallery, Geometry, Verdict
from twofold.training import as_mapping, runs, settings
from twofold.training import folder as run_folder
from twofold.training.folder import RunFolder, mapping_from_yaml, to_yaml


@pytest.fixture
def folder(tmp_path):
    made = RunFolder(tmp_path / "run")
    made.path.mkdir()
    made.begin(settings({"method": "byol"}), Preparation("image", (3, 8, 8), (0.1, 0.2, 0.3), (1.0, 2.0, 3.0)))
    return made


def evaluation():
    cloud = Geometry(samples=5, dim=2, effective_rank=1.5, spread=0.5, spectrum=(2.0, 1.0), alignment=0.1)
    return Evaluation(
        "digits", "test", 7, 5, cloud, cloud, Verdict("alive", "Yes."), Accuracy(0.5), {"raw": Accuracy(0.1)}
    )


def gallery(labelled=True):
    def pictures(*shape):
        return np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)

    labels = {"query_labels": ("a", "<b>"), "neighbour_labels": (("a", "a", "b"), ("b", "a", "a"))} if labelled else {}
    return Gallery(
        pictures(2, 2, 4, 4, 3), pictures(2, 4, 4, 3), pictures(2, 3, 4, 4, 3), np.ones((2, 3), np.float32), **labels
    )


def test_what_is_written_is_read(folder):
    folder.set_status("done", 7, 9)
    folder.append_metrics([{"step": 1, "loss": 0.5}, {"step": 2, "loss": float("nan")}])
    folder.write_evaluation(evaluation(), gallery())
    record = folder.record()
    assert record.settings == as_mapping(settings({"method": "byol"}))
    assert (record.state, record.step, record.steps) == ("done", 7, 9)
    assert record.metrics[0] == {"step": 1, "loss": 0.5}
    assert np.isnan(record.metrics[1]["loss"])
    assert record.evaluation == evaluation()
    assert np.array_equal(record.gallery.neighbours, gallery().neighbours)
    assert record.gallery.neighbour_labels == gallery().neighbour_labels
    assert folder.preparation().mean == (0.1, 0.2, 0.3)


def test_a_gallery_without_labels(folder):
    folder.write_evaluation(evaluation(), gallery(labelled=False))
    assert folder.record().gallery.query_labels == ()


def test_a_folder_that_has_only_begun_has_a_record(folder):
    record = folder.record()
    assert (record.state, record.step, record.metrics, record.evaluation) == ("stopped", 0, (), None)


def test_a_torn_line_of_the_log_is_no_row(folder):
    folder.append_metrics([{"step": 1, "loss": 0.5}])
    with folder.metrics_file.open("a") as log:
        log.write('{"step": 2, "lo')
    assert folder.metrics() == ({"step": 1, "loss": 0.5},)


def test_rows_after_a_checkpoint_are_forgotten(folder):
    folder.append_metrics([{"step": step, "loss": 0.0} for step in (1, 2, 3)])
    folder.keep_metrics_to(2)
    assert [row["step"] for row in folder.metrics()] == [1, 2]


def hold(path, held, done):
    with RunFolder(path).locked():
        held.set()
        done.wait()


def test_only_one_process_trains_in_a_folder(folder):
    context = multiprocessing.get_context("spawn")
    held, done = context.Event(), context.Event()
    other = context.Process(target=hold, args=(folder.path, held, done))
    other.start()
    assert held.wait(60)
    assert folder.running()
    assert folder.record().state == "running"
    with pytest.raises(BadInput, match="another process is training in"), folder.locked():
        pass
    done.set()
    other.join()
    deadline = time.monotonic() + 10
    while folder.running():
        assert time.monotonic() < deadline
    with folder.locked():
        pass


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("lr: [", "is not YAML"),
        ("- 1\n- 2\n", "should hold settings by name, not list"),
        ("a: &x {b: 1}\nc: *x\n", "uses YAML aliases"),
        ("!!python/object/apply:os.system ['true']", "is not YAML"),
        ("x: '" + "y" * 2**20 + "'", "settings have at most"),
        ("{" * 5000, "is not YAML"),
        ("\x00", "is not YAML"),
    ],
)
def test_yaml_that_holds_no_settings_is_refused(tmp_path, text, sentence):
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    with pytest.raises(BadInput, match=sentence) as caught:
        mapping_from_yaml(file)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(BadInput, match="is not YAML"):
        mapping_from_yaml(file)


def test_settings_for_people_are_read_back(tmp_path):
    file = tmp_path / "settings.yaml"
    chosen = settings({"views": "byol", "optimizer": "lars", "lr": 0.123456789012345})
    file.write_text(to_yaml(chosen))
    assert as_mapping(settings(mapping_from_yaml(file))) == as_mapping(chosen)


@pytest.mark.parametrize("name", ["status_file", "evaluation_file", "gallery_file"])
def test_a_broken_file_is_named(folder, name):
    getattr(folder, name).write_bytes(b"{")
    with pytest.raises(Failed, match=getattr(folder, name).name):
        folder.record()


def test_a_disk_that_takes_no_more_rows_is_one_sentence(folder):
    folder.metrics_file = Path("/dev/full")
    with pytest.raises(Failed, match="/dev/full cannot be written: No space left on device"):
        folder.append_metrics([{"step": 1, "loss": 0.5}])


def test_a_run_that_cannot_begin_leaves_no_folder(tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_folder, "write_atomically", full)
    made = RunFolder(tmp_path / "run")
    made.path.mkdir()
    with pytest.raises(Failed, match="cannot be written: No space left on device"):
        made.begin(settings({}), None)
    assert not made.path.exists()


def test_what_a_killed_process_left_is_swept_away(folder):
    (folder.path / ".status.json.abc").write_text("{")
    (folder.path / ".lock").touch()
    folder.sweep()
    assert not (folder.path / ".status.json.abc").exists()
    assert (folder.path / ".lock").exists()
    assert folder.exists()


def test_one_bad_folder_does_not_hide_the_others(folder, tmp_path):
    bad = RunFolder(tmp_path / "bad")
    bad.path.mkdir()
    bad.begin(settings({}), None)
    bad.evaluation_file.write_text("{}")
    assert [path for path, _ in runs(tmp_path)] == [folder.path]


def test_a_folder_without_a_run_says_so(tmp_path):
    with pytest.raises(BadInput, match="there is no run in"):
        RunFolder(tmp_path).settings()
