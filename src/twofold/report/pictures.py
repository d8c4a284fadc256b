"""The pictures of a run: both views of some samples, and what its encoder takes to be alike."""

import base64
import io

import numpy as np
from jaxtyping import UInt8

from twofold.records import Gallery
from twofold.report.markup import Markup, tag

LARGEST = 128
"""Pixels along the longer side: what is larger is scaled down, so that the page stays small."""
SMALL = 64
"""Pictures up to this side keep their pixels visible when the page enlarges them."""


def data_uri(picture: UInt8[np.ndarray, "height width channels"]) -> str:
    """Write a picture as a PNG inside an address."""
    from PIL import Image  # heavy to import

    image = Image.fromarray(_grey_or_colour(picture))
    image.thumbnail((LARGEST, LARGEST))
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _grey_or_colour(
    picture: UInt8[np.ndarray, "height width channels"],
) -> UInt8[np.ndarray, "height width *colour"]:
    """Three channels are red, green and blue; any other number is shown as its mean."""
    if picture.shape[2] == 3:
        return np.ascontiguousarray(picture)
    grey: UInt8[np.ndarray, "height width"] = picture.mean(axis=2).round().astype(np.uint8)
    return grey


def image(picture: UInt8[np.ndarray, "height width channels"], alt: str) -> Markup:
    """Show a picture; its size is in the page before it is decoded, so nothing moves."""
    height, width = picture.shape[:2]
    look = "pixels" if max(height, width) <= SMALL else None
    return tag("img", src=data_uri(picture), alt=alt, width=width, height=height, class_=look)


def view_pairs(gallery: Gallery) -> Markup:
    """Draw both views of every sample side by side."""
    pairs = [
        tag(
            "figure",
            *(image(view, f"Sample {row}, view {which}") for which, view in enumerate(views, start=1)),
            tag("figcaption", f"sample {row}"),
            class_="pair",
        )
        for row, views in enumerate(gallery.views, start=1)
    ]
    return tag("div", *pairs, class_="pairs")


def neighbour_rows(gallery: Gallery) -> Markup:
    """Draw every query before its neighbours, nearest first."""
    return tag("div", *(_neighbour_row(gallery, row) for row in range(len(gallery.queries))), class_="rows")


def _neighbour_row(gallery: Gallery, row: int) -> Markup:
    wanted = gallery.query_labels[row] if gallery.query_labels else None
    heading = tag("figcaption", tag("span", "query", class_="role"), tag("span", wanted or "", class_="label"))
    query = tag("figure", image(gallery.queries[row], _alt(f"Query {row + 1}", wanted)), heading, class_="query")
    found = [_neighbour(gallery, row, rank, wanted) for rank in range(gallery.neighbours.shape[1])]
    words = f"Neighbours of query {row + 1}"
    return tag("div", query, tag("ol", *found), class_="row scroll", role="region", aria_label=words, tabindex=0)


def _neighbour(gallery: Gallery, row: int, rank: int, wanted: str | None) -> Markup:
    name = gallery.neighbour_labels[row][rank] if gallery.neighbour_labels else None
    cosine = f"{gallery.similarities[row, rank]:.2f}"
    other = wanted is not None and name is not None and name != wanted
    words = _alt(f"Neighbour {rank + 1} of query {row + 1}, cosine {cosine}", name)
    mark = f"≠ {name}" if other else name or ""
    caption = tag("figcaption", tag("span", mark, class_="label"), tag("span", cosine, class_="cosine"))
    picture = image(gallery.neighbours[row, rank], f"{words}: another class" if other else words)
    return tag("li", tag("figure", picture, caption, class_="other" if other else None))


def _alt(what: str, name: str | None) -> str:
    return what if name is None else f"{what}, class {name}"


def agreement(gallery: Gallery) -> str | None:
    """Say how many of the neighbours shown have their query's label; None without labels."""
    if not gallery.query_labels or not gallery.neighbour_labels:
        return None
    pairs = [
        (wanted, name)
        for wanted, names in zip(gallery.query_labels, gallery.neighbour_labels, strict=True)
        for name in names
    ]
    same = sum(wanted == name for wanted, name in pairs)
    return f"{same} of these {len(pairs)} neighbours have the class of their query; ≠ marks the others."
