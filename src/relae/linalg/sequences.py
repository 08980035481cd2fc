"""Sequences of items in the order of time, and the products of what came before with what came next.

A user with the items i_1, …, i_L has L − 1 steps. The source of step t is s_t = ρ s_{t−1} + v_{t−1} e_{i_{t−1}}, all
that came before, and its target v_t e_{i_t}. With a row per step, S (steps × items) has about Σ_u L_u² entries; the
products SᵀS and SᵀT need none of them:

    (SᵀS)[i_a, i_b] += v_a v_b ρ^(b − a) R_b    for a ≤ b,    R_b = Σ_{t > b} w_t ρ^(2 (t − 1 − b))
    (SᵀT)[i_a, i_t] += v_a v_t ρ^(t − 1 − a) w_t    for a < t
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.linalg._run import run, threads
from relae.linalg.sparse import Csr, Dense, as_csr


def time_order(x: Csr, times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the stored entries of a matrix row after row, those of a row by rising time and then by column."""
    if x.shape[0] == 1:
        return np.argsort(times, kind="stable")
    return np.lexsort((times, np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))))


def time_ranks(x: Csr, times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each stored entry in its row by time : 1 for the latest, 2 for the one before it, ….

    Of entries with equal times, the one in the later column is later.
    """
    ranks = np.empty(x.nnz, np.int64)
    sizes = np.diff(x.indptr)
    ranks[time_order(x, times)] = np.repeat(x.indptr[1:], sizes) - np.arange(x.nnz)
    return ranks


@dataclass(frozen=True)
class Sequences:
    """The interactions of users in the order of time, and the fading ρ of sources.

    Attributes
    ----------
    starts : (users + 1,)
    items, values : (entries,)
        Of each user from `starts[u]` to `starts[u + 1]`, the earliest first; no item twice.
    weights : (entries,)
        w of the step whose target is the entry. That of a user's first entry, which has no source, has no effect.
    n_items : int
    fading : float
        ρ, from 0 to 1.
    """

    starts: NDArray[np.int64]
    items: NDArray[np.int32]
    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    n_items: int
    fading: float

    @classmethod
    def of(
        cls, x: Csr, times: NDArray[np.int64], fading: float, weights: NDArray[np.float64] | None = None
    ) -> "Sequences":
        """Return the sequences of a matrix (users × items) whose stored entries have times; steps weigh 1 if not given.

        weights : (stored entries,), in the order of the matrix. Entries of the same time are ordered by column.
        """
        order = time_order(x, times)
        steps = np.ones(x.nnz) if weights is None else weights[order].astype(np.float64)
        items, values = x.indices[order].astype(np.int32), x.data[order].astype(np.float64)
        return cls(x.indptr.astype(np.int64), items, values, steps, x.shape[1], float(fading))

    @property
    def n_steps(self) -> int:
        """The number of steps, which is that of the rows of S."""
        lengths = np.diff(self.starts)
        return int(np.maximum(lengths - 1, 0).sum())

    def window(self, dtype: np.dtype[np.floating]) -> int:
        """Return how far apart two entries can be that count for each other in this precision; 1 at least."""
        longest = max(int(np.diff(self.starts).max(initial=0)) - 1, 1)
        if self.fading in (0.0, 1.0):
            return longest if self.fading else 1
        return int(min(longest, 1 + np.ceil(np.log(np.finfo(dtype).eps / 2) / np.log(self.fading))))

    def n_sources(self, dtype: np.dtype[np.floating]) -> int:
        """Return the number of entries of S in this precision."""
        lengths, window = np.diff(self.starts).astype(np.float64), self.window(dtype)
        full = np.maximum(lengths - 1 - window, 0)  # steps that have more before them than count
        rest = np.maximum(lengths - 1, 0) - full
        return int((full * window + rest * (rest + 1) / 2).sum())

    @cached_property
    def later_weights(self) -> NDArray[np.float64]:
        """R of each entry : (entries,)."""
        out = np.empty(len(self.items))
        run("later_weights", self.starts, self.weights, self.fading, out)
        return out

    def gram_diagonal(self) -> NDArray[np.float64]:
        """Return diag(SᵀS) : (items,)."""
        sums = np.bincount(self.items, self.values**2 * self.later_weights, self.n_items)
        return sums.astype(np.float64, copy=False)

    def products(self, gram: Dense, cross: Dense) -> None:
        """Fill SᵀS and SᵀT : (items, items) each."""
        dtype = gram.dtype
        order = np.argsort(self.items, kind="stable")
        firsts = np.concatenate([[0], np.cumsum(np.bincount(self.items, minlength=self.n_items))])
        owners = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        powers = self.fading ** np.arange(self.window(dtype) + 1.0)
        factors = [self.values, self.values * self.later_weights, self.values * self.weights, powers]
        run(
            "step_products",
            *(self.starts, self.items, owners, order, firsts),
            *(factor.astype(dtype, copy=False) for factor in factors),
            *(gram, cross, threads()),
        )

    def gram_times(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return SᵀS @ vectors : (items, columns), in float64 and without SᵀS."""
        out = np.empty(vectors.shape)
        vectors = np.ascontiguousarray(vectors, np.float64)
        run("step_gram_times", self.starts, self.items, self.values, self.weights, self.fading, vectors, out)
        return out

    def steps(self, dtype: np.dtype[np.floating]) -> tuple[Csr, Csr, NDArray[np.float64]]:
        """Return S and T : (steps, items) each, and the weights of their rows : (steps,)."""
        lengths = np.diff(self.starts)
        places = np.arange(len(self.items)) - np.repeat(self.starts[:-1], lengths)
        targets = np.flatnonzero(places > 0)
        counts = np.minimum(places[targets], self.window(dtype))
        ends = np.cumsum(counts)
        back = np.repeat(ends, counts) - np.arange(int(counts.sum()))  # 1 for the entry just before the target
        entries = np.repeat(targets, counts) - back
        values = self.values[entries] * self.fading ** (back - 1.0)
        shape = (len(targets), self.n_items)
        kept = values > 0  # a value that underflows is no entry
        owners = np.repeat(np.arange(len(targets)), counts)[kept]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(targets)))])
        sources = sp.csr_array((values[kept], self.items[entries[kept]], indptr), shape=shape)
        nexts = sp.csr_array((self.values[targets], self.items[targets], np.arange(len(targets) + 1)), shape=shape)
        return as_csr(sources, dtype), as_csr(nexts, dtype), self.weights[targets]
