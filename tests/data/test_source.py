"""Splits copy rows in order, and stratified parts are disjoint, whole and fair."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator, Tensor

from twofold.data.source import Source, Split, ViewMaker, stratified


class Doubling:
    """Views that can be told apart: the first is the sample, the second its double."""

    def pair(self, samples: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
        return samples.float(), 2 * samples.float()

    def plain(self, samples: Tensor) -> Tensor:
        return samples[:, :2].float()


def vectors(n: int) -> Split:
    samples = np.arange(n * 3, dtype=np.float32).reshape(n, 3)
    return Split(samples, np.arange(n), [f"row {i}" for i in range(n)])


def test_taking_copies() -> None:
    split = vectors(5)
    taken = split.take(torch.tensor([3, 0, 3]))
    assert taken.tolist() == split.samples[[3, 0, 3]].tolist()
    taken.zero_()
    split.take(slice(0, 2)).zero_()
    assert split.samples[0].tolist() == [0, 1, 2]
    assert len(split) == 5


def test_taking_from_a_mapped_file_copies(tmp_path: object) -> None:
    path = f"{tmp_path}/samples.npy"
    np.save(path, np.ones((4, 3), np.float32))
    split = Split(np.load(path, mmap_mode="r"))
    split.take(slice(0, 4)).zero_()
    assert np.load(path).min() == 1


def test_a_subset_keeps_labels_and_names_with_their_rows() -> None:
    part = vectors(5).subset(np.array([4, 1]))
    assert part.samples[:, 0].tolist() == [12, 3]
    assert part.labels is not None
    assert part.labels.tolist() == [4, 1]
    assert part.names == ["row 4", "row 1"]
    bare = Split(vectors(5).samples).subset(np.array([2]))
    assert (bare.labels, bare.names) == (None, None)


def test_a_source_is_as_wide_as_its_plain_views() -> None:
    split, views = vectors(4), Doubling()
    assert isinstance(views, ViewMaker)
    source = Source("test", split, split, split, None, views)
    assert source.shape == (2,)


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=200),
    st.sampled_from([(0.7, 0.1, 0.2), (0.9, 0.1), (1.0,)]),
    st.integers(0, 5),
)
def test_stratified_parts_are_disjoint_whole_and_fair(labels: list[int], shares: tuple[float, ...], seed: int) -> None:
    classes = np.array(labels, np.int64)
    parts = stratified(classes, shares, seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))
    for part, share in zip(parts, shares, strict=True):
        assert (np.diff(part) > 0).all()
        for label in np.unique(classes):
            # Two rounded ends: at most one row more or less than the share, of every class.
            assert abs((classes[part] == label).sum() - share * (classes == label).sum()) <= 1 + 1e-9


def test_stratified_is_fixed_by_its_seed() -> None:
    labels = np.repeat(np.arange(5), 40)
    first, again, other = (stratified(labels, (0.8, 0.2), seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[1], other[1])


def test_a_count_is_split_like_one_class() -> None:
    train, test = stratified(50, (0.8, 0.2), 3)
    assert (len(train), len(test)) == (40, 10)
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(train, np.arange(40))
