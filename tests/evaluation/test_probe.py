import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from twofold.errors import BadInput
from twofold.evaluation.probe import CHOOSING, FINISHED, STRENGTHS, LinearProbe, standard


def cloud(n, dim=6, seed=0, dtype=torch.float64):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def labelled(n=300, dim=6, classes=4, seed=0, dtype=torch.float32):
    """Overlapping classes: features of different sizes and places, correlated with each other."""
    known = torch.randint(classes, (n,), generator=torch.Generator().manual_seed(seed))
    points = cloud(n, dim, seed) + 2 * cloud(classes, dim, 1000)[known]
    return (10 + (points @ cloud(dim, dim, 1001)) * torch.logspace(-2, 2, dim)).to(dtype), known


def fitted(points, known, **others):
    return LinearProbe.fit(points, known, *labelled(seed=1, dim=points.shape[1]), **others)


def loss_of(probe, points, known, weight, bias):
    """E[−log softmax] + λ/2 Σ w², written with what scikit-learn takes to be standardised features."""
    features = torch.from_numpy(StandardScaler().fit_transform(points.double().numpy()))
    negative_logs = torch.nn.functional.cross_entropy(features @ weight.T + bias, known)
    return negative_logs + probe.strength / 2 * weight.square().sum()


def slope(probe, points, known, weight):
    leaves = weight.clone().requires_grad_(), probe.bias.clone().requires_grad_()
    gradients = torch.autograd.grad(loss_of(probe, points, known, *leaves), leaves)
    return max(float(gradient.abs().max()) for gradient in gradients)


@pytest.fixture(scope="module")
def problem():
    return labelled()


@pytest.mark.parametrize("strength", [10.0, 0.1, 1e-3, 1e-6])
@pytest.mark.parametrize("classes", [3, 5])
def test_it_agrees_with_scikit_learn(strength, classes, monkeypatch):
    monkeypatch.setattr("twofold.evaluation.probe.STRENGTHS", (strength,))
    points, known = labelled(classes=classes)
    probe = fitted(points, known)
    scaler = StandardScaler().fit(points.double().numpy())
    features = scaler.transform(points.double().numpy())

    def rival(strength):
        model = LogisticRegression(C=1 / (strength * len(points)), tol=1e-10, max_iter=10_000)
        return torch.from_numpy(model.fit(features, known.numpy()).predict_proba(features))

    found = probe.logits(points).softmax(dim=1)
    torch.testing.assert_close(found, rival(strength), rtol=0, atol=1e-4)
    assert (found - rival(strength * 2)).abs().max() > 1e-3  # another strength would be noticed


def test_the_gradient_vanishes_at_the_end(problem):
    points, known = problem
    probe = fitted(points, known)
    assert slope(probe, points, known, probe.weight) < 10 * FINISHED < CHOOSING
    assert slope(probe, points, known, 1.001 * probe.weight) > 10 * FINISHED


def test_the_bias_is_not_held_back():
    points, known = torch.zeros(100, 2), (torch.arange(100) < 10).long()
    probe = LinearProbe.fit(points, known, points, known)
    torch.testing.assert_close(
        probe.logits(points[:1]).softmax(dim=1), torch.tensor([[0.9, 0.1]], dtype=torch.float64), rtol=0, atol=1e-6
    )


def test_the_strength_is_the_one_that_does_best_on_validation():
    points, known = labelled(60, 40)
    validation, truth = labelled(400, 40, seed=1)
    probe = LinearProbe.fit(points, known, validation, truth)
    reached = {}
    for strength in STRENGTHS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("twofold.evaluation.probe.STRENGTHS", (strength,))
            reached[strength] = LinearProbe.fit(points, known, validation, truth).accuracy(validation, truth)
    assert probe.accuracy(validation, truth) == max(reached.values()) > min(reached.values())
    assert probe.strength == max(strength for strength, share in reached.items() if share == max(reached.values()))


def test_among_equals_the_stronger_regularisation_wins(problem):
    points, known = problem
    probe = LinearProbe.fit(points, known, points, torch.full_like(known, 99))  # nothing is ever right
    assert probe.strength == max(STRENGTHS)


def test_validation_samples_choose_the_strength_and_nothing_else(problem, monkeypatch):
    monkeypatch.setattr("twofold.evaluation.probe.STRENGTHS", (0.01,))
    points, known = problem
    probe, other = (LinearProbe.fit(points, known, *labelled(seed=seed)) for seed in (1, 2))
    assert torch.equal(probe.weight, other.weight)
    assert torch.equal(probe.mean, other.mean)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_scale_and_place_of_features_play_no_part(problem, scale):
    (points, known), (validation, truth) = problem, labelled(seed=1)
    probe = LinearProbe.fit(points, known, validation, truth)
    moved = LinearProbe.fit(scale * points.double() - 7, known, scale * validation.double() - 7, truth)
    assert moved.strength == probe.strength
    found, expected = moved.logits(scale * points.double() - 7), probe.logits(points)
    torch.testing.assert_close(found.softmax(dim=1), expected.softmax(dim=1), rtol=0, atol=1e-4)
    assert not torch.allclose(moved.logits(points).softmax(dim=1), expected.softmax(dim=1), atol=0.1)


def test_one_class_is_always_the_answer(problem):
    points, _ = problem
    probe = LinearProbe.fit(points, torch.full((300,), 7), points, torch.full((300,), 7))
    assert probe.predict(points).unique().tolist() == [7]
    assert probe.logits(points).isfinite().all()


def test_labels_keep_their_names_when_some_are_missing(problem):
    points, known = problem
    named = torch.tensor([2, 5, 11, 40])[known]
    probe, plain = LinearProbe.fit(points, named, points, named), LinearProbe.fit(points, known, points, known)
    assert torch.equal(probe.predict(points), torch.tensor([2, 5, 11, 40])[plain.predict(points)])
    assert probe.accuracy(points, torch.full_like(known, 3)) == 0


@pytest.mark.parametrize("dim", [50, 200])
def test_more_features_than_samples_are_fitted(dim):
    points, known = cloud(30, dim, dtype=torch.float32), torch.arange(30) % 3
    probe = LinearProbe.fit(points, known, points, known)
    assert probe.accuracy(points, known) == 1
    assert slope(probe, points, known, probe.weight) < 10 * FINISHED


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_a_feature_that_is_constant_up_to_rounding_counts_for_nothing(dtype):
    known = torch.arange(300) % 3
    constant = torch.tensor([3.0, 1e-4, 7e5], dtype=dtype)
    last_digits = torch.nextafter(constant, 2 * constant) - constant
    leaking = constant + last_digits * torch.nn.functional.one_hot(known, 3).to(dtype)  # the label, by one rounding
    exact = leaking.double()
    assert standard(leaking)[1].isinf().all()
    assert (exact.std(dim=0) > 0).all()
    assert LinearProbe.fit(leaking, known, leaking, known).accuracy(leaking, known) == pytest.approx(1 / 3)
    larger = constant + 8 * last_digits * torch.nn.functional.one_hot(known, 3).to(dtype)
    assert LinearProbe.fit(larger, known, larger, known).accuracy(larger, known) == 1


def test_a_constant_feature_changes_nothing_even_where_it_varies_later(problem):
    points, known = problem
    more = torch.cat((points, torch.full((300, 1), 0.1)), dim=1)
    later = torch.cat((points, cloud(300, 1, dtype=torch.float32)), dim=1)
    probe, plain = LinearProbe.fit(more, known, more, known), LinearProbe.fit(points, known, points, known)
    assert not probe.weight[:, -1].any()
    found, expected = probe.logits(later).softmax(dim=1), plain.logits(points).softmax(dim=1)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_a_small_feature_beside_a_large_one_is_no_rounding():
    known = torch.arange(200) % 2
    points = torch.stack((1e9 * cloud(200, 1)[:, 0], (2.0 * known - 1) * 1e-9), dim=1).float()
    assert LinearProbe.fit(points, known, points, known).accuracy(points, known) == 1


def test_what_is_no_number_is_refused(problem):
    points, known = problem
    broken = points.clone()
    broken[4, 2], broken[9, 0] = torch.nan, torch.inf
    with pytest.raises(BadInput, match="2 of 300 rows have NaN or infinite entries, first row 4"):
        fitted(broken, known)


def test_it_tells_how_far_it_is(problem):
    heard = []
    fitted(*problem, progress=lambda *told: heard.append(told))
    assert heard == [("linear probe", done, len(STRENGTHS)) for done in range(len(STRENGTHS) + 1)]


def test_accuracy_is_the_share_of_right_answers(problem):
    points, known = problem
    probe = fitted(points, known)
    answers = probe.predict(points)
    assert probe.accuracy(points, answers) == 1
    answers[:75] += 1
    assert probe.accuracy(points, answers) == 0.75
