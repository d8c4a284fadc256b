from dataclasses import FrozenInstanceError, fields, is_dataclass, replace

import pytest
import torch
from jaxtyping import TypeCheckError

from twofold import records
from twofold.records import Accuracy, Geometry, Loss, Pair, silent


def views(*rows, dim=3):
    return tuple(torch.zeros(n, dim) for n in rows)


def test_every_record_is_frozen():
    found = [kind for kind in vars(records).values() if is_dataclass(kind)]
    assert Pair in found
    assert all(kind.__dataclass_params__.frozen for kind in found)
    with pytest.raises(FrozenInstanceError):
        Accuracy(0.5).knn = 1.0


def test_a_pair_has_two_views_of_the_same_samples():
    whole = Pair(views(4, 4), views(4, 4), views(4, 4))
    assert [len(getattr(whole, part.name)) for part in fields(Pair)] == [2, 2, 2]
    with pytest.raises(TypeCheckError):
        Pair(views(4, 5), views(4, 4), views(4, 4))
    with pytest.raises(TypeCheckError):
        Pair(views(4, 4), views(4, 4, 4), views(4, 4))


def test_a_loss_is_a_scalar_and_its_parts_are_its_own():
    assert Loss(torch.tensor(1.0)).parts == {}
    assert Loss(torch.tensor(1.0)).parts is not Loss(torch.tensor(1.0)).parts
    with pytest.raises(TypeCheckError):
        Loss(torch.zeros(2))


def test_what_needs_labels_or_views_may_be_missing():
    assert Accuracy(0.5) == Accuracy(0.5, probe=None, class_mean=None)
    shape = Geometry(samples=4, dim=2, effective_rank=1.5, spread=0.5, spectrum=(2.0, 1.0))
    assert shape.alignment is shape.uniformity is None
    assert replace(shape, alignment=0.25) != shape


def test_progress_can_be_reported_to_nobody(capsys):
    assert silent("reading", 1, 2) is None
    assert capsys.readouterr().out == ""
