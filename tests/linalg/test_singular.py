"""Singular vectors of sparse matrices beside a dense decomposition in double precision."""

import numpy as np
import pytest
import scipy.sparse as sp

from relae.linalg import as_csr, right_singular_vectors


def low_rank(rows, columns, rank, seed=0):
    """A sparse matrix with clear first singular values, and noise below them."""
    rng = np.random.default_rng(seed)
    groups = np.arange(rows)[:, None] % rank == np.arange(columns)[None] % rank
    chance = np.where(groups, np.linspace(0.9, 0.3, rank)[np.arange(columns) % rank], 0.01)
    return (rng.random((rows, columns)) < chance).astype(np.float64)


@pytest.mark.parametrize("shape", [(40, 30), (30, 40), (400, 300), (300, 400)])
def test_they_span_what_a_dense_decomposition_finds(shape):
    rank = 6 if min(shape) > 100 else 3  # the larger ones are not decomposed as a whole
    x = low_rank(*shape, rank)
    _, values, rows = np.linalg.svd(x)
    assert values[rank - 1] > 1.1 * values[rank]
    vectors = right_singular_vectors(as_csr(x, np.float32), rank)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors.T @ vectors, np.eye(rank), atol=1e-5)
    assert np.allclose(vectors @ vectors.T, rows[:rank].T @ rows[:rank], atol=2e-3)
    assert np.allclose(np.linalg.norm(x @ vectors, axis=0), values[:rank], rtol=1e-4)  # falling


def test_a_large_matrix_of_a_lower_rank():
    x = np.zeros((300, 400))
    x[:100, :200], x[100:200, 200:390] = 1.0, 0.5
    vectors = right_singular_vectors(as_csr(x, np.float32), 5)
    assert np.allclose(np.linalg.norm(vectors, axis=0), [1, 1, 0, 0, 0], atol=1e-4)
    assert np.allclose(x @ vectors @ vectors.T, x, atol=1e-4)


def test_the_same_matrix_gives_the_same_vectors():
    x = as_csr(sp.random_array((300, 400), density=0.05, rng=np.random.default_rng(0)), np.float32)
    assert np.array_equal(right_singular_vectors(x, 6), right_singular_vectors(x, 6))


def test_progress_rises_to_the_end():
    done = []
    right_singular_vectors(as_csr(low_rank(300, 400, 6), np.float32), 6, done.append)
    assert done == sorted(done)
    assert done[-1] == 1.0
