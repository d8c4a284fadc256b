"""What is true of the contrastive family beyond the laws of all objectives."""

from itertools import product

import pytest
import torch
from pydantic import ValidationError
from roster import ROSTER
from test_laws import answer, leaves, paired, stays_finite, value
from torch.nn import functional as F

from twofold.covariance import contrastive_covariance
from twofold.covariance.sphere import ready, unit
from twofold.errors import BadInput
from twofold.objectives import (
    BYOL,
    MINE,
    NCE,
    BarlowTwins,
    Custom,
    Direct,
    Entropy,
    Implied,
    InfoNCE,
    Inverse,
    LiftedStructured,
    MarginTriplet,
    NPlusOneTuplet,
    Pairing,
    PairWeighted,
    Regularised,
    SimpleContrastive,
    SoftTriplet,
    Square,
    Triplet,
    Tsallis,
    Uniformity,
)
from twofold.objectives.contrastive import TwoFunctions
from twofold.records import Pair

FAMILY = [member for member in ROSTER if isinstance(member.objective, TwoFunctions)]
every_member = pytest.mark.parametrize("member", FAMILY, ids=str)


def by_energy(member, tensors, intra=1.0):
    """−½ ∂ tr C_α[z, z] with α of alpha_cl, eq. 4 from the whole matrix, over the number of anchors."""
    first, second = tensors[0], tensors[1]
    loss = member.objective
    z = (unit(first), unit(second)) if loss.normalised else (first, second)
    n = len(first)
    anchors, positives = (torch.cat(z), torch.cat(z[::-1])) if loss.negatives == "views" else z
    total = len(anchors)
    own = (anchors - positives).square().sum(dim=1) / 2
    other = (anchors[:, None] - anchors[None]).square().sum(dim=2) / 2
    rows = torch.arange(total)
    pairs = torch.ones(total, total, dtype=torch.bool)
    if isinstance(loss.negatives, int):
        pairs = torch.zeros(total, total, dtype=torch.bool)
        for k in range(loss.negatives):
            pairs[rows, (rows + 1 + k) % total] = True
    pairs[rows, rows] = False
    if loss.negatives == "views":
        pairs[rows, (rows + n) % total] = False
    u = (own[:, None] - other).masked_fill(~pairs, -torch.inf)
    alpha = loss.importance(u.detach()).masked_fill(~pairs, 0.0)
    spread = contrastive_covariance(alpha, (anchors, anchors)).trace()
    attraction = (alpha.sum(dim=1) * (anchors - positives).square().sum(dim=1)).sum()
    energy = spread - intra * attraction
    return torch.autograd.grad(-energy / 2 / total, (first, second))


@every_member
def test_the_gradient_is_minus_half_that_of_the_energy(member):
    tensors = leaves(5, 4)
    _, *gradients = answer(value(member), tensors)
    for found, expected in zip(gradients[:2], by_energy(member, tensors), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)
    for found, expected in zip(gradients[:2], by_energy(member, tensors, intra=0.0), strict=True):
        assert not torch.allclose(found, expected, rtol=1e-6, atol=1e-8)


@every_member
def test_weighing_pairs_by_its_own_importance_gives_its_own_gradient(member):
    loss = member.objective
    weighted = PairWeighted(Implied(loss), normalised=loss.normalised, negatives=loss.negatives)
    _, *expected = answer(value(member), leaves())
    _, *found = answer(lambda pair: weighted(pair).value, leaves())
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("temperature", [0.05, 0.5])
def test_simclr_has_the_positive_in_its_denominator(temperature):
    tensors = leaves(6, 4)
    z = unit(torch.cat(tensors[:2]))
    logits = (z @ z.T / temperature).fill_diagonal_(-torch.inf)
    cross_entropy = F.cross_entropy(logits, torch.arange(12).roll(6))
    pair = paired(tensors)
    torch.testing.assert_close(InfoNCE(temperature, 1.0)(pair).value, temperature * cross_entropy)
    assert not torch.allclose(InfoNCE(temperature, 0.0)(pair).value, temperature * cross_entropy)


@pytest.mark.parametrize("negatives", [1, 2, 5])
@pytest.mark.parametrize("loss", [SimpleContrastive(), MarginTriplet(0.3, 0.2), NCE(0.3)], ids=lambda loss: loss.kind)
def test_of_distances_pushes_and_pulls_equally(loss, negatives):
    """dual_networks, Thm 2: ∂L/∂r₊ > 0, ∂L/∂r₋ < 0 and their sum is 0."""
    draw = torch.Generator().manual_seed(0)
    own = torch.rand(4, generator=draw, dtype=torch.float64).requires_grad_()
    other = torch.rand(4, negatives, generator=draw, dtype=torch.float64).requires_grad_()
    pull, push = torch.autograd.grad(loss.of_distances(own, other).sum(), (own, other))
    assert (pull > 0).all()
    assert (push < 0).all()
    torch.testing.assert_close(pull + push.sum(dim=1), torch.zeros(4, dtype=torch.float64))


TEMPERATURES, WAYS = (0.01, 10.0), (False, True)
IMPORTANCES = [
    *(kind(t) for kind, t in product((Entropy, Inverse, Square, Tsallis), TEMPERATURES)),
    *(Direct(p, t) for p, t in product((1.5, 4.0), TEMPERATURES)),
    *(Implied(kind(0.01)) for kind in (InfoNCE, SoftTriplet, NCE, MarginTriplet)),
    *(Implied(kind()) for kind in (MINE, LiftedStructured, Triplet)),
]
EXTREMES = [
    *(kind(t) for kind, t in product((SoftTriplet, MarginTriplet, NCE), TEMPERATURES)),
    *(PairWeighted(importance, through) for importance, through in product(IMPORTANCES, WAYS)),
]


@pytest.mark.parametrize("loss", EXTREMES, ids=str)
def test_extreme_temperatures_stay_finite(loss):
    member = next(m for m in ROSTER if m.scale_free and isinstance(m.objective, Pairing))
    stays_finite(member, lambda pair: loss(pair).value)


@pytest.mark.parametrize("member", [m for m in ROSTER if not m.slow], ids=str)
def test_a_number_that_is_none_is_seen_in_the_loss(member):
    tensors = [z.detach().clone() for z in leaves(6, 4)]
    for z in tensors:
        z[1, 2] = torch.nan
    assert value(member)(paired(tuple(tensors))).isnan()


@pytest.mark.parametrize(
    "loss", [InfoNCE(), PairWeighted(), BYOL(), BarlowTwins(), Uniformity()], ids=lambda it: it.kind
)
def test_a_batch_of_none_is_refused(loss):
    views = torch.ones(0, 4), torch.ones(0, 4)
    with pytest.raises(BadInput, match="a row for each sample"):
        loss(Pair(views, views, views))


@pytest.mark.parametrize("shapes", [((5, 4), (4, 4)), ((5, 4), (5, 3)), ((5,), (5,))])
def test_views_that_do_not_fit_are_refused(shapes):
    with pytest.raises(BadInput, match="a row for each sample"):
        ready((torch.ones(shapes[0]), torch.ones(shapes[1])))


@pytest.mark.parametrize(
    ("r", "sentence"),
    [
        (lambda a: 2 * a, "strictly concave between 0 and 1, and its second derivative at 0.01 is 0"),
        (lambda a: a**2, "strictly concave.* is 2"),
        (lambda a: torch.ones(99, dtype=torch.float64), "torch functions of its argument"),
    ],
)
def test_a_regulariser_without_a_single_optimum_is_refused(r, sentence):
    with pytest.raises((BadInput, ValidationError), match=sentence):
        Regularised(r)


def test_a_regulariser_may_be_vertical_at_both_ends():
    own, other = torch.zeros(1, dtype=torch.float64), torch.tensor([[0.1, 0.5, 3.0]], dtype=torch.float64)
    alpha = Regularised(lambda a: -a * a.log() - (1 - a) * (1 - a).log())(own, other)[0]
    prices = ((1 - alpha) / alpha).log() - 2 * other[0]
    torch.testing.assert_close(prices, prices.mean().expand(3))
    assert alpha.sum() == pytest.approx(1)


def test_a_hundred_thousand_negatives_have_weights():
    other = torch.rand(1, 100_000, generator=torch.Generator().manual_seed(0))
    for importance in (Inverse(0.5, 20.0), Inverse(0.01, 1.1), Square(), Tsallis(0.5, 1.01), Direct(), Entropy(0.01)):
        assert importance(torch.zeros(1), other).sum().item() == pytest.approx(1, abs=1e-4)


def test_negatives_are_as_many_as_asked_for():
    seen = []
    custom = Custom(lambda own, other: seen.append(other.isfinite().sum(dim=1)) or torch.ones_like(other))
    for negatives, count in (("views", 8), ("anchors", 4), (3, 3)):
        PairWeighted(custom, negatives=negatives)(paired(leaves(5, 4)))
        assert {int(n) for n in seen.pop()} == {count}


def test_nplus1_is_infonce_of_one():
    pair = paired(leaves())
    torch.testing.assert_close(NPlusOneTuplet()(pair).value, InfoNCE(1.0, 1.0)(pair).value)
