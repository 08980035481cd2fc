"""A Gaussian process over a few trials: predictions where nothing was tried yet."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]

_NOISE = 1e-3  # of the surface's spread: means over users are not quite smooth


def finite(values: Array) -> Array:
    """Replace NaN by the smallest other value, or by 0 if there is none."""
    known = values[np.isfinite(values)]
    return np.where(np.isfinite(values), values, known.min() if len(known) else 0.0)


def predict(
    seen: Array, surfaces: Mapping[str, Array], points: Array, lengths: Sequence[Sequence[float]]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return mean and spread of each surface at new places, by a Gaussian process with a Matérn kernel.

    Parameters
    ----------
    seen, places : (trials, dimensions), (places, dimensions)
    surfaces
        The values at the places seen, by name : (trials,) each.
    lengths
        One per dimension; those are taken under which the surfaces are likeliest. All surfaces share them.
    """
    scaled = {name: (values - values.mean()) / max(float(values.std()), 1e-12) for name, values in surfaces.items()}
    targets = np.column_stack(list(scaled.values()))
    likeliest, lower, best_lengths = -np.inf, np.eye(len(seen)), lengths[0]
    for tried in lengths:
        kernel = _matern(seen, seen, tried) + _NOISE * np.eye(len(seen))
        root = np.asarray(np.linalg.cholesky(kernel), np.float64)
        solved = np.linalg.solve(root, targets)
        likelihood = -0.5 * float((solved**2).sum()) - targets.shape[1] * float(np.log(np.diag(root)).sum())
        if likelihood > likeliest:
            likeliest, lower, best_lengths = likelihood, root, tried
    across = np.linalg.solve(lower, _matern(seen, points, best_lengths))
    mean = across.T @ np.linalg.solve(lower, targets)
    spread = np.sqrt(np.maximum(1.0 - (across**2).sum(axis=0), 1e-12))
    means, spreads = {}, {}
    for column, (name, values) in enumerate(surfaces.items()):
        means[name] = values.mean() + mean[:, column] * float(values.std())
        spreads[name] = spread * float(values.std())
    return means, spreads


def _matern(a: Array, b: Array, lengths: Sequence[float]) -> Array:
    """Return the Matérn 5/2 kernel : (len a, len b)."""
    distance = np.sqrt(5.0 * ((((a[:, None] - b[None]) / np.array(lengths)) ** 2).sum(axis=-1)))
    return np.asarray((1.0 + distance + distance**2 / 3.0) * np.exp(-distance))


def improvement(mean: Array, spread: Array, best: float) -> Array:
    """Return the expected improvement over the best."""
    z = (mean - best) / np.maximum(spread, 1e-15)
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    return np.asarray((mean - best) * ndtr(z) + spread * density)
