"""The spectrum: exact against a singular value decomposition, estimated against exact."""

import numpy as np
import pytest
import scipy.sparse as sp

from relae import Interactions
from relae.analysis import _spectral, spectrum
from relae.models import suggested_l2

from .suite import shop

WIDE, TALL = shop(120, 200), shop(200, 120)


@pytest.mark.parametrize("data", [WIDE, TALL], ids=["wide", "tall"])
def test_exact_eigenvalues_are_squared_singular_values(data):
    found = spectrum(data, [3.0, 1.0], rng=np.random.default_rng(0))
    singular = np.linalg.svd(data.matrix.toarray().astype(np.float64), compute_uv=False)
    expected = singular[singular > 1e-6] ** 2
    assert found.exact
    np.testing.assert_allclose(found.eigenvalues, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(found.l2s, [1.0, 3.0])
    np.testing.assert_allclose(found.kept, [expected / (expected + l2) for l2 in (1.0, 3.0)], rtol=1e-6)
    np.testing.assert_allclose(found.constrained, [1 / (expected + l2) for l2 in (1.0, 3.0)], rtol=1e-6)
    np.testing.assert_array_equal(found.half_kept, [(expected >= 1.0).sum(), (expected >= 3.0).sum()])


def test_empty_users_and_items_add_nothing():
    padded = sp.csr_array(np.pad(WIDE.matrix.toarray(), ((3, 5), (4, 2))))
    rng = np.random.default_rng(0)
    np.testing.assert_allclose(
        spectrum(padded, [1.0], rng=rng).eigenvalues, spectrum(WIDE, [1.0], rng=rng).eigenvalues, rtol=1e-9
    )


def test_zeros_are_left_out():
    twice = sp.csr_array(np.repeat(WIDE.matrix.toarray(), 2, axis=0))  # every user has a twin
    assert len(spectrum(twice, [1.0], rng=np.random.default_rng(0)).eigenvalues) == 120


def test_the_estimate_counts_eigenvalues_as_the_exact_spectrum_does():
    """A count over n eigenvalues from p probes has a standard error below √(2·¼/(n·p)), here 0.8%; and a small blur."""
    data = shop(700, 500)
    exact = spectrum(data, rng=np.random.default_rng(0)).eigenvalues
    found = spectrum(data, rng=np.random.default_rng(1), exact_limit=0)
    assert not found.exact
    top = 50
    np.testing.assert_allclose(found.eigenvalues[:top], exact[:top], rtol=1e-8)
    assert (np.diff(found.eigenvalues) <= 0).all()
    for share in (0.2, 0.35, 0.5, 0.65, 0.8, 0.95):
        edge = exact[int(share * len(exact))]
        assert np.mean(found.eigenvalues >= edge) == pytest.approx(np.mean(exact >= edge), abs=0.03)
    assert found.eigenvalues.sum() == pytest.approx(exact.sum(), rel=0.02)


def test_without_l2s_they_lie_around_the_suggested_one():
    found = spectrum(WIDE, rng=np.random.default_rng(0))
    assert suggested_l2(WIDE.matrix) in found.l2s
    assert len(found.l2s) >= 3


def test_the_frame_has_a_row_per_l2_and_component():
    found = spectrum(WIDE, [1.0, 2.0], rng=np.random.default_rng(0))
    frame = found.to_polars()
    assert frame.columns == ["l2", "component", "eigenvalue", "kept", "constrained", "exact"]
    assert frame.height == 2 * len(found.eigenvalues)
    row = frame.row(len(found.eigenvalues) + 4, named=True)
    assert (row["l2"], row["component"]) == (2.0, 5)
    assert row["kept"] == pytest.approx(row["eigenvalue"] / (row["eigenvalue"] + 2.0))


@pytest.mark.parametrize("l2s", [[], [0.0, 1.0], [np.inf], [-1.0]])
def test_l2s_that_make_no_sense_are_an_error(l2s):
    with pytest.raises(ValueError, match="l2s must be finite numbers above 0"):
        spectrum(WIDE, l2s, rng=np.random.default_rng(0))


def test_nothing_to_decompose_is_an_error():
    with pytest.raises(ValueError, match="nothing to decompose"):
        spectrum(Interactions(sp.csr_array((3, 4))), [1.0], rng=np.random.default_rng(0))


@pytest.mark.parametrize("degree", [40, 200])
def test_a_series_is_the_damped_polynomial_of_the_matrix(degree):
    """Against the same polynomial of the dense eigenvalues: what is left is the rounding of float32."""
    given = _spectral.sides(shop(160, 300).matrix)
    rng = np.random.default_rng(0)
    top = _spectral.top_pairs(given, rng)
    block = rng.standard_normal((given.side, 5))
    series = _spectral.chebyshev_series(given, block, top, degree=degree)

    values, vectors = np.linalg.eigh((given.a @ given.a_t).toarray())
    values, vectors = values[: -len(top.values)], vectors[:, : -len(top.values)]

    def step(s):
        return (s <= np.median(values)) / (s + 2.0)

    angles = (np.arange(20_000) + 0.5) * np.pi / 20_000
    samples = step(series.bound * (1 + np.cos(angles)) / 2)
    coefficients = np.array([2 * np.mean(samples * np.cos(k * angles)) for k in range(degree + 1)])
    coefficients[0] /= 2
    n = degree + 2
    k = np.arange(degree + 1)
    damping = ((n - k) * np.cos(np.pi * k / n) + np.sin(np.pi * k / n) / np.tan(np.pi / n)) / n
    smooth = np.polynomial.chebyshev.chebval(2 * values / series.bound - 1, damping * coefficients)
    loadings = block.T @ vectors
    expected = (loadings * smooth) @ loadings.T
    found = series.apply(step)
    assert np.linalg.norm(found - expected) <= 2e-3 * np.linalg.norm(expected)
