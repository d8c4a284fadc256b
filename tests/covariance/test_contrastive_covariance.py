import pytest
import torch

from twofold.covariance import contrastive_covariance


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def printed(alpha, a, b):
    """Write alpha_cl, eq. 5 pair by pair."""
    n = len(a[0])
    total = torch.zeros(a[0].shape[1], b[0].shape[1], dtype=torch.float64)
    for i in range(n):
        for j in range(n):
            if i != j:
                total += alpha[i, j] * torch.outer(a[0][i] - a[0][j], b[0][i] - b[0][j])
                total -= alpha[i, j] * torch.outer(a[0][i] - a[1][i], b[0][i] - b[1][i])
    return total


@pytest.mark.parametrize("n", [2, 5, 9])
def test_it_is_the_sum_over_pairs(n):
    alpha = draw(n, n).abs()
    a, b = (draw(n, 3, seed=1), draw(n, 3, seed=2)), (draw(n, 4, seed=3), draw(n, 4, seed=4))
    torch.testing.assert_close(contrastive_covariance(alpha, a, b), printed(alpha, a, b))
    torch.testing.assert_close(contrastive_covariance(alpha, a), printed(alpha, a, a))
    assert not torch.allclose(contrastive_covariance(alpha.T, a, b), printed(alpha, a, b))


def test_a_sample_is_no_pair_with_itself():
    alpha, z = draw(4, 4).abs(), (draw(4, 3), draw(4, 3, seed=1))
    lifted = alpha + 7 * torch.eye(4, dtype=torch.float64)
    torch.testing.assert_close(contrastive_covariance(lifted, z), contrastive_covariance(alpha, z))


def test_it_is_the_plain_covariance_where_all_pairs_weigh_the_same_and_views_agree():
    x = draw(6, 3)
    alpha = torch.full((6, 6), 1 / 72, dtype=torch.float64)
    centred = x - x.mean(dim=0)
    torch.testing.assert_close(contrastive_covariance(alpha, (x, x)), centred.T @ centred / 6)


def test_what_all_samples_have_in_common_costs_no_digits():
    alpha, z = draw(8, 8).abs().float(), (draw(8, 3), draw(8, 3, seed=1))
    expected = printed(alpha.double(), z, z)
    far = tuple((view + 1000).float() for view in z)
    torch.testing.assert_close(contrastive_covariance(alpha, far).double(), expected, rtol=1e-3, atol=1e-2)
    assert contrastive_covariance(alpha, tuple(view.bfloat16() for view in z)).dtype == torch.float32


def test_the_weight_of_a_sample_with_itself_is_never_read():
    alpha, z = draw(4, 4).abs(), (draw(4, 3), draw(4, 3, seed=1))
    expected = contrastive_covariance(alpha, z)
    torch.testing.assert_close(contrastive_covariance(alpha.fill_diagonal_(torch.inf), z), expected)
