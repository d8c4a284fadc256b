import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from twofold.errors import BadInput
from twofold.training.randomness import ORDER, VIEWS, Order, derived, restore, seeded, states


@given(samples=st.integers(4, 40), visits=st.integers(1, 3), batch=st.integers(2, 4), seed=st.integers(0, 2**40))
def test_a_visit_takes_no_sample_twice(samples, visits, batch, seed):
    order = Order(samples, visits, batch, seed)
    assert order.steps_an_epoch == visits * (samples // batch)
    for visit in range(visits):
        taken = torch.cat([order.rows(visit * order.batches + i) for i in range(order.batches)])
        assert len(taken.unique()) == len(taken) == order.batches * batch
        assert taken.max() < samples


def test_the_order_is_a_function_of_seed_and_step():
    forward, backward = Order(50, 2, 8, seed=3), Order(50, 2, 8, seed=3)
    rows = {step: forward.rows(step) for step in range(24)}
    assert all(torch.equal(rows[step], backward.rows(step)) for step in reversed(range(24)))
    assert not torch.equal(rows[0], Order(50, 2, 8, seed=4).rows(0))
    assert not torch.equal(rows[0], rows[6])


def test_a_batch_larger_than_the_data_is_refused():
    with pytest.raises(BadInput, match="a batch of 9 is larger than the data, which has 8 samples"):
        Order(8, 1, 9, 0)


def test_streams_of_one_seed_differ():
    seeds = {derived(seed, purpose, i) for seed in (0, 1) for purpose in (ORDER, VIEWS) for i in range(50)}
    assert len(seeds) == 200


def draws():
    return torch.rand(2).tolist(), np.random.rand(2).tolist(), random.random()  # noqa: NPY002


def test_global_generators_are_given_back():
    before = states()
    expected = draws()
    restore(before)
    with seeded(5):
        inside = draws()
    assert draws() == expected
    with seeded(5):
        assert draws() == inside


def test_states_survive_a_safe_file(tmp_path):
    torch.save(states(), tmp_path / "states.pt")
    expected = draws()
    restore(torch.load(tmp_path / "states.pt", weights_only=True))
    assert draws() == expected
