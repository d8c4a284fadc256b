import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from twofold.covariance import eigen, eigen_alignment


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def rotation(dim, seed=0):
    return torch.linalg.qr(draw(dim, dim, seed=seed)).Q


def with_eigenvalues(values, seed=0):
    vectors = rotation(len(values), seed)
    return vectors @ torch.tensor(values, dtype=torch.float64).diag() @ vectors.T


@given(dim=st.integers(1, 12), seed=st.integers(0, 99))
def test_values_descend_and_rebuild_the_matrix(dim, seed):
    matrix = draw(dim, dim, seed=seed)
    matrix = matrix + matrix.T
    values, vectors = eigen(matrix)
    assert torch.equal(values, values.sort(descending=True).values)
    torch.testing.assert_close(vectors @ values.diag() @ vectors.T, matrix, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(vectors.T @ vectors, torch.eye(dim, dtype=torch.float64), rtol=0, atol=1e-12)


def test_each_vector_belongs_to_its_own_value():
    matrix = with_eigenvalues([3.0, 1.0, -2.0])
    values, vectors = eigen(matrix)
    torch.testing.assert_close(values, torch.tensor([3.0, 1.0, -2.0], dtype=torch.float64))
    torch.testing.assert_close(matrix @ vectors, vectors * values)
    assert not torch.allclose(matrix @ vectors, vectors * values.flip(0))


def test_only_the_symmetric_part_is_seen():
    matrix = draw(5, 5)
    assert torch.equal(eigen(matrix).values, eigen(matrix.T).values)
    assert torch.equal(eigen(matrix).values, eigen((matrix + matrix.T) / 2).values)


@pytest.mark.parametrize(
    "eigenvalues",
    [[1.0] * 64, [0.0] * 64, [5.0] * 3 + [1e-6] * 30 + [0.0] * 31, [1.0] * 32 + [1.0 + 1e-7] * 32],
    ids=["identity", "zero", "low rank", "nearly equal"],
)
def test_repeated_eigenvalues_keep_orthogonal_vectors_in_single_precision(eigenvalues):
    matrix = with_eigenvalues(eigenvalues).float()
    values, vectors = eigen(matrix)
    assert values.dtype == vectors.dtype == torch.float32
    rounding = 4 * torch.finfo(torch.float32).eps
    torch.testing.assert_close(vectors.T @ vectors, torch.eye(64), rtol=0, atol=rounding)
    torch.testing.assert_close(
        vectors @ values.diag() @ vectors.T, matrix, rtol=0, atol=rounding * max(1, max(eigenvalues))
    )


def test_half_precision_is_answered_in_single_precision():
    assert eigen(torch.eye(3, dtype=torch.bfloat16)).vectors.dtype == torch.float32


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("dim", [1, 2, 3, 40])
def test_what_is_no_number_stays_none_and_does_not_raise(bad, dim):
    for place in {(0, 0), (0, dim - 1), (dim - 1, dim - 1)}:
        matrix = torch.eye(dim)
        matrix[place] = bad
        values, vectors = eigen(matrix)
        assert values.isnan().all()
        assert vectors.isnan().all()
    assert eigen(torch.eye(dim)).values.isfinite().all()


def test_a_predictor_that_shares_the_eigenvectors_is_aligned():
    correlation = with_eigenvalues([4.0, 2.0, 1.0, 0.5])
    predictor = with_eigenvalues([0.1, 3.0, -2.0, 0.0])
    alignment = eigen_alignment(correlation, predictor)
    torch.testing.assert_close(alignment[:3], torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64))
    elsewhere = eigen_alignment(correlation, with_eigenvalues([0.1, 3.0, -2.0, 0.0], seed=1))
    assert (elsewhere[:3].abs() < 0.999).all()


def test_where_the_image_vanishes_the_alignment_is_zero():
    correlation = torch.tensor([3.0, 2.0, 1.0]).diag()
    assert torch.equal(eigen_alignment(correlation, torch.zeros(3, 3)), torch.zeros(3))
    kept = torch.tensor([1.0, 0.0, 1.0])
    assert torch.equal(eigen_alignment(correlation, kept.diag()), kept)


def test_a_quarter_turn_is_aligned_with_nothing():
    quarter_turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    torch.testing.assert_close(eigen_alignment(torch.tensor([2.0, 1.0]).diag(), quarter_turn), torch.zeros(2))


@given(dim=st.integers(1, 8), seed=st.integers(0, 99))
def test_alignment_is_a_cosine_of_each_vector_and_its_image(dim, seed):
    correlation = draw(dim, dim, seed=seed)
    correlation = correlation @ correlation.T
    predictor = draw(dim, dim, seed=seed + 100)
    vectors = torch.linalg.eigh(correlation).eigenvectors.flip(1)
    expected = [float(torch.cosine_similarity(u, predictor @ u, dim=0)) for u in vectors.T]
    found = eigen_alignment(correlation, predictor)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-9)


def test_the_order_is_that_of_the_eigenvalues():
    correlation, predictor = torch.tensor([1.0, 3.0, 2.0]).diag(), torch.tensor([-1.0, 1.0, 0.0]).diag()
    assert torch.equal(eigen_alignment(correlation, predictor), torch.tensor([1.0, 0.0, -1.0]))
