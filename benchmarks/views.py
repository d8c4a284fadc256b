"""Image pairs a second: batched views against a pipeline that draws them image by image with PIL.

32x32 images in batches of 512, with the operations of the preset `cifar`
(crop, flip, jitter, greyscale), then with those of `simclr` (and blur). Every figure is that of the best call,
of some milliseconds in each pipeline; the pipelines take turns, so that all of them see the same machine.
"""

import json
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageFilter

from twofold.data.augmentation import Augmentation
from twofold.data.views import IMAGE_PRESETS
from twofold.records import Progress, silent

BATCH, SIDE, ROUNDS, SECONDS = 512, 32, 8, 0.25
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)  # of CIFAR-10
PAIRS_A_SECOND, TIMES_PIL = 25_000, 30


def measure(progress: Progress = silent) -> dict[str, Any]:
    """Measure all rows, and say of those that have a limit whether it is reached."""
    samples = torch.randint(0, 256, (BATCH, 3, SIDE, SIDE), dtype=torch.uint8)
    pictures = [Image.fromarray(sample.permute(1, 2, 0).numpy()) for sample in samples]
    names = ("cifar", "simclr")
    pipelines: dict[tuple[str, str], Callable[[], int]] = {}
    for name in names:
        pipelines[name, "two threads"] = _batched(name, samples, threads=2)
        pipelines[name, "one thread"] = _batched(name, samples, threads=1)
        pipelines[name, "PIL"] = _one_by_one(name, pictures)
    best = dict.fromkeys(pipelines, 0.0)
    for done in range(ROUNDS):
        progress("views", done, ROUNDS)
        for key, pipeline in pipelines.items():
            best[key] = max(best[key], _rate(pipeline))
    progress("views", ROUNDS, ROUNDS)
    rows = [row for name in names for row in _rows(name, best)]
    return {"name": "views", "rows": rows}


def _rows(name: str, best: dict[tuple[str, str], float]) -> list[dict[str, Any]]:
    """Tell the figures of a preset; limits are for views without blur."""
    two, one, pil = (best[name, how] for how in ("two threads", "one thread", "PIL"))
    blur = IMAGE_PRESETS[name].first.blur > 0
    suffix = ", with blur" if blur else ""

    def row(what: str, value: float, unit: str, reach: float | None = None) -> dict[str, Any]:
        reach = None if blur else reach
        return {
            "what": what + suffix,
            "value": round(value, 1),
            "unit": unit,
            "reach": reach,
            "met": None if reach is None else value >= reach,
        }

    return [
        row("views on two threads", two, "image pairs/s", PAIRS_A_SECOND),
        row("views on one thread", one, "image pairs/s"),
        row("PIL image by image on one core", pil, "image pairs/s"),
        row("two threads to PIL on one core", two / pil, "x", TIMES_PIL),
        row("one thread to PIL on one core", one / pil, "x"),
    ]


def _rate(pipeline: Callable[[], int]) -> float:
    """Return the image pairs a second of a pipeline, which returns how many it made, in its best call."""
    pipeline()
    best, end = 0.0, time.perf_counter() + SECONDS
    while (start := time.perf_counter()) < end:
        pairs = pipeline()
        best = max(best, pairs / (time.perf_counter() - start))
    return best


def _batched(name: str, samples: torch.Tensor, threads: int) -> Callable[[], int]:
    maker = IMAGE_PRESETS[name].maker((3, SIDE, SIDE), MEAN, STD)
    generator = torch.Generator().manual_seed(0)

    def pipeline() -> int:
        torch.set_num_threads(threads)
        return len(maker.pair(samples, generator)[0])

    return pipeline


def _one_by_one(name: str, pictures: list[Image.Image]) -> Callable[[], int]:
    settings, some = IMAGE_PRESETS[name], pictures[:32]

    def pipeline() -> int:
        torch.set_num_threads(1)
        for augmentation in (settings.first, settings.second):
            torch.stack([draw_with_pil(picture, augmentation) for picture in some])
        return len(some)

    return pipeline


def draw_with_pil(image: Image.Image, view: Augmentation) -> torch.Tensor:
    """Draw one view as torchvision's transforms do: every operation on bytes, then a normalised tensor."""
    left, top, width, height = _box(*image.size, view)
    image = image.crop((left, top, left + width, top + height)).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    if _happens(view.flip):
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    if _happens(view.jitter):
        image = _jittered(image, view)
    if _happens(view.greyscale):
        image = image.convert("L").convert("RGB")
    if _happens(view.blur):
        image = image.filter(ImageFilter.GaussianBlur(_uniform(*view.blur_sigma)))
    colours = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div(255)
    mean, std = torch.tensor(MEAN), torch.tensor(STD)
    return colours.sub_(mean[:, None, None]).div_(std[:, None, None])


def _uniform(low: float, high: float) -> float:
    return torch.empty(1).uniform_(low, high).item()


def _happens(probability: float) -> bool:
    return torch.rand(1).item() < probability


def _box(width: int, height: int, view: Augmentation) -> tuple[int, int, int, int]:
    """Draw a crop of random area and ratio: ten attempts, else everything."""
    for _ in range(10):
        area = width * height * _uniform(*view.crop)
        ratio = math.exp(_uniform(math.log(view.ratio[0]), math.log(view.ratio[1])))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            left, top = (int(torch.randint(0, free + 1, (1,)).item()) for free in (width - w, height - h))
            return left, top, w, h
    return 0, 0, width, height


def _jittered(image: Image.Image, view: Augmentation) -> Image.Image:
    """Change brightness, contrast, saturation and hue in random order."""
    enhancers = [
        (ImageEnhance.Brightness, view.brightness),
        (ImageEnhance.Contrast, view.contrast),
        (ImageEnhance.Color, view.saturation),
        (None, view.hue),
    ]
    for place in torch.randperm(len(enhancers)).tolist():
        enhancer, strength = enhancers[place]
        if enhancer is None:
            image = _turned(image, _uniform(-strength, strength))
        else:
            image = enhancer(image).enhance(_uniform(1 - strength, 1 + strength))
    return image


def _turned(image: Image.Image, turns: float) -> Image.Image:
    """Turn the hue by way of HSV."""
    hue, saturation, value = image.convert("HSV").split()
    shifted = Image.fromarray(np.array(hue) + np.uint8(round(turns * 255) % 256))
    return Image.merge("HSV", (shifted, saturation, value)).convert("RGB")


if __name__ == "__main__":
    print(json.dumps(measure()))
