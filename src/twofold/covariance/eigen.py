"""Eigenvalues and eigenvectors of symmetric matrices, and how well a second matrix shares the vectors."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Eigen(NamedTuple):
    """Eigenvalues from the largest to the smallest; column j of ``vectors`` belongs to value j."""

    values: Float[Tensor, " dim"]
    vectors: Float[Tensor, "dim dim"]


def eigen(matrix: Float[Tensor, "dim dim"]) -> Eigen:
    """Decompose a symmetric matrix as U diag(s) Uᵀ (directpred, Sec. 4), s in descending order.

    Only the symmetric part of the matrix is seen. LAPACK's float32 solver loses orthogonality and may not
    converge for repeated eigenvalues, so it runs in float64, and the answer has the input's precision (at
    least float32). A matrix with NaN or infinite entries has NaN eigenvalues and eigenvectors, so that the
    caller's own check of its loss can speak.
    """
    precision = torch.promote_types(matrix.dtype, torch.float32)
    symmetric = (matrix.double() + matrix.double().T) / 2
    finite = symmetric.isfinite().all()  # LAPACK raises for some of the others and answers with numbers for some
    values, vectors = torch.linalg.eigh(symmetric.where(finite, 0.0))
    values, vectors = values.where(finite, torch.nan), vectors.where(finite, torch.nan)
    return Eigen(values.flip(-1).to(precision), vectors.flip(-1).to(precision))


def eigen_alignment(
    correlation: Float[Tensor, "dim dim"], predictor: Float[Tensor, "dim dim"]
) -> Float[Tensor, " dim"]:
    """Cosine between u_j and W_p u_j for every eigenvector u_j of F (directpred, Fig. 2, third column).

    In descending order of F's eigenvalues. It is 1 for all j when W_p commutes with F and has positive
    eigenvalues (Theorem 3 says that training leads there), −1 where the shared eigenvalue is negative, and 0
    where W_p u_j vanishes. W_p need not be symmetric. Inside an eigenspace of dimension two or more the
    vectors u_j are any basis, and so is the answer.
    """
    vectors = eigen(correlation).vectors
    images = predictor.to(vectors.dtype) @ vectors
    lengths: Tensor = torch.linalg.vector_norm(images, dim=0)
    return (vectors * images).sum(dim=0) / lengths.where(lengths > 0, 1)
