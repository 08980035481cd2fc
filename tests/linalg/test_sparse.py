"""Gram matrices and products with sparse matrices, beside dense ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from relae.linalg import as_csr, dense_sparse, gram, quadratic_forms, sparse_dense, sparse_sparse, transpose

DTYPES = [np.float32, np.float64]
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-13}
SHAPES = st.tuples(st.integers(0, 9), st.integers(1, 9))
VALUES = st.sampled_from([0.0, 0.0, 0.0, 1.0, -2.0, 0.25])


def random_sparse(rows, columns, density=0.2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < density)


def close(found, expected, dtype):
    assert found.shape == expected.shape
    assert found.dtype == dtype
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    assert np.abs(found - expected).max(initial=0.0) <= TOLERANCE[dtype] * scale


# --- CSR ---------------------------------------------------------------------------------------------------------


@given(SHAPES.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=VALUES)))
def test_transpose(dense):
    turned = transpose(as_csr(dense, np.float64))
    assert turned.format == "csr"
    assert turned.has_canonical_format
    assert turned.indices.dtype == np.int32
    assert np.array_equal(turned.toarray(), dense.T)


def test_a_good_csr_is_shared():
    matrix = sp.csr_array(np.eye(3, dtype=np.float32))
    assert np.shares_memory(as_csr(matrix, np.float32).data, matrix.data)


def test_a_bad_csr_is_repaired_in_a_copy():
    matrix = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    found = as_csr(matrix, np.float64)
    assert found.toarray().tolist() == [[2, 0, 4]]
    assert found.has_canonical_format
    assert matrix.indices.tolist() == [2, 0, 2]
    assert matrix.data.tolist() == [1, 2, 3]


def test_column_indices_become_32_bit():
    matrix = sp.csr_array(np.eye(3))
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    assert as_csr(matrix, np.float64).indices.dtype == np.int32


# --- Gram --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (13, 29), (60, 17)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_gram_fills_the_lower_triangle_only(shape, dtype, weighted, turned):
    x = random_sparse(*shape)
    rows = x.T if turned else x  # Xᵀ D X (items) or X D Xᵀ (users)
    a = as_csr(rows, dtype)
    weights = np.random.default_rng(5).uniform(0.5, 2, a.shape[1]) if weighted else None
    out = np.full((len(rows), len(rows)), np.nan, dtype)
    assert gram(a, transpose(a), out, weights) is out
    expected = rows @ np.diag(np.ones(a.shape[1]) if weights is None else weights) @ rows.T
    lower = np.tril_indices(len(rows))
    close(out[lower], expected[lower], dtype)
    assert np.isnan(out[np.triu_indices(len(rows), 1)]).all()


@given(SHAPES.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=VALUES)))
def test_gram_of_any_small_matrix(dense):
    a = as_csr(dense, np.float64)
    out = np.zeros((len(dense), len(dense)))
    gram(a, transpose(a), out)
    assert np.array_equal(out, np.tril(dense @ dense.T))  # halves and quarters are exact


@pytest.mark.parametrize(
    ("dtype", "bits"), [(np.float32, np.uint32(0x7FA00000)), (np.float64, np.uint64(0x7FF4 << 48))]
)
def test_gram_with_columns_that_are_full(dtype, bits):
    """Some columns dense, over more than one strip of rows; above the diagonal are NaN that no sum may meet."""
    rng = np.random.default_rng(7)
    dense = (rng.standard_normal((1500, 40)) * (rng.random((1500, 40)) < 0.05)).astype(dtype)
    dense[:, [3, 20]] = rng.standard_normal((1500, 2))
    a, out, weights = as_csr(dense, dtype), np.full((1500, 1500), bits).view(dtype), rng.random(40)
    gram(a, transpose(a), out, weights)
    below = np.tril_indices(1500)
    expected = (dense.astype(np.float64) * weights) @ dense.astype(np.float64).T
    assert np.allclose(out[below], expected[below], atol=1e-4 if dtype == np.float32 else 1e-10)
    assert (out.view(bits.dtype)[np.triu_indices(1500, 1)] == bits).all()


def test_gram_leaves_its_arguments_alone():
    a = as_csr(random_sparse(8, 5), np.float64)
    a_t, weights = transpose(a), np.arange(5.0)
    before = a.data.copy(), a_t.data.copy(), weights.copy()
    gram(a, a_t, np.empty((8, 8)), weights)
    assert all(np.array_equal(*pair) for pair in zip(before, (a.data, a_t.data, weights), strict=True))


# --- products ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 31, 32, 33, 70])
@pytest.mark.parametrize(("inner", "columns"), [(1, 1), (20, 15), (15, 16), (65, 17), (9, 2500)])
def test_products(rows, inner, columns, dtype):
    sparse_left, dense_right = random_sparse(rows, inner), random_sparse(inner, columns, 1.0, seed=1)
    dense_left, sparse_right = random_sparse(rows, inner, 1.0, seed=2), random_sparse(inner, columns, seed=3)
    right = dense_right.astype(dtype)
    close(sparse_dense(as_csr(sparse_left, dtype), right), sparse_left @ dense_right, dtype)
    b_t = as_csr(sparse_right.T, dtype)
    close(dense_sparse(dense_left.astype(dtype), b_t), dense_left @ sparse_right, dtype)
    close(sparse_sparse(as_csr(sparse_left, dtype), as_csr(sparse_right, dtype)), sparse_left @ sparse_right, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_into_a_given_array(dtype):
    a, b = random_sparse(5, 6), random_sparse(6, 4, 1.0)
    out = np.full((5, 4), np.nan, dtype)
    assert sparse_dense(as_csr(a, dtype), b.astype(dtype), out) is out
    close(out, a @ b, dtype)
    out = np.full((4, 5), np.nan, dtype)
    assert dense_sparse(b.T.astype(dtype).copy(), as_csr(a, dtype), out) is out
    close(out, b.T @ a.T, dtype)


@pytest.mark.parametrize("busy", [[0], [99], [40, 41], list(range(100))])
def test_products_where_few_rows_have_nearly_everything(busy):
    a, b = random_sparse(100, 50, 0.01), random_sparse(50, 8, 1.0, seed=1)
    a[busy] = random_sparse(len(busy), 50, 1.0, seed=2)
    close(sparse_dense(as_csr(a, np.float64), b), a @ b, np.float64)


def test_float32_histories_through_a_float64_square():
    a, b = random_sparse(5, 6).astype(np.float32), random_sparse(6, 4, 1.0)
    close(sparse_dense(as_csr(a, np.float32), b), a.astype(np.float64) @ b, np.float64)


def test_the_product_of_two_sparse_matrices_has_the_better_precision_of_the_two():
    a, b = random_sparse(5, 6, 0.6).astype(np.float32), random_sparse(6, 4, 0.6, seed=1)
    close(sparse_sparse(as_csr(a, np.float32), as_csr(b, np.float64)), a.astype(np.float64) @ b, np.float64)


@given(st.data())
def test_products_of_any_small_matrices(data):
    rows, inner, columns = data.draw(st.tuples(st.integers(0, 6), st.integers(1, 6), st.integers(1, 6)))
    a = data.draw(hnp.arrays(np.float64, (rows, inner), elements=VALUES))
    b = data.draw(hnp.arrays(np.float64, (inner, columns), elements=VALUES))
    assert np.array_equal(sparse_dense(as_csr(a, np.float64), b), a @ b)
    assert np.array_equal(dense_sparse(a, as_csr(b.T, np.float64)), a @ b)
    assert np.array_equal(sparse_sparse(as_csr(a, np.float64), as_csr(b, np.float64)), a @ b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 2, 40])
def test_quadratic_forms(rows, dtype):
    a = random_sparse(rows, 25)
    square = random_sparse(25, 25, 1.0, seed=4)
    square = (square + square.T).astype(dtype)
    found = quadratic_forms(as_csr(a, dtype), square)
    expected = np.einsum("ri,ij,rj->r", a.astype(dtype).astype(float), square.astype(float), a.astype(dtype))
    assert found.dtype == np.float64
    assert np.allclose(found, expected, rtol=0, atol=TOLERANCE[dtype] * 100)


def test_the_form_of_an_empty_row_is_zero():
    a = as_csr(np.zeros((3, 4)), np.float64)
    assert quadratic_forms(a, np.full((4, 4), np.nan)).tolist() == [0, 0, 0]
