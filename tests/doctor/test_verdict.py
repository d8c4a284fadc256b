import math
from dataclasses import replace

import pytest
import torch

from twofold.doctor import verdict
from twofold.evaluation import geometry

N, DIM = 400, 64


def noise(n=N, dim=DIM, seed=0):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))


def flat(rank):
    return noise(dim=rank) @ noise(rank, seed=1)


def power_law(exponent):
    return noise() * torch.arange(1, DIM + 1) ** (-exponent / 2)


ALL_ONE = noise(1)
CLOUDS = {
    "isotropic noise": (noise(), "alive"),
    "positive": (noise().relu(), "alive"),
    "far from zero": (noise() + 3, "alive"),
    "orthogonal clusters": (torch.eye(DIM)[torch.arange(N) % DIM], "alive"),
    "eigenvalues 1/j": (power_law(1.0), "alive"),
    "eigenvalues 1/j⁴": (power_law(4.0), "partial"),
    "ten clusters": (torch.eye(DIM)[torch.arange(N) % 10], "alive"),
    "rank 5": (flat(5), "alive"),
    "rank 2": (flat(2), "partial"),
    "a line": (flat(1), "partial"),
    "two clusters": (torch.eye(DIM)[torch.arange(N) % 2], "partial"),
    "constant": (ALL_ONE.repeat(N, 1), "collapsed"),
    "constant and rounding": (ALL_ONE * (1 + 1e-7 * noise()), "collapsed"),
    "constant and a little noise": (ALL_ONE + 1e-3 * noise(), "collapsed"),
    "one direction, many lengths": (ALL_ONE * noise(dim=1).exp(), "collapsed"),
    "zero": (torch.zeros(N, DIM), "collapsed"),
}


@pytest.fixture(scope="module")
def alive():
    return geometry(noise())


@pytest.mark.parametrize(("points", "state"), CLOUDS.values(), ids=CLOUDS)
def test_each_cloud_gets_its_verdict(points, state):
    cloud = geometry(points)
    assert verdict(cloud, cloud).state == state


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("name", ["isotropic noise", "rank 2", "constant and a little noise"])
def test_the_scale_of_an_embedding_changes_nothing(name, scale):
    points, state = CLOUDS[name]
    cloud = geometry(scale * points)
    assert verdict(cloud, cloud).state == state


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", ["isotropic noise", "rank 5", "constant"])
def test_the_precision_of_an_embedding_changes_nothing(name, dtype):
    points, state = CLOUDS[name]
    cloud = geometry(points.to(dtype))
    assert verdict(cloud, cloud).state == state


def test_constant_projections_are_a_collapse_whatever_is_left_of_the_features(alive):
    constant = geometry(CLOUDS["constant and a little noise"][0])
    assert verdict(alive, constant).state == "collapsed"
    assert verdict(constant, alive).state == "alive"  # what they are projected to still tells samples apart


def test_constant_features_are_a_collapse_whatever_the_projections_say(alive):
    assert verdict(geometry(CLOUDS["constant"][0]), alive).state == "collapsed"


def test_few_directions_count_in_the_features_only(alive):
    few = geometry(flat(2))
    assert verdict(few, alive).state == "partial"
    assert verdict(alive, few).state == "alive"


def test_projections_are_the_same_where_their_cosines_are_one_in_bfloat16(alive):
    apart = 2.0**-7
    assert torch.tensor(1 - apart / 4, dtype=torch.bfloat16) == 1
    assert torch.tensor(1 - 2 * apart, dtype=torch.bfloat16) != 1
    assert verdict(alive, replace(alive, spread=0.99 * apart)).state == "collapsed"
    assert verdict(alive, replace(alive, spread=1.01 * apart)).state == "alive"


def test_few_directions_are_less_than_a_quarter_of_the_entropy_of_isotropic_noise(alive):
    quarter = math.exp(math.log(alive.effective_rank) / 4)
    assert verdict(replace(alive, effective_rank=0.95 * quarter), alive).state == "partial"
    assert verdict(replace(alive, effective_rank=1.05 * quarter), alive).state == "alive"


@pytest.mark.parametrize(("n", "dim"), [(3, 200), (20, 200), (200, 2), (200, 1)])
def test_few_samples_or_dimensions_are_no_collapse(n, dim):
    cloud = geometry(noise(n, dim))
    assert verdict(cloud, cloud).state == "alive"


def test_the_reasons_carry_the_measured_numbers():
    features, projections = geometry(flat(5)), geometry(noise() + 1)
    reasons = " ".join(verdict(features, projections).reasons)
    directions = torch.nn.functional.normalize(noise() + 1)
    cosines = (directions @ directions.T).fill_diagonal_(0).sum() / (N * (N - 1))
    assert f"mean cosine of {cosines:.4f}" in reasons
    assert f"effective rank of {features.effective_rank:.1f} in {DIM} dimensions" in reasons


def test_with_two_views_it_says_how_much_nearer_they_are_than_two_samples(alive):
    points = noise()
    strangers, twins = geometry(points, points, noise(seed=1)), geometry(points, points, points + 0.1 * noise(seed=1))
    assert "two views of a sample are 0.01 times as far apart" in verdict(alive, twins).reasons[-1]
    share = float(verdict(alive, strangers).reasons[-1].split("are ")[1].split(" times")[0])
    assert share == pytest.approx(1, abs=0.05)
    assert len(verdict(alive, alive).reasons) == len(verdict(alive, twins).reasons) - 1


@pytest.mark.parametrize(("points", "state"), CLOUDS.values(), ids=CLOUDS)
def test_every_verdict_is_a_sentence(points, state):
    cloud = geometry(points)
    found = verdict(cloud, cloud)
    assert found.sentence[0].isupper()
    assert found.sentence.endswith(".")
    assert all("nan" not in reason for reason in found.reasons)
