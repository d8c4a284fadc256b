"""Where samples come from, and how views of them are drawn; ``open_data`` opens all of it by name, path or array."""

from twofold.data.augmentation import Augmentation
from twofold.data.cache import cache_root
from twofold.data.catalogue import VIEW_PRESETS, Known, Views, known_data, known_names, open_data, open_split
from twofold.data.digits import SceneViews
from twofold.data.folder import folder_split
from twofold.data.preparation import Preparation, preparation, raw
from twofold.data.published import data_root
from twofold.data.source import Picturing, Source, Split, ViewMaker
from twofold.data.vectors import AdditiveViews, ScramblingViews, vector_split
from twofold.data.views import ImageViews

__all__ = [
    "VIEW_PRESETS",
    "AdditiveViews",
    "Augmentation",
    "ImageViews",
    "Known",
    "Picturing",
    "Preparation",
    "SceneViews",
    "ScramblingViews",
    "Source",
    "Split",
    "ViewMaker",
    "Views",
    "cache_root",
    "data_root",
    "folder_split",
    "known_data",
    "known_names",
    "open_data",
    "open_split",
    "preparation",
    "raw",
    "vector_split",
]
