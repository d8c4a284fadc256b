"""Laws of every objective, each with a wrong variant that the same check refutes."""

from collections.abc import Callable
from itertools import product

import torch
from memory import peak_bytes
from roster import Formula, Member
from torch import Tensor

from twofold.records import Pair

PARTS = ("online", "predicted", "target")
SHAPES = [(2, 3), (3, 1), (5, 4), (7, 2)]
EXACT = {"rtol": 1e-10, "atol": 1e-10}


def leaves(n: int = 5, dim: int = 4, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    draw = torch.Generator().manual_seed(10 * n + dim)
    return tuple(
        torch.randn(n, dim, generator=draw, dtype=torch.float64).to(dtype).requires_grad_() for _ in range(6)
    )


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


def same(found: tuple[Tensor, ...], expected: tuple[Tensor, ...], **tolerance: float) -> None:
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, **tolerance)


def differs(value: Tensor, other: Tensor) -> bool:
    return not torch.allclose(value, other, rtol=1e-6, atol=1e-6)


# The laws: each takes a member, whose facts it knows, and the loss that is on trial in its place.


def follows_its_formula(member: Member, loss: Formula) -> None:
    for n, dim in SHAPES:
        same(answer(loss, leaves(n, dim)), answer(member.formula, leaves(n, dim)), **EXACT)
        with torch.no_grad():
            torch.testing.assert_close(loss(paired(leaves(n, dim))), member.formula(paired(leaves(n, dim))), **EXACT)


def has_the_gradient_of_its_value(member: Member, loss: Formula) -> None:
    for n, dim in SHAPES[:3]:
        # Any upstream gradient but one, which backward could forget to multiply by.
        assert torch.autograd.gradcheck(lambda *z: -2.5 * loss(paired(z)), leaves(n, dim), raise_exception=False)


def ignores_the_order_of_samples(member: Member, loss: Formula) -> None:
    pair = paired(leaves())
    order = torch.tensor([3, 1, 4, 0, 2])
    torch.testing.assert_close(loss(changed(pair, lambda z: z[order])), loss(pair), **EXACT)


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
        found = answer(loss, tensors)
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


def leaving_out_the_first_sample(member: Member) -> Formula:
    return lambda pair: value(member)(changed(pair, lambda z: z[1:]))


def leaving_out_the_first_coordinate(member: Member) -> Formula:
    return lambda pair: value(member)(changed(pair, lambda z: z[:, 1:]))


def halving_a_coordinate_of_one_view(member: Member) -> Formula:
    def loss(pair: Pair) -> Tensor:
        halves = torch.ones_like(pair.online[0])
        halves[:, 0] = 0.5
        return value(member)(Pair(*((first, second * halves) for first, second in (pair.online, pair.predicted, pair.target))))

    return loss


def with_a_gradient_of_its_own(member: Member) -> Formula:
    def loss(pair: Pair) -> Tensor:
        right = value(member)(pair)
        return 0.99 * right + 0.01 * right.detach()

    return loss


def with_weight_on_the_length(member: Member) -> Formula:
    return lambda pair: value(member)(pair) + 0.01 * sum(z.square().sum() for part in PARTS for z in getattr(pair, part))


def detached(member: Member) -> Formula:
    return lambda pair: value(member)(changed(pair, Tensor.detach))


def with_noise(member: Member) -> Formula:
    return lambda pair: value(member)(pair) * (1 + 0.01 * torch.rand(()))


def after_a_product(member: Member) -> Formula:
    return lambda pair: value(member)(changed(pair, lambda z: z @ torch.linspace(0.3, 1.3, z.shape[1]).diag()))


def of_plainly_divided_vectors(member: Member) -> Formula:
    return lambda pair: value(member)(changed(pair, lambda z: z / z.square().sum(dim=1, keepdim=True).sqrt()))


def with_all_pairs(member: Member) -> Formula:
    return lambda pair: value(member)(pair) + 0 * (pair.online[0] @ pair.online[1].T).exp().sum()


def value(member: Member) -> Formula:
    return lambda pair: member.objective(pair).value


LAWS: dict[Callable[[Member, Formula], None], Callable[[Member], Formula]] = {
    follows_its_formula: lambda member: member.wrong,
    has_the_gradient_of_its_value: with_a_gradient_of_its_own,
    ignores_the_order_of_samples: leaving_out_the_first_sample,
    ignores_a_common_rotation: leaving_out_the_first_coordinate,
    ignores_scale_where_normalised: with_weight_on_the_length,
    ignores_which_view_is_first: halving_a_coordinate_of_one_view,
    reaches_what_it_should: detached,
    is_the_same_every_time: with_noise,
    keeps_its_precision_under_autocast: after_a_product,
    stays_finite: of_plainly_divided_vectors,
}
