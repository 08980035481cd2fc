"""The error of an inverse."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from relae.solvers._inverse import Inverse
from relae.solvers._solver import Rows

_PROBES = 4

Gram = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Returns XᵀDX v for vectors v : (items, probes)."""


def residual(inverse: Inverse, gram: Rows | Gram, penalty: NDArray[np.float64], rng: np.random.Generator) -> float:
    """Return the largest ‖(G + Λ) P v − v‖ / ‖v‖ over a few random v, with G applied in float64; infinite if undefined.

    G is given as the rows whose Gram matrix it is, or as a function that multiplies by it.
    """
    multiply = gram.gram_times if isinstance(gram, Rows) else gram
    vectors = rng.standard_normal((inverse.n_items, _PROBES)).astype(inverse.dtype)
    projected = inverse.apply(vectors).astype(np.float64)
    if not np.isfinite(projected).all():
        return float(np.inf)
    back = multiply(projected) + penalty[:, None] * projected
    errors = np.linalg.norm(back - vectors, axis=0) / np.linalg.norm(vectors, axis=0)
    return float(errors.max()) if np.isfinite(errors).all() else float(np.inf)
