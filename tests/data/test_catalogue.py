"""One word opens any data, and a wrong word is answered by one sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import TypeAdapter
from torch import Generator

from twofold.data import (
    VIEW_PRESETS,
    AdditiveViews,
    ImageViews,
    SceneViews,
    ScramblingViews,
    Source,
    Split,
    ViewMaker,
    Views,
    known_data,
    open_data,
)
from twofold.data.views import IMAGE_PRESETS
from twofold.errors import BadInput

RANDOM = np.random.default_rng(0)
VECTORS = RANDOM.normal(size=(40, 6)).astype(np.float32)
BYTES = RANDOM.integers(0, 256, (40, 3, 16, 16), dtype=np.uint8)


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither look at this machine's data nor write into its cache."""
    monkeypatch.delenv("TWOFOLD_DATA", raising=False)
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    for name in ("cat", "dog"):
        (folder / name).mkdir(parents=True)
        for i in range(20):
            Image.fromarray(BYTES[i].transpose(1, 2, 0)).save(folder / name / f"{i}.png")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a small CIFAR-100."""
    folder = tmp_path / "root" / "cifar-100-binary"
    folder.mkdir(parents=True)
    for name, n in (("train.bin", 200), ("test.bin", 20)):
        rows = RANDOM.integers(0, 20, (n, 3074), dtype=np.uint8)
        rows[:, 1] = np.arange(n) % 20
        (folder / name).write_bytes(rows.tobytes())
    return folder.parent


def refusal(*arguments: Any, **options: Any) -> str:
    with pytest.raises(BadInput) as caught:
        open_data(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_kind_of_data_is_opened(tmp_path: Path, photos: Path, root: Path) -> None:
    np.save(tmp_path / "vectors.npy", VECTORS)
    np.savez(tmp_path / "vectors.npz", x=VECTORS, y=np.arange(40) % 2)
    specs: dict[str, Any] = {
        "digits": "digits",
        "cifar100": "cifar100",
        "photos": photos,
        "vectors": str(tmp_path / "vectors.npy"),
        "packed": tmp_path / "vectors.npz",
        "array": VECTORS,
        "images": BYTES,
    }
    shapes = {"digits": (1, 24, 24), "cifar100": (3, 32, 32), "photos": (3, 64, 64), "images": (3, 16, 16)}
    for name, spec in specs.items():
        source = open_data(spec, root)
        assert isinstance(source.views, ViewMaker)
        assert source.shape == shapes.get(name, (6,))
        for view in source.views.pair(source.pool.take(slice(0, 4)), Generator().manual_seed(0)):
            assert view.shape == (4, *source.shape)
        assert len(source.validation) > 0


def test_a_source_stays_as_it_is() -> None:
    source = open_data(VECTORS)
    assert open_data(source) is source
    for options in ({"views": AdditiveViews()}, {"image_size": 32}):
        assert "brings views of its own" in refusal(source, **options)


def test_a_published_name_comes_before_a_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    (root / "cifar100").mkdir()
    assert open_data("cifar100", root).name == "cifar100"
    assert "has no images" in refusal(Path("cifar100"))


def test_unknown_names_have_the_nearest_spelling() -> None:
    for wrong, right in (
        ("cifar", "cifar10"),
        ("minst", "mnist"),
        ("fashion_mnist", "fashion-mnist"),
        ("digit", "digits"),
    ):
        sentence = refusal(wrong)
        assert sentence.startswith(f"unknown data '{wrong}', allowed are digits, cifar10, cifar100, stl10, mnist, ")
        assert "a folder of images" in sentence
        assert ".npy, .npz, .parquet" in sentence
        assert sentence.endswith(f"did you mean '{right}'?")
    assert "unknown data ''" in refusal("")


def test_paths_that_lead_nowhere_say_so(tmp_path: Path, photos: Path) -> None:
    assert refusal(tmp_path / "photo") == f"there is no '{tmp_path}/photo'; did you mean 'photos'?"
    assert refusal(f"{tmp_path}/nothing/at/all").startswith(f"there is no '{tmp_path}/nothing/at/all'")
    assert refusal("nothing.npy").startswith("there is no 'nothing.npy'")
    assert refusal(Path("nothing")).startswith("there is no 'nothing'")
    (tmp_path / "empty").mkdir()
    assert "has no images" in refusal(tmp_path / "empty")
    (tmp_path / "notes.txt").write_text("words")
    assert "must end in .npy, .npz, .parquet" in refusal(tmp_path / "notes.txt")


def test_what_is_not_fetched_says_how(tmp_path: Path) -> None:
    assert "'twofold data fetch stl10' gets it" in refusal("stl10", tmp_path)


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        (BYTES.transpose(0, 2, 3, 1), "uint8 values of shape (40, 16, 16, 3): images are bytes (uint8) of shape"),
        (BYTES.astype(np.float32), "float32 values of shape (40, 3, 16, 16): images are bytes"),
        (BYTES[:3], "has 3 images: at least 10 are needed"),
        (BYTES[:, :, :, :8], "images of 8x16 pixels are not square"),
        (BYTES[:, :0], "(40, 0, 16, 16): images are bytes"),
        (BYTES[:, :, :, :0], "(40, 3, 16, 0): images are bytes"),
        (BYTES[:0], "has 0 images: at least 10 are needed"),
        (BYTES[0], "has shape (3, 16, 16): vectors need two dimensions"),
        (VECTORS[0], "has shape (6,): vectors need two dimensions"),
        (VECTORS[:0], "has 0 samples"),
        (np.where(VECTORS > 2, np.nan, VECTORS), "no finite 32-bit number"),
        (VECTORS.astype(object), "values of type object"),
    ],
)
def test_arrays_that_are_nothing_are_refused(samples: Any, says: str) -> None:
    assert says in refusal(samples)


def test_images_are_divided_into_disjoint_splits() -> None:
    source = open_data(BYTES)
    assert source.test is not None
    parts = [source.train, source.validation, source.test]
    images = np.concatenate([part.take(slice(None)).numpy() for part in parts])
    assert sorted(image.tobytes() for image in images) == sorted(image.tobytes() for image in BYTES)
    assert min(map(len, parts)) >= 2


@pytest.mark.parametrize(
    ("data", "views"),
    [
        ("digits", AdditiveViews()),
        ("digits", IMAGE_PRESETS["simclr"]),
        ("cifar100", SceneViews()),
        ("cifar100", ScramblingViews()),
        ("photos", AdditiveViews()),
        ("array", IMAGE_PRESETS["cifar"]),
        ("images", AdditiveViews()),
        ("file", SceneViews()),
    ],
)
def test_views_of_another_kind_are_refused(tmp_path: Path, photos: Path, root: Path, data: str, views: Any) -> None:
    np.save(tmp_path / "vectors.npy", VECTORS)
    specs: dict[str, Any] = {"photos": photos, "array": VECTORS, "images": BYTES, "file": tmp_path / "vectors.npy"}
    sentence = refusal(specs.get(data, data), root, views)
    assert sentence.startswith(f"'{views.kind}' views do not fit ")
    allowed = sentence.partition("allowed are ")[2].split(", ")
    assert open_data(specs.get(data, data), root, VIEW_PRESETS[allowed[0]]).views is not None


@given(st.sampled_from(sorted(VIEW_PRESETS)))
def test_presets_are_views_that_survive_being_written_down(name: str) -> None:
    views: TypeAdapter[Any] = TypeAdapter(Views)
    assert views.validate_json(views.dump_json(VIEW_PRESETS[name])) == VIEW_PRESETS[name]


def test_all_presets_are_there() -> None:
    assert IMAGE_PRESETS.keys() < VIEW_PRESETS.keys()
    assert {preset.kind for preset in VIEW_PRESETS.values()} == {"scenes", "image", "additive", "scrambling"}
    assert VIEW_PRESETS["grey"] == open_grey(flip=0.0)
    assert VIEW_PRESETS["grey-flip"] == open_grey(flip=0.5)


def open_grey(flip: float) -> ImageViews:
    parts = {"crop": (0.4, 1.0), "flip": flip, "jitter": 0.8, "brightness": 0.4, "contrast": 0.4}
    return TypeAdapter(ImageViews).validate_python({"first": parts, "second": parts})


def test_the_size_of_images_is_that_of_their_views(photos: Path, root: Path) -> None:
    assert open_data("cifar100", root, image_size=20).shape == (3, 20, 20)
    assert open_data("digits", image_size=32).shape == (1, 32, 32)
    assert open_data(photos, image_size=24).shape == (3, 24, 24)
    assert open_data(BYTES, image_size=8).shape == (3, 8, 8)
    assert open_data(BYTES[:, :, :, :8], image_size=8).shape == (3, 8, 8)  # wide images have squares too
    assert open_data(BYTES, views=VIEW_PRESETS["none"], image_size=8).shape == (3, 8, 8)


def test_sizes_that_cannot_be_are_refused(root: Path, tmp_path: Path) -> None:
    assert refusal("cifar100", root, image_size=1) == (
        "views of 1 pixels are not possible: input should be greater than or equal to 2"
    )
    assert "views of 9999 pixels are not possible" in refusal("digits", image_size=9999)
    np.save(tmp_path / "vectors.npy", VECTORS)
    for vectors in (VECTORS, tmp_path / "vectors.npy"):
        assert "an image size of 32 was given, but" in refusal(vectors, image_size=32)


def test_known_data_say_where_they_are(root: Path) -> None:
    known = {it.name: it for it in known_data(root)}
    assert list(known) == ["digits", "cifar10", "cifar100", "stl10", "mnist", "fashion-mnist"]
    assert known["digits"].found == "built in"
    assert known["cifar100"].found == str(root / "cifar-100-binary")
    assert known["cifar10"].found is known["fashion-mnist"].found is None
    assert all(it.description for it in known.values())


def test_views_without_a_flip_do_not_mirror() -> None:
    """Half of an image is black: with the grey preset that half stays on its side, with its control it does not."""
    images = np.zeros((40, 1, 16, 16), np.uint8)
    images[..., 8:] = 255
    brighter = {}
    for name in ("grey", "grey-flip"):
        view, _ = open_data(images, views=VIEW_PRESETS[name]).views.pair(
            torch.from_numpy(images).repeat(10, 1, 1, 1), Generator().manual_seed(0)
        )
        brighter[name] = (view[..., 8:].mean(dim=(1, 2, 3)) >= view[..., :8].mean(dim=(1, 2, 3))).double().mean()
    assert brighter["grey"] == 1
    assert 0.4 < brighter["grey-flip"] < 0.7  # crops of one half alone count too


def test_sources_are_accepted_from_elsewhere() -> None:
    split, made = Split(VECTORS), open_data(VECTORS)
    source = Source("mine", split, split, split, None, made.views)
    assert open_data(source) is source
