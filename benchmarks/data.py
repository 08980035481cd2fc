"""Matrices to measure on: real ones from RELAE_DATA, and synthetic ones with the shape of well-known data sets."""

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp

SHAPES = {  # users, items, interactions
    "pinterest-shaped": (37_501, 9_836, 790_006),
    "ml-20m-shaped": (136_677, 20_108, 9_990_682),
    "amazon-book-shaped": (52_643, 91_599, 2_380_730),
}


def synthetic(users: int, items: int, nonzeros: int, seed: int = 0) -> sp.csr_array:
    """Binary matrix with exactly `nonzeros` entries; popularity and activity are both long-tailed."""
    rng = np.random.default_rng(seed)
    popularity = (np.arange(items) + items / 200) ** -1.1
    popularity = rng.permutation(popularity)
    cumulative = np.cumsum(popularity / popularity.sum())
    activity = rng.lognormal(0.0, 1.0, users)
    # every user and every item occurs at least once, so that the shape is real
    first = np.unique(
        np.concatenate(
            [
                np.arange(users) * items + rng.integers(0, items, users),
                rng.integers(0, users, items) * items + np.arange(items),
            ]
        )
    )
    cells = first
    activity_cumulative = np.cumsum(activity / activity.sum())
    while len(cells) < nonzeros:
        missing = int((nonzeros - len(cells)) * 1.1) + 16
        user = np.searchsorted(activity_cumulative, rng.random(missing)).clip(max=users - 1)
        item = np.searchsorted(cumulative, rng.random(missing)).clip(max=items - 1)
        cells = np.union1d(cells, user * items + item)
    spare = np.setdiff1d(cells, first, assume_unique=True)
    dropped = rng.choice(spare, len(cells) - nonzeros, replace=False)
    cells = np.setdiff1d(cells, dropped, assume_unique=True)
    matrix = sp.csr_array(
        (
            np.ones(nonzeros, np.float32),
            ((cells // items).astype(np.int32), (cells % items).astype(np.int32)),
        ),
        shape=(users, items),
        dtype=np.float32,
    )
    matrix.sort_indices()
    return matrix


def load(name: str) -> sp.csr_array:
    """The matrix of a name: `ml-1m`, `gowalla` (from RELAE_DATA) or one of `SHAPES`, kept in a cache folder."""
    if name not in SHAPES:
        from relae.data import Interactions

        folder = os.environ.get("RELAE_DATA")
        if not folder or not (Path(folder) / name).is_dir():
            raise SystemExit(f"{name} is not there: set RELAE_DATA to a folder that contains {name}/")
        source = Path(folder) / name
        if name == "gowalla":
            return Interactions.read_lists(source / "train.txt").matrix
        return Interactions.read(source / "interactions.csv.gz", rating="rating", min_rating=4).matrix
    cache = Path(__file__).parent / "cache" / f"{name}.npz"
    if not cache.exists():
        cache.parent.mkdir(exist_ok=True)
        part = cache.with_suffix(".part.npz")
        sp.save_npz(part, synthetic(*SHAPES[name]), compressed=False)
        part.rename(cache)
    return sp.csr_array(sp.load_npz(cache))
