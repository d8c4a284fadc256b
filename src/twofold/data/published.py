"""The published image collections: what their files are, where they are looked for, and how they are opened."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from twofold.data.augmentation import Augmentation
from twofold.data.binary import Contents, ImageArray, Joined, cifar_folder, exists, mnist_folder, present, stl_folder
from twofold.data.cache import cache_root
from twofold.data.source import Source, Split, stratified
from twofold.data.views import IMAGE_PRESETS, ImageViews
from twofold.errors import BadInput

VALIDATION_SHARE = 0.1
SPLIT_SEED = 0
STATISTICS_OF = 2**27  # pixel values: all of CIFAR or MNIST, evenly chosen images of what is larger


@dataclass(frozen=True)
class File:
    """What a published file must be: its size and, where it is known, its MD5 sum; both of it unpacked."""

    size: int
    md5: str | None = None


@dataclass(frozen=True, eq=False)
class Published:
    """A published collection: where it lies, what it is made of, and how it is read."""

    name: str
    description: str
    folder: str
    files: Mapping[str, File]
    classes: tuple[str, ...]
    read: Callable[[Path], Contents]
    views: ImageViews

    def places(self, root: Path) -> tuple[Path, ...]:
        """Return where to look: a folder of the official name, and the root itself.

        Files of the same names belong to another collection (MNIST's and Fashion-MNIST's), unless the root's
        own name says whose they are.
        """
        alike = [other for other in PUBLISHED.values() if other.files.keys() == self.files.keys()]
        mine = root.absolute().name == self.folder or len(alike) == 1
        return (root / self.folder, root) if mine else (root / self.folder,)

    def missing(self, folder: Path) -> tuple[str, ...]:
        """Return which files are not in a folder."""
        return tuple(name for name in self.files if not exists(present(folder, name)))


_GREY = Augmentation(crop=(0.4, 1.0), jitter=0.8, brightness=0.4, contrast=0.4)
_CIFAR = 30_730_000  # bytes of a batch of 10 000
_DIGITS = tuple("0123456789")
_CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck"
_STL10 = "airplane bird car cat deer dog horse monkey ship truck"
_FASHION = "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot"
_CIFAR100 = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
    castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
    elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster
    man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck
    pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
    skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger
    tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm"""

VIEWS_OF_DIGITS = ImageViews(first=_GREY, second=_GREY)
"""For grey pictures that mean something else in a mirror."""
VIEWS_OF_CLOTHES = ImageViews(first=replace(_GREY, flip=0.5), second=replace(_GREY, flip=0.5))
"""For grey pictures that mean the same in a mirror."""

PUBLISHED: Mapping[str, Published] = {
    data.name: data
    for data in (
        Published(
            "cifar10",
            "CIFAR-10: 60 000 photographs of 32 × 32 pixels in 10 classes",
            "cifar-10-batches-bin",
            {
                "data_batch_1.bin": File(_CIFAR, "5dd7e06a14cb22eb9f671a540d1b7c25"),
                "data_batch_2.bin": File(_CIFAR, "5ea93a67294ea407fff1d09f752e9692"),
                "data_batch_3.bin": File(_CIFAR, "942cd6a4bcdd0dd3c604fbe906cb4421"),
                "data_batch_4.bin": File(_CIFAR, "ae636b3ba5c66a11e91e8cb52e771fcb"),
                "data_batch_5.bin": File(_CIFAR, "53f37980c15c3d472c316c40844f3f0d"),
                "test_batch.bin": File(_CIFAR, "803d5f7f4d78ea53de84dbe85f74fb6d"),
            },
            tuple(_CIFAR10.split()),
            partial(
                cifar_folder,
                train=[f"data_batch_{i}.bin" for i in range(1, 6)],
                test="test_batch.bin",
                classes=(10,),
            ),
            IMAGE_PRESETS["cifar"],
        ),
        Published(
            "cifar100",
            "CIFAR-100: 60 000 photographs of 32 × 32 pixels in 100 classes",
            "cifar-100-binary",
            {"train.bin": File(153_700_000), "test.bin": File(30_740_000)},
            tuple(_CIFAR100.split()),
            partial(cifar_folder, train=["train.bin"], test="test.bin", classes=(20, 100)),
            IMAGE_PRESETS["cifar"],
        ),
        Published(
            "stl10",
            "STL-10: 13 000 photographs of 96 × 96 pixels in 10 classes, and 100 000 without labels",
            "stl10_binary",
            {
                "train_X.bin": File(138_240_000, "918c2871b30a85fa023e0c44e0bee87f"),
                "train_y.bin": File(5_000, "5a34089d4802c674881badbb80307741"),
                "test_X.bin": File(221_184_000, "7f263ba9f9e0b06b93213547f721ac82"),
                "test_y.bin": File(8_000, "36f9794fa4beb8a2c72628de14fa638e"),
                "unlabeled_X.bin": File(2_764_800_000, "5242ba1fed5e4be9e1e742405eb56ca4"),
            },
            tuple(_STL10.split()),
            stl_folder,
            IMAGE_PRESETS["stl10"],
        ),
        Published(
            "mnist",
            "MNIST: 70 000 handwritten digits of 28 × 28 pixels",
            "mnist",
            {
                "train-images-idx3-ubyte": File(47_040_016, "6bbc9ace898e44ae57da46a324031adb"),
                "train-labels-idx1-ubyte": File(60_008, "a25bea736e30d166cdddb491f175f624"),
                "t10k-images-idx3-ubyte": File(7_840_016, "2646ac647ad5339dbf082846283269ea"),
                "t10k-labels-idx1-ubyte": File(10_008, "27ae3e4e09519cfbb04c329615203637"),
            },
            _DIGITS,
            mnist_folder,
            VIEWS_OF_DIGITS,
        ),
        Published(
            "fashion-mnist",
            "Fashion-MNIST: 70 000 pictures of clothes of 28 × 28 pixels in 10 classes",
            "fashion-mnist",
            {
                "train-images-idx3-ubyte": File(47_040_016, "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
                "train-labels-idx1-ubyte": File(60_008, "9018921c3c673c538a1fc5bad174d6f9"),
                "t10k-images-idx3-ubyte": File(7_840_016, "8181f5470baa50b63fa0f6fddb340f0a"),
                "t10k-labels-idx1-ubyte": File(10_008, "15d484375f8d13e6eb1aabb0c3f46965"),
            },
            tuple(_FASHION.split(",")),
            mnist_folder,
            VIEWS_OF_CLOTHES,
        ),
    )
}


def data_root(root: Path | None = None) -> Path:
    """Return where published data are kept: this folder, else ``$TWOFOLD_DATA``, else in the user's cache."""
    named = os.environ.get("TWOFOLD_DATA") if root is None else root
    return Path(named).expanduser() if named else cache_root() / "data"


def find(name: str, root: Path | None = None) -> Path | None:
    """Return the folder that has all files of a published collection, if there is one."""
    data = PUBLISHED[name]
    return next((place for place in data.places(data_root(root)) if not data.missing(place)), None)


def locate(name: str, root: Path | None = None) -> Path:
    """Return the folder of a published collection, or say where it was looked for and how to get it."""
    if folder := find(name, root):
        return folder
    data, get = PUBLISHED[name], f"'twofold data fetch {name}' gets it"
    places = data.places(data_root(root))
    for place in places:
        missing = data.missing(place)
        if len(missing) < len(data.files):
            raise BadInput(f"'{place}' lacks {', '.join(missing)} of {name}: {get}")
    looked = " and ".join(f"'{place}'" for place in places)
    raise BadInput(f"{name} was not found, looked in {looked}: {get}, --data-root or $TWOFOLD_DATA say where")


def published(name: str, root: Path | None = None, views: ImageViews | None = None) -> Source:
    """Open a published collection: a tenth of its training images are for validation, the test set is its own.

    Training draws on the other training images, and on those that have no labels; none shows it a label.
    """
    data, folder = PUBLISHED[name], locate(name, root)
    contents = data.read(folder)
    labels = contents.train.labels
    assert labels is not None
    rows, held = stratified(labels, (1 - VALIDATION_SHARE, VALIDATION_SHARE), SPLIT_SEED)
    if len(held) == 0:
        raise BadInput(f"'{folder}' has {len(rows)} training images: too few of a class to hold any out for validation")
    train, more = contents.train.subset(rows), contents.unlabelled
    return Source(
        name=name,
        pool=Split(train.samples) if more is None else Joined(train.samples, more=more),
        train=train,
        validation=contents.train.subset(held),
        test=contents.test,
        views=(views or data.views).maker(train.samples.shape[1:], *channel_statistics(train.samples)),
        classes=data.classes,
    )


def channel_statistics(images: ImageArray) -> tuple[list[float], list[float]]:
    """Return the mean and the standard deviation of every channel, brightness in [0, 1], from its histogram.

    A channel without any variation gets 1, so that nothing is divided by zero.
    """
    some = images[:: max(1, images.size // STATISTICS_OF)]
    levels = np.arange(256) / 255
    mean, std = [], []
    for channel in range(images.shape[1]):
        counts = np.zeros(256)
        for start in range(0, len(some), 1024):
            counts += np.bincount(some[start : start + 1024, channel].reshape(-1), minlength=256)
        share = counts / counts.sum()
        mean.append(float(share @ levels))
        std.append(float(np.sqrt(share @ (levels - mean[-1]) ** 2)) or 1.0)
    return mean, std
