"""A folder of images as data; its sub-folders, where there are any, are classes."""

import logging
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from twofold.data.cache import Decoded, ImageFile, decoded
from twofold.data.parts import enough, existing, numbered, three_parts
from twofold.data.published import channel_statistics
from twofold.data.source import Source, Split
from twofold.data.views import IMAGE_PRESETS, ImageViews
from twofold.errors import BadInput
from twofold.records import Progress, silent

EXTENSIONS = frozenset(
    {".avif", ".bmp", ".gif", ".heic", ".heif", ".jfif", ".jp2", ".jpe", ".jpeg", ".jpg"}
    | {".pbm", ".pgm", ".png", ".ppm", ".tga", ".tif", ".tiff", ".webp"}
)
"""Of what calls itself an image; a file that does and is none, or of a kind not decoded here, is corrupt."""

DEFAULT_SIZE = 64
SMALLEST, LARGEST = 8, 1024
CORRUPT_SHARE = 0.01
NAMED = 5
STATISTICS_OF = 512

log = logging.getLogger("twofold")


def folder(
    path: str | Path,
    views: ImageViews | None = None,
    image_size: int | None = None,
    progress: Progress = silent,
) -> Source:
    """Open a folder of images, decoded once into squares of ``image_size`` pixels, and split it at random.

    Views have the size of these squares; without ``image_size`` it is what the views ask for, or else 64. A
    sub-folder is a class, and what is further below belongs to it. With images outside of all sub-folders, or
    with only one sub-folder, nothing is labelled. More than 1 % of corrupt files are refused.
    """
    views = views or IMAGE_PRESETS["simclr"]
    root, side = existing(path), _side(views.size if image_size is None else image_size)
    files = image_files(root)
    enough(len(files), "image", f"'{root}'")
    found = decoded(root, files, side, progress)
    if len(found.skipped) > CORRUPT_SHARE * len(files):
        raise BadInput(f"{_named(root, files, found)}, and training allows 1 %: mend or remove them")
    whole, classes = _labelled(root, files, found)
    train, validation, test = three_parts(whole)
    some = train.take(slice(None, None, -(-len(train) // STATISTICS_OF))).numpy()
    maker = replace(views, size=side).maker(some.shape[1:], *channel_statistics(some))
    return Source(root.resolve().name, train, train, validation, test, maker, classes)


def folder_split(path: str | Path, image_size: int | None = None, progress: Progress = silent) -> Split:
    """Open all images of a folder in the order of their names, those that are corrupt left out with a warning."""
    root, side = existing(path), _side(image_size)
    files = image_files(root)
    found = decoded(root, files, side, progress)
    if len(found.images) == 0:
        raise BadInput(_named(root, files, found))
    return _labelled(root, files, found)[0]


def image_files(root: Path) -> list[ImageFile]:
    """Find the images below a folder by their extension, sorted by name, without what is hidden.

    Every folder is read once, however many links lead to it (under its own name if it lies inside), and none
    that the folder itself lies in: so no link leads round in circles.
    """
    seen = {_identity(parent) for parent in root.resolve().parents}
    pending, files = deque([""]), []
    while pending:
        inside = pending.popleft()
        try:
            if (here := _identity(root / inside)) in seen:
                continue
            seen.add(here)
            for entry in _visible(root / inside):
                name = f"{inside}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    pending.appendleft(f"{name}/")
                elif entry.is_symlink() and Path(entry.path).is_dir():
                    pending.append(f"{name}/")  # after all that is really there
                elif Path(entry.name).suffix.lower() in EXTENSIONS:
                    files.append(_file(name, entry))
        except OSError as error:
            raise BadInput(f"the folder '{root / inside}' cannot be read ({error.strerror})") from error
    if not files:
        raise BadInput(f"'{root}' has no images: no file ends in {', '.join(sorted(EXTENSIONS))}")
    return sorted(files)


def _visible(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        shown = [entry for entry in entries if not entry.name.startswith(".")]
    return sorted(shown, key=lambda entry: entry.name)


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _file(name: str, entry: os.DirEntry[str]) -> ImageFile:
    """Describe a file; a link that leads nowhere is a file that is not there."""
    try:
        status = entry.stat()
    except OSError:
        return ImageFile(name, -1, 0)
    return ImageFile(name, status.st_size, status.st_mtime_ns)


def _side(image_size: int | None) -> int:
    side = DEFAULT_SIZE if image_size is None else image_size
    if not SMALLEST <= side <= LARGEST:
        raise BadInput(f"the size of images must be between {SMALLEST} and {LARGEST} pixels, not {side}")
    return side


def _labelled(root: Path, files: Sequence[ImageFile], found: Decoded) -> tuple[Split, tuple[str, ...]]:
    """Put together images, names and classes, and say what was left out."""
    if found.skipped:
        log.warning("%s; going on without", _named(root, files, found))
    names = [file.name for file in files if file.name not in found.skipped]
    folders = [name.partition("/")[0] for name in names if "/" in name]
    if 0 < len(folders) < len(names):
        stray = next(name for name in names if "/" not in name)
        log.warning(
            "'%s' has images in sub-folders and %d outside of them (%s): the sub-folders are not taken for classes",
            *(root, len(names) - len(folders), stray),
        )
        folders = []
    labels, classes = numbered(folders)
    return Split(found.images, labels, names), classes


def _named(root: Path, files: Sequence[ImageFile], found: Decoded) -> str:
    """Say which files are corrupt: the first of them, and where all are listed."""
    count = len(found.skipped)
    first = ", ".join(f"{name} ({reason})" for name, reason in list(found.skipped.items())[:NAMED])
    more = f" and {count - NAMED} more listed in '{found.manifest}'" if count > NAMED else ""
    return f"{count} of the {len(files)} images in '{root}' cannot be decoded: {first}{more}"
