"""Interactions with popular and unpopular items and a few tastes, and the slow and obvious way to decompose them."""

import numpy as np
import scipy.sparse as sp

from relae import Interactions


def shop(users: int, items: int, seed: int = 0, tastes: int = 8) -> Interactions:
    """Random interactions: Zipf's popularity, times whether the tastes of a user and an item agree."""
    rng = np.random.default_rng(seed)
    popularity = 0.9 / (1 + np.arange(items)) ** 0.6
    alike = rng.integers(0, tastes, users)[:, None] == rng.integers(0, tastes, items)
    drawn = rng.random((users, items)) < popularity * np.where(alike, 1.0, 0.25)
    drawn[np.arange(users), rng.integers(0, items, users)] = True
    return Interactions(sp.csr_array(drawn.astype(np.float32)), items=[f"item {j}" for j in range(items)])


def dense_parts(x: np.ndarray, columns: np.ndarray, l2: float, group: int) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last components of V diag(σ²/(σ²+λ)) Vᵀ, from a singular value decomposition."""
    _, singular, rows = np.linalg.svd(x, full_matrices=False)
    rank = int((singular**2 > 1e-9 * singular[0] ** 2).sum())
    scaled = singular**2 / (singular**2 + l2)
    loadings = rows[:, columns]  # (components, columns)

    def part(of: slice) -> np.ndarray:
        return loadings[of].T @ (scaled[of, None] * loadings[of])

    return part(slice(0, group)), part(slice(rank - group, rank))
