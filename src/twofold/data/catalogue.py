"""Every kind of data behind one word: what ``--data`` and ``twofold.train(data=…)`` take."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from twofold.data.binary import exists
from twofold.data.digits import SceneViews, digits
from twofold.data.folder import folder, folder_split
from twofold.data.parts import enough, existing, three_parts
from twofold.data.published import PUBLISHED, VIEWS_OF_CLOTHES, VIEWS_OF_DIGITS, channel_statistics, find, published
from twofold.data.source import Source, Split
from twofold.data.vector_files import READERS
from twofold.data.vectors import AdditiveViews, ScramblingViews, VectorViews, vector_split, vectors
from twofold.data.views import IMAGE_PRESETS, ImageViews
from twofold.errors import BadInput, unknown
from twofold.records import Progress, silent

Views = Annotated[SceneViews | ImageViews | VectorViews, Field(discriminator="kind")]
"""Any kind of views, told apart by its ``kind``."""

VIEW_PRESETS: Mapping[str, SceneViews | ImageViews | VectorViews] = MappingProxyType(
    {
        "scenes": SceneViews(),
        **IMAGE_PRESETS,
        "grey": VIEWS_OF_DIGITS,
        "grey-flip": VIEWS_OF_CLOTHES,
        "additive": AdditiveViews(),
        "scrambling": ScramblingViews(),
    }
)
"""Named views of every kind."""

STATISTICS_OF = 512  # images of an array

_Sized = TypeVar("_Sized", SceneViews, ImageViews)


class Known(NamedTuple):
    """A data set that has a name, and where it is, if it is anywhere."""

    name: str
    description: str
    found: str | None


def known_data(root: Path | None = None) -> tuple[Known, ...]:
    """Return all data sets that have a name."""
    scenes = Known("digits", "1 797 handwritten digits of 8 × 8 pixels, drawn into scenes: the default", "built in")
    places = {name: find(name, root) for name in PUBLISHED}
    return scenes, *(
        Known(name, PUBLISHED[name].description, None if place is None else str(place))
        for name, place in places.items()
    )


def open_data(
    spec: str | Path | NDArray[Any] | Source,
    root: Path | None = None,
    views: SceneViews | ImageViews | VectorViews | None = None,
    image_size: int | None = None,
    progress: Progress = silent,
) -> Source:
    """Open data by name, folder of images, file of vectors or array; what is a ``Source`` already stays as it is.

    Published collections are looked for in ``root`` (see ``data_root``). ``views`` must be of the kind that the
    data have; without them the data bring their own. ``image_size`` is the side of a view in pixels.
    """
    if isinstance(spec, Source):
        if views is not None or image_size is not None:
            raise BadInput(f"the source '{spec.name}' brings views of its own: open it with others instead")
        return spec
    if isinstance(spec, np.ndarray):
        return _array(spec, views, image_size)
    if spec == "digits":
        return digits(_sized(_fitting(views, SceneViews, "digits") or SceneViews(), image_size))
    if isinstance(spec, str) and spec in PUBLISHED:
        own = _fitting(views, ImageViews, spec) or PUBLISHED[spec].views
        return published(spec, root, _sized(own, image_size))
    return _path(_meant(spec), views, image_size, progress)


def known_names() -> tuple[str, ...]:
    """List the words that name a data set, whatever lies in the folder where one works."""
    return ("digits", *PUBLISHED)


def open_split(
    spec: str, part: str, root: Path | None = None, image_size: int | None = None, progress: Progress = silent
) -> Split:
    """Open one part of a data set that has a name, or the whole of a folder or a file in its order."""
    if spec not in known_names():
        path = _meant(spec)
        return folder_split(path, image_size, progress) if path.is_dir() else vector_split(path)
    split: Split | None = getattr(open_data(spec, root, progress=progress), part)
    if split is None:
        raise BadInput(f"'{spec}' has no {part} split")
    return split


def _meant(spec: str | Path) -> Path:
    """Return the path that is meant, unless it looks rather like a name that is misspelt."""
    path = Path(spec).expanduser()
    if isinstance(spec, str) and (not spec or (len(path.parts) == 1 and not path.suffix and not exists(path))):
        raise unknown("data", spec, ["digits", *PUBLISHED, "a folder of images", f"a file ({', '.join(READERS)})"])
    return existing(path)


def _path(path: Path, views: Any, image_size: int | None, progress: Progress) -> Source:
    """Open a folder of images, or else a file of vectors."""
    if not path.is_dir():
        _refuse_size(image_size, f"'{path}'")
        return vectors(path, _fitting(views, VectorViews, f"'{path}'"))
    chosen = _fitting(views, ImageViews, f"the images in '{path}'")
    return folder(path, chosen, image_size, progress)


def _array(samples: NDArray[Any], views: Any, image_size: int | None) -> Source:
    """Open an array of images when it has four dimensions, else one of vectors."""
    if samples.ndim != 4:
        _refuse_size(image_size, "an array of vectors")
        return vectors(samples, _fitting(views, VectorViews, "an array of vectors"))
    if samples.dtype != np.uint8 or samples.shape[1] not in (1, 3) or 0 in samples.shape[2:]:
        raise BadInput(
            f"the array has {samples.dtype} values of shape {samples.shape}: images are bytes (uint8) of shape "
            "(samples, 1 or 3 channels, height, width)"
        )
    enough(len(samples), "image", "the array")
    train, validation, test = three_parts(Split(samples))
    some = train.take(slice(None, None, -(-len(train) // STATISTICS_OF))).numpy()
    chosen = _sized(_fitting(views, ImageViews, "an array of images") or IMAGE_PRESETS["simclr"], image_size)
    maker = chosen.maker(samples.shape[1:], *channel_statistics(some))
    return Source("images", train, train, validation, test, maker)


def _fitting(views: Any, kind: Any, data: str) -> Any:
    """Refuse views that are not of the kind that the data have."""
    if views is None or isinstance(views, kind):
        return views
    allowed = ", ".join(name for name, preset in VIEW_PRESETS.items() if isinstance(preset, kind))
    raise BadInput(f"'{getattr(views, 'kind', views)}' views do not fit {data}, allowed are {allowed}")


def _sized(views: _Sized, image_size: int | None) -> _Sized:
    """Set the size of views."""
    if image_size is None:
        return views
    try:
        return replace(views, size=image_size)
    except ValidationError as error:
        limit = error.errors()[0]["msg"].lower()
        raise BadInput(f"views of {image_size} pixels are not possible: {limit}") from error


def _refuse_size(image_size: int | None, data: str) -> None:
    if image_size is not None:
        raise BadInput(f"an image size of {image_size} was given, but {data} has no images")
