"""Laws of every objective, each with a wrong variant that the same check refutes."""

from collections.abc import Callable
from itertools import product
from typing import get_args

import pytest
import torch
from memory import peak_bytes
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError
from roster import ROSTER, Formula, Member
from torch import Tensor

from twofold.errors import BadInput
from twofold.objectives import InfoNCE, Objective
from twofold.records import Pair

PARTS = ("online", "predicted", "target")
SHAPES = [(2, 3), (3, 1), (5, 4), (7, 2)]
EXACT = {"rtol": 1e-10, "atol": 1e-10}


def leaves(n: int = 5, dim: int = 4, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    draw = torch.Generator().manual_seed(10 * n + dim)
    return tuple(torch.randn(n, dim, generator=draw, dtype=torch.float64).to(dtype).requires_grad_() for _ in range(6))


def paired(tensors: tuple[Tensor, ...]) -> Pair:
    return Pair(*zip(tensors[::2], tensors[1::2], strict=True))


def changed(pair: Pair, change: Callable[[Tensor], Tensor]) -> Pair:
    return Pair(*(tuple(change(view) for view in getattr(pair, part)) for part in PARTS))


def swapped(pair: Pair) -> Pair:
    return Pair(*(tuple(reversed(getattr(pair, part))) for part in PARTS))


def answer(loss: Formula, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the value and the gradients, zero where there are none."""
    value = loss(paired(tensors))
    if not value.requires_grad:
        return value, *map(torch.zeros_like, tensors)
    return value, *torch.autograd.grad(value, tensors, materialize_grads=True)


def shapes(member: Member) -> list[tuple[int, int]]:
    return [(n, dim) for n, dim in SHAPES if n >= member.fewest]


def same(found: tuple[Tensor, ...], expected: tuple[Tensor, ...], **tolerance: float) -> None:
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, **tolerance)


def differs(value: Tensor, other: Tensor) -> bool:
    return not torch.allclose(value, other, rtol=1e-6, atol=1e-6)


# The laws: each takes a member, whose facts it knows, and the loss that is on trial in its place.


def follows_its_formula(member: Member, loss: Formula) -> None:
    for n, dim in shapes(member):
        if member.differentiable:
            same(answer(loss, leaves(n, dim)), answer(member.formula, leaves(n, dim)), **EXACT)
        with torch.no_grad():
            torch.testing.assert_close(loss(paired(leaves(n, dim))), member.formula(paired(leaves(n, dim))), **EXACT)


def has_the_gradient_of_its_value(member: Member, loss: Formula) -> None:
    if member.frozen is not None:
        has_the_gradient_with_constants_held(member, loss)
        return
    for n, dim in shapes(member)[: 1 if member.slow else 3]:
        # Any upstream gradient but one, which backward could forget to multiply by.
        assert torch.autograd.gradcheck(
            lambda *z: -2.5 * loss(paired(z)), leaves(n, dim), atol=1e-6, rtol=1e-4, raise_exception=False
        )


def has_the_gradient_with_constants_held(member: Member, loss: Formula) -> None:
    """Compare with central differences of the formula in which what is no variable stays as it was."""
    assert member.frozen is not None
    tensors = leaves(4, 3)
    _, *gradients = answer(loss, tensors)
    still = member.frozen(paired(tuple(z.detach() for z in tensors)))
    for i, gradient in enumerate(gradients):
        for place in product(range(4), range(3)):
            values = []
            for side in (-1e-5, 1e-5):
                moved = [z.detach().clone() for z in tensors]
                moved[i][place] += side
                values.append(still(paired(tuple(moved))))
            torch.testing.assert_close(gradient[place], (values[1] - values[0]) / 2e-5, rtol=1e-5, atol=1e-8)


def ignores_the_order_of_samples(member: Member, loss: Formula) -> None:
    pair = paired(leaves())
    order = torch.tensor([3, 1, 4, 0, 2])
    reordered = loss(changed(pair, lambda z: z[order]))
    assert differs(reordered, loss(pair)) != member.order_free
    if member.order_free:
        torch.testing.assert_close(reordered, loss(pair), **EXACT)


def ignores_a_common_rotation(member: Member, loss: Formula) -> None:
    pair = paired(leaves())
    rotation = torch.linalg.qr(leaves(4, 4)[0].detach()).Q
    turned = loss(changed(pair, lambda z: z @ rotation))
    assert differs(turned, loss(pair)) != member.rotation_free
    if member.rotation_free:
        torch.testing.assert_close(turned, loss(pair), **EXACT)


def ignores_scale_where_normalised(member: Member, loss: Formula) -> None:
    pair = paired(leaves())
    larger = loss(changed(pair, lambda z: 3 * z))
    assert differs(larger, loss(pair)) != member.scale_free
    if member.scale_free:
        torch.testing.assert_close(larger, loss(pair), **EXACT)


def ignores_which_view_is_first(member: Member, loss: Formula) -> None:
    pair = paired(leaves())
    assert differs(loss(swapped(pair)), loss(pair)) != member.swappable
    if member.swappable:
        torch.testing.assert_close(loss(swapped(pair)), loss(pair), **EXACT)


def reaches_what_it_should(member: Member, loss: Formula) -> None:
    _, *gradients = answer(loss, leaves())
    found = {part for i, part in enumerate(PARTS) for g in gradients[2 * i : 2 * i + 2] if g.abs().max() > 1e-6}
    assert found == member.reaches


def is_the_same_every_time(member: Member, loss: Formula) -> None:
    tensors = leaves(50, 8, torch.float32)
    same(answer(loss, tensors), answer(loss, tensors), rtol=0, atol=0)


def keeps_its_precision_under_autocast(member: Member, loss: Formula) -> None:
    tensors = leaves(50, 8, torch.float32)
    expected = answer(loss, tensors)
    with torch.autocast("cpu", torch.bfloat16):
        reached = loss(paired(tensors))
    found = reached, *torch.autograd.grad(reached, tensors, materialize_grads=True)
    same(found, expected, rtol=1e-5, atol=1e-5)


def stays_finite(member: Member, loss: Formula) -> None:
    n, dim = 4, 6
    clouds = [torch.ones(n, dim), torch.zeros(n, dim), torch.eye(n, dim), torch.diag(torch.tensor([1.0, 0, 0, 1.0]))]
    clouds += [torch.full((n, dim), 1e-30), torch.eye(n, dim) * 1e-15]
    clouds += [torch.full((n, dim), 1e30), -torch.eye(n, dim) * 1e35] if member.scale_free else []
    for cloud, dtype in product(clouds, (torch.float32, torch.bfloat16)):
        tensors = tuple(cloud.to(dtype).clone().requires_grad_() for _ in range(6))
        assert all(torch.isfinite(found).all() for found in answer(loss, tensors))


def needs_memory_linear_in_the_batch(member: Member, loss: Formula) -> None:
    peaks = [peak_bytes(lambda n=n: answer(loss, leaves(n, 4))) for n in (64, 128)]
    assert peaks[1] <= 2.1 * peaks[0]


# Their wrong variants.


def value(member: Member) -> Formula:
    return lambda pair: member.objective(pair).value


def of_changed(member: Member, change: Callable[[Tensor], Tensor]) -> Formula:
    return lambda pair: value(member)(changed(pair, change))


def without_the_first_sample(member: Member) -> Formula:
    return of_changed(member, lambda z: z[1:])


def of_sorted_samples(member: Member) -> Formula:
    """Whatever the order was, it is the same one here."""

    def loss(pair: Pair) -> Tensor:
        order = pair.online[0][:, 0].argsort()
        return value(member)(changed(pair, lambda z: z[order]))

    return loss


def without_the_first_coordinate(member: Member) -> Formula:
    return of_changed(member, lambda z: z[:, 1:])


def of_divided_vectors(member: Member) -> Formula:
    return of_changed(member, lambda z: z / z.square().sum(dim=1, keepdim=True).sqrt())


def after_a_product(member: Member) -> Formula:
    return of_changed(member, lambda z: z @ torch.linspace(0.3, 1.3, z.shape[1]).diag())


def detached(member: Member) -> Formula:
    return of_changed(member, Tensor.detach)


def of_lengths(member: Member) -> Formula:
    return lambda pair: sum(z.square().sum() for part in PARTS for z in getattr(pair, part))


def with_weight_on_lengths(member: Member) -> Formula:
    return lambda pair: value(member)(pair) + 0.01 * of_lengths(member)(pair)


def with_a_smaller_gradient(member: Member) -> Formula:
    return lambda pair: 0.99 * value(member)(pair) + 0.01 * detached(member)(pair)


def with_noise(member: Member) -> Formula:
    return lambda pair: value(member)(pair) * (1 + 0.01 * torch.rand(()))


def with_weight_on_one_view(member: Member) -> Formula:
    def loss(pair: Pair) -> Tensor:
        return value(member)(pair) + 0.01 * sum(views[0].square().sum() for views in vars(pair).values())

    return loss


def averaged_over_both_orders(member: Member) -> Formula:
    return lambda pair: (value(member)(pair) + value(member)(swapped(pair))) / 2


def with_the_matrix_of_all_pairs(member: Member) -> Formula:
    return lambda pair: value(member)(pair) + 0 * (pair.online[0] @ pair.online[1].T).sum()


def off_by_one_part_in_a_billion(member: Member) -> Formula:
    return lambda pair: (1 + 1e-9) * value(member)(pair)


LAWS: dict[Callable[[Member, Formula], None], Callable[[Member], Formula]] = {
    follows_its_formula: lambda member: member.wrong,
    has_the_gradient_of_its_value: with_a_smaller_gradient,
    ignores_the_order_of_samples: lambda member: (
        without_the_first_sample(member) if member.order_free else of_sorted_samples(member)
    ),
    ignores_a_common_rotation: lambda member: (
        without_the_first_coordinate(member) if member.rotation_free else of_lengths(member)
    ),
    ignores_scale_where_normalised: lambda member: (
        with_weight_on_lengths(member) if member.scale_free else of_divided_vectors(member)
    ),
    ignores_which_view_is_first: lambda member: (
        with_weight_on_one_view(member) if member.swappable else averaged_over_both_orders(member)
    ),
    reaches_what_it_should: detached,
    is_the_same_every_time: with_noise,
    keeps_its_precision_under_autocast: after_a_product,
    stays_finite: of_divided_vectors,
    needs_memory_linear_in_the_batch: with_the_matrix_of_all_pairs,
}

every_member = pytest.mark.parametrize("member", ROSTER, ids=str)
every_blockwise_member = pytest.mark.parametrize("member", [m for m in ROSTER if m.blocks], ids=str)


@pytest.fixture
def hold(monkeypatch):
    """Let a blockwise member hold no more pairwise terms at once than told."""
    return lambda member, terms: member.blocks and monkeypatch.setattr(*member.blocks, terms)


def trials() -> list:
    """Pair members with laws; what is solved in hundreds of passes is spared the watch over every operation."""
    return [
        pytest.param(member, law, id=f"{law.__name__}-{member}")
        for member, law in product(ROSTER, LAWS)
        if not (member.slow and law is needs_memory_linear_in_the_batch)
    ]


@pytest.mark.parametrize(("member", "law"), trials())
def test_law(member, law, hold):
    hold(member, 256)
    law(member, value(member))


@pytest.mark.parametrize(("member", "law"), trials())
def test_law_refutes_a_wrong_variant(member, law, hold):
    hold(member, 256)
    with pytest.raises(AssertionError):
        law(member, LAWS[law](member))


@every_blockwise_member
@pytest.mark.parametrize("terms", [1, 35, 10**6])
def test_blocks_of_any_size_give_the_dense_answer(member, terms, hold):
    hold(member, terms)
    follows_its_formula(member, value(member))
    with pytest.raises(AssertionError):
        follows_its_formula(member, off_by_one_part_in_a_billion(member))


@every_member
def test_a_batch_too_small_to_compare_is_refused(member):
    assert torch.isfinite(value(member)(paired(leaves(member.fewest))))
    for n in range(1, member.fewest):
        with pytest.raises(BadInput, match=f"at least {member.fewest}, not {n}"):
            member.objective(paired(leaves(n)))


@every_member
def test_a_detached_target_gets_no_gradient_and_changes_no_other(member):
    def stopped(pair: Pair) -> Tensor:
        return value(member)(Pair(pair.online, pair.predicted, tuple(view.detach() for view in pair.target)))

    _, *whole = answer(value(member), leaves())
    _, *partial = answer(stopped, leaves())
    same(tuple(partial[:4]), tuple(whole[:4]), rtol=0, atol=0)
    assert not any(gradient.any() for gradient in partial[4:])
    assert any(gradient.any() for gradient in whole[4:]) == ("target" in member.reaches)


@every_member
def test_the_log_gets_detached_numbers(member):
    loss = member.objective(paired(leaves()))
    assert loss.value.requires_grad
    assert loss.parts
    assert all(part.shape == () and not part.requires_grad for part in loss.parts.values())


@every_member
def test_half_precision_is_computed_in_single_precision(member):
    found, *gradients = answer(value(member), leaves(5, 4, torch.bfloat16))
    exact = value(member)(paired(tuple(z.detach().to(torch.bfloat16).double() for z in leaves(5, 4))))
    assert found.dtype == torch.float32
    assert {gradient.dtype for gradient in gradients} == {torch.bfloat16}
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-5)


@every_member
def test_settings_go_through_plain_values_and_back(member):
    adapter = TypeAdapter(Objective)
    if not member.plain:
        with pytest.raises(PydanticSerializationError):
            adapter.dump_python(member.objective, mode="json")
        return
    assert adapter.validate_python(adapter.dump_python(member.objective, mode="json")) == member.objective


@every_member
def test_an_unknown_setting_is_refused(member):
    with pytest.raises(ValidationError):
        type(member.objective)(colour="red")


@pytest.mark.parametrize("temperature", [0, -1, float("nan")])
def test_a_temperature_that_is_not_positive_is_refused(temperature):
    with pytest.raises(ValidationError, match=r"greater than or equal to 0\.0001|a finite number"):
        InfoNCE(temperature)


def test_every_objective_of_the_room_is_in_the_roster():
    union, _ = get_args(Objective)
    assert {type(member.objective) for member in ROSTER} == set(get_args(union))
