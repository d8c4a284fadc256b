import base64
import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from twofold.records import Gallery
from twofold.report.pictures import LARGEST, agreement, data_uri, image, neighbour_rows, view_pairs


def decoded(address: str) -> np.ndarray:
    start, content = address.split(",")
    assert start == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))))


def random_picture(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def test_colour_pictures_keep_every_pixel() -> None:
    picture = random_picture(7, 9, 3)
    np.testing.assert_array_equal(decoded(data_uri(picture)), picture)


def test_grey_pictures_keep_every_pixel() -> None:
    picture = random_picture(24, 24, 1)
    np.testing.assert_array_equal(decoded(data_uri(picture)), picture[:, :, 0])


@pytest.mark.parametrize("channels", [2, 4, 13])
def test_other_channels_are_shown_as_their_mean(channels: int) -> None:
    picture = random_picture(5, 6, channels)
    np.testing.assert_array_equal(decoded(data_uri(picture)), picture.mean(axis=2).round())


def test_pictures_that_are_no_contiguous_memory_are_drawn_too() -> None:
    picture = random_picture(3, 8, 8).transpose(1, 2, 0)[::2]
    np.testing.assert_array_equal(decoded(data_uri(picture)), picture)


def test_large_pictures_are_scaled_down_in_proportion() -> None:
    assert decoded(data_uri(random_picture(200, 400, 3))).shape == (LARGEST // 2, LARGEST, 3)


def test_a_picture_has_its_size_and_a_text_and_small_ones_keep_their_pixels() -> None:
    small, large = image(random_picture(24, 20, 1), 'a "b"').html, image(random_picture(200, 400, 3), "c").html
    assert 'alt="a &quot;b&quot;" width="20" height="24" class="pixels"' in small
    assert 'alt="c" width="400" height="200">' in large


def test_views_stand_side_by_side(gallery: Gallery) -> None:
    drawn = view_pairs(gallery).html
    assert drawn.count("<figure") == 4
    assert drawn.count("<img") == 8
    assert drawn.index(data_uri(gallery.views[0, 0])) < drawn.index(data_uri(gallery.views[0, 1]))


def test_neighbours_follow_their_query_and_others_are_marked_in_words(gallery: Gallery) -> None:
    drawn = neighbour_rows(gallery).html
    assert drawn.count("<img") == 8
    assert drawn.count("≠ dog") == drawn.count("another class") == drawn.count('class="other"') == 1
    assert 'alt="Neighbour 2 of query 1, cosine 0.90, class dog: another class"' in drawn
    assert 'alt="Query 2, class dog"' in drawn
    assert drawn.index(data_uri(gallery.queries[0])) < drawn.index(data_uri(gallery.neighbours[0, 0]))


def test_agreement_counts_the_neighbours_of_the_same_class(gallery: Gallery) -> None:
    words = agreement(gallery)
    assert words is not None
    assert words.startswith("5 of these 6 neighbours")


def test_without_labels_nothing_is_marked(gallery: Gallery) -> None:
    bare = replace(gallery, query_labels=(), neighbour_labels=())
    assert agreement(bare) is None
    drawn = neighbour_rows(bare).html
    assert "≠" not in drawn
    assert "class dog" not in drawn
    assert drawn.count("<img") == 8
