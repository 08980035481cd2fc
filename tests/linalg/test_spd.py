"""The inverse in place."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relae.linalg import inverse_workspace_bytes, invert_spd
from relae.linalg import spd as spd_module

SIZES = [1, 2, 3, 63, 64, 65, 127, 128, 129, 130, 191, 192, 193, 255, 256, 257, 300, 385, 511, 512, 513, 701]
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-13}


@pytest.fixture(autouse=True, scope="module", params=["lapack", "recursion"])
def way(request):
    """Both ways to an inverse, whatever the size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spd_module, "_LAPACK", 10_000 if request.param == "lapack" else 0)
        yield request.param


def spd(n, dtype=np.float64, seed=0):
    """A symmetric positive definite matrix with a condition of about ten."""
    x = np.random.default_rng(seed).standard_normal((n, n))
    return (x @ x.T / max(n, 1) + 0.5 * np.eye(n)).astype(dtype)


def lower_only(a, upper):
    """A copy with something else above the diagonal, given as its bits: what uninitialized memory may hold."""
    a = a.copy()
    a.view(f"u{a.itemsize}")[np.triu_indices(len(a), 1)] = upper
    return a


def check_inverse(n, dtype, upper):
    a = spd(n, dtype)
    given_array = lower_only(a, upper)
    result = invert_spd(given_array)
    assert result is given_array
    assert result.dtype == dtype
    assert np.array_equal(result, result.T)
    expected = np.linalg.inv(a.astype(np.float64))
    assert np.abs(result - expected).max() <= TOLERANCE[dtype] * np.abs(expected).max()


QUIET_NAN = {np.float32: 0x7FC00000, np.float64: 0x7FF8000000000000}
SIGNALING_NAN = {np.float32: 0x7FA00000, np.float64: 0x7FF4000000000000}
MINUS_INFINITY = {np.float32: 0xFF800000, np.float64: 0xFFF0000000000000}
HUGE = {np.float32: 0x7F7FFFFF, np.float64: 0x7FEFFFFFFFFFFFFF}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
def test_inverse_from_the_lower_triangle(n, dtype):
    check_inverse(n, dtype, QUIET_NAN[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 60, 129, 400])
@pytest.mark.parametrize("upper", [MINUS_INFINITY, HUGE], ids=["infinite", "huge"])
def test_the_upper_triangle_is_not_read(n, dtype, upper):
    check_inverse(n, dtype, upper[dtype])


@pytest.mark.parametrize(("n", "dtype"), [(2, np.float32), (60, np.float32), (400, np.float32), (400, np.float64)])
def test_signaling_nans_in_uninitialized_memory_do_no_harm(n, dtype):
    check_inverse(n, dtype, SIGNALING_NAN[dtype])


@given(st.integers(1, 300), st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3))
@settings(max_examples=20)
def test_matrix_times_inverse_is_the_identity(n, seed, scale):
    a = scale * spd(n, seed=seed)
    inverse = invert_spd(a.copy())
    assert np.allclose(a @ inverse, np.eye(n), atol=1e-10)


def test_a_condition_of_ten_thousand_costs_little_beside_numpy():
    # not a law for worse ones: the blocks lose about the square of the condition, and the fit's own check finds it
    n = 300
    q, _ = np.linalg.qr(np.random.default_rng(3).standard_normal((n, n)))
    a = (q * np.logspace(0, -4, n)) @ q.T
    a = (a + a.T) / 2
    residual, numpys = (np.abs(a @ inverse - np.eye(n)).max() for inverse in (invert_spd(a.copy()), np.linalg.inv(a)))
    assert residual <= 100 * numpys


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_to_invert(dtype):
    empty = np.empty((0, 0), dtype)
    assert invert_spd(empty) is empty


@pytest.mark.parametrize("n", [1, 100, 128, 129, 300, 700])
def test_progress_rises_to_one(n, way):
    seen = []
    invert_spd(spd(n), seen.append)
    assert seen == sorted(seen)
    assert seen[0] >= 0
    assert seen[-1] == 1
    if n > 128 and way == "recursion":
        assert len([fraction for fraction in seen if 0 < fraction < 1]) >= 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 128, 129, 400])
@pytest.mark.parametrize("where", ["first", "last"])
def test_not_positive_definite(n, dtype, where):
    a = spd(n, dtype)
    at = 0 if where == "first" else n - 1
    a[at, at] = -1
    with pytest.raises(np.linalg.LinAlgError):
        invert_spd(a)


@pytest.mark.parametrize("n", [2, 300])
def test_singular(n):
    with pytest.raises(np.linalg.LinAlgError):
        invert_spd(np.ones((n, n)) - 1e-3 * np.eye(n))


@pytest.mark.parametrize("n", [5, 300])
def test_nan_is_never_swallowed(n):
    a = spd(n)
    a[n // 2, n // 2] = np.nan
    try:
        result = invert_spd(a)
    except np.linalg.LinAlgError:  # some LAPACKs notice, some do not
        return
    assert np.isnan(result).any()


@pytest.mark.parametrize(
    "wrong",
    [
        np.eye(3)[:2],
        np.ones(3),
        np.ones((2, 2, 2)),
        np.eye(3, dtype=np.int64),
        np.eye(3, dtype=np.float16),
        np.eye(3, dtype=complex),
        np.asfortranarray(spd(3)),
        spd(6)[::2, ::2],
    ],
    ids=["not square", "vector", "cube", "integers", "float16", "complex", "fortran", "strided"],
)
def test_wrong_arrays(wrong):
    before = wrong.copy()
    with pytest.raises(ValueError, match=r"square float32 or float64|C-contiguous"):
        invert_spd(wrong)
    assert np.array_equal(wrong, before)


@pytest.mark.parametrize(("n", "dtype"), [(900, np.float64), (1500, np.float32)])
def test_memory_beside_the_array_is_the_workspace(n, dtype):
    a = spd(200, dtype)
    invert_spd(a)  # whatever NumPy keeps for good
    a = np.eye(n, dtype=dtype)
    a += dtype(0.001)
    tracemalloc.start()
    try:
        invert_spd(a)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    small_change = 2e6  # a leaf, and the indices of a tile's triangle
    assert peak <= inverse_workspace_bytes(n, a.itemsize) + small_change
    assert peak < a.nbytes
