"""The half steps of weighted matrix factorization, each row by its closed form, on all cores."""

import numpy as np
from numpy.typing import NDArray

from relae.linalg._run import run, threads
from relae.linalg.sparse import Csr, Dense, parts


def aligned(factors: Dense) -> tuple[Dense, NDArray[np.float64]]:
    """Return the factors V : (columns, dim) in the basis where VᵀV is diagonal, and that diagonal, falling : (dim,).

    A product of two factors is the same in every basis; in this one `als_rows` is fast.
    """
    values, basis = np.linalg.eigh((factors.T @ factors).astype(np.float64))
    turned = factors @ np.ascontiguousarray(basis[:, ::-1], factors.dtype)
    return turned, np.maximum(values[::-1], 0.0)


def als_rows(
    x: Csr, factors: Dense, spectrum: NDArray[np.float64], unobserved: float, penalty: NDArray[np.float64]
) -> Dense:
    """Minimize for each row Σⱼ xⱼ (1 − u·vⱼ)² + unobserved · Σⱼ (u·vⱼ)² + penalty · ‖u‖² : (rows, dim).

    The first sum is over the stored entries of the row, the second over all columns. With VᵀV = diag(spectrum) the last
    two terms are a diagonal D = unobserved · spectrum + penalty, and with W = √x · V D^−½ on the entries of the row

        u = D^−½ (I + WᵀW)⁻¹ Wᵀ√x = D^−½ Wᵀ (I + W Wᵀ)⁻¹ √x

    of which the smaller system is solved: (entries or dim)² · (the other) flops. As WᵀW ≤ max(x)/unobserved, the system
    is well conditioned and single precision is enough.

    Parameters
    ----------
    x : (rows, columns)
        Weights; none is negative.
    factors, spectrum : (columns, dim), (dim,)
        V, as `aligned` returns it.
    unobserved : float
    penalty : (rows,)
        Above 0.
    """
    indptr, indices, values = parts(x)
    roots = np.sqrt(values).astype(factors.dtype, copy=False)
    order = np.argsort(-np.diff(indptr), kind="stable")  # long and short rows meet every thread
    out = np.empty((x.shape[0], factors.shape[1]), factors.dtype)
    fixed = unobserved * spectrum
    run("als_rows", order, indptr, indices, roots, factors, fixed, penalty, threads(), out)
    return out
