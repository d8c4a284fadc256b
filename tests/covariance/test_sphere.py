import pytest
import torch

from twofold.covariance.sphere import unit, widen


def points(dtype=torch.float64):
    return torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("scale", [1e-15, 1.0, 1e35])
def test_every_row_gets_length_one_without_overflow(scale):
    z = points(torch.float32)
    torch.testing.assert_close(unit(scale * z), unit(z))
    torch.testing.assert_close(torch.linalg.vector_norm(unit(scale * z), dim=1), torch.ones(6))
    plainly_divided = 1e35 * z / (1e35 * z).square().sum(dim=1, keepdim=True).sqrt()
    assert not torch.allclose(plainly_divided, unit(z))


def test_the_gradient_is_that_of_the_division_by_the_length():
    z = points().requires_grad_()
    assert torch.autograd.gradcheck(unit, z)
    (gradient,) = torch.autograd.grad(unit(z)[:, 0].sum(), z)
    torch.testing.assert_close((gradient * z).sum(dim=1), torch.zeros(6, dtype=torch.float64))


def test_a_zero_row_stays_zero_and_gets_no_gradient():
    z = points(torch.float32)
    z[2] = 0
    z[3] = 1e-30
    z.requires_grad_()
    unit(z).sum().backward()
    assert not unit(z)[2:4].any()
    assert not z.grad[2:4].any()
    assert z.grad[:2].any()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_half_precisions_are_widened(given, expected):
    assert widen(points(given)).dtype == expected
