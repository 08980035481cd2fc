"""Sequences of items in the order of time, and the products of what came before with what came next.

A user with the items i_1, …, i_L and their values v has L − 1 steps, t = 2, …, L. The source of step t is
s_t = Σ_{d ≥ 1} k(d) v_{t−d} e_{i_{t−d}}, all that came before, faded by k, and its target is v_t e_{i_t}. With a row
per step, S (steps × items) has many times the entries of the data; the products SᵀS and SᵀT need none of them:

    (SᵀS)[i_a, i_b] += v_a v_b Σ_{u = 1}^{L − b} k(u) k(u + b − a)    for a ≤ b
    (SᵀT)[i_a, i_b] += v_a v_b k(b − a)    for a < b

The first sum depends on b − a and L − b alone, and is looked up in a table.
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
    """The interactions of users in the order of time, and how they fade.

    Attributes
    ----------
    starts : (users + 1,)
    items, values : (entries,)
        Of each user from `starts[u]` to `starts[u + 1]`, the earliest first; no item twice.
    n_items : int
    fade : (window,)
        k(1), k(2), …: what the latest item counts in a source, the one before it, and so on; 0 beyond.
    """

    starts: NDArray[np.int64]
    items: NDArray[np.int32]
    values: NDArray[np.float64]
    n_items: int
    fade: NDArray[np.float64]

    @classmethod
    def of(cls, x: Csr, times: NDArray[np.int64], fade: NDArray[np.float64]) -> "Sequences":
        """Return the sequences of a matrix (users × items) whose stored entries have times; equal ones go by column."""
        order = time_order(x, times)
        items, values = x.indices[order].astype(np.int32, copy=False), x.data[order].astype(np.float64)
        longest = max(int(np.diff(x.indptr).max(initial=0)) - 1, 1)
        return cls(x.indptr.astype(np.int64), items, values, x.shape[1], np.asarray(fade, np.float64)[:longest])

    @property
    def n_steps(self) -> int:
        """The number of steps, which is that of the rows of S."""
        return int(np.maximum(np.diff(self.starts) - 1, 0).sum())

    @property
    def n_sources(self) -> int:
        """The number of entries of S."""
        steps, window = np.maximum(np.diff(self.starts) - 1, 0), len(self.fade)
        short = np.minimum(steps, window)  # steps that have less before them than counts
        return int((short * (short + 1) // 2 + (steps - short) * window).sum())

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """Σ_{u ≤ m} k(u) k(u + d) in row m and column d : (window + 1, window + 1)."""
        window = len(self.fade)
        beyond = np.concatenate([self.fade, np.zeros(window)])
        shifted = np.lib.stride_tricks.sliding_window_view(beyond, window + 1)[:window]  # k(u + d) : (u, d)
        table = np.zeros((window + 1, window + 1))
        np.cumsum(self.fade[:, None] * shifted, axis=0, out=table[1:])
        return table

    def gram_diagonal(self) -> NDArray[np.float64]:
        """Return diag(SᵀS) : (items,)."""
        after = np.repeat(self.starts[1:], np.diff(self.starts)) - 1 - np.arange(len(self.items))
        squares = self.values**2 * self.table[np.minimum(after, len(self.fade)), 0]
        return np.bincount(self.items, squares, self.n_items).astype(np.float64, copy=False)

    def products(self, gram: Dense, cross: Dense) -> None:
        """Write the lower triangle of SᵀS, what is above it not being defined, and SᵀT : (items, items) each."""
        order = np.argsort(self.items, kind="stable")
        firsts = np.concatenate([[0], np.cumsum(np.bincount(self.items, minlength=self.n_items))])
        owners = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        run(
            "step_products",
            *(self.starts, self.items, owners, order, firsts),
            *(factor.astype(gram.dtype, copy=False) for factor in (self.values, self.fade, self.table)),
            *(gram, cross, threads()),
        )
        run("fold_upper", gram)

    def gram_times(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return SᵀS @ vectors : (items, columns), in float64 and without SᵀS."""
        by_entry = np.empty((vectors.shape[1], len(self.items)))
        columns = np.ascontiguousarray(vectors.T, np.float64)
        run("step_gram_times", self.starts, self.items, self.values, self.fade, columns, by_entry)
        return np.stack([np.bincount(self.items, column, self.n_items) for column in by_entry], axis=1)

    def steps(self, dtype: np.dtype[np.floating]) -> tuple[Csr, Csr]:
        """Return S and T : (steps, items) each."""
        lengths = np.diff(self.starts)
        steps = np.arange(len(self.items)) - np.repeat(self.starts[:-1], lengths)
        targets = np.flatnonzero(steps > 0)
        counts = np.minimum(steps[targets], len(self.fade))
        ends = np.cumsum(counts)
        back = np.repeat(ends, counts) - np.arange(int(counts.sum()))  # 1 for the entry just before the target
        entries = np.repeat(targets, counts) - back
        shape, indptr = (len(targets), self.n_items), np.concatenate([[0], ends])
        values = self.values[entries] * self.fade[back - 1]
        sources = sp.csr_array((values, self.items[entries], indptr), shape=shape)
        nexts = sp.csr_array((self.values[targets], self.items[targets], np.arange(len(targets) + 1)), shape=shape)
        return as_csr(sources, dtype), as_csr(nexts, dtype)
