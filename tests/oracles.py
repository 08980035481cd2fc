"""The slow and obvious way to everything: dense float64, straight from the paper, and loops.

Nothing here calls the package. The weights come from the Lagrangian form B = P (G − diagMat(μ)), not from the
package's own B = I − P·diag(w).
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

# --- the paper, densely ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spec:
    l2: float
    dropout: float
    xi: float


def dense_penalty(x, l2, dropout=0.0):
    """Λ as a vector."""
    return np.array([dropout / (1 - dropout) * (column @ column) + l2 for column in x.astype(np.float64).T])


def dense_inverse(x, penalty):
    """P = (XᵀX + Λ)⁻¹."""
    x = x.astype(np.float64)
    return np.linalg.inv(x.T @ x + np.diag(penalty))


def dense_multipliers(x, spec):
    """μ: as large as it takes to press a diagonal element down to ξ, and no smaller than 0."""
    inverse = dense_inverse(x, dense_penalty(x, spec.l2, spec.dropout))
    free = inverse @ (x.T.astype(np.float64) @ x.astype(np.float64))
    return np.maximum(0.0, (np.diag(free) - spec.xi) / np.diag(inverse))


def dense_weights(x, spec):
    """B = P (G − diagMat(μ))."""
    x = x.astype(np.float64)
    inverse = dense_inverse(x, dense_penalty(x, spec.l2, spec.dropout))
    return inverse @ (x.T @ x - np.diag(dense_multipliers(x, spec)))


def dense_similarity(x, penalty):
    """Partial correlations −P_ij / √(P_ii P_jj)."""
    inverse = dense_inverse(x, penalty)
    spread = np.sqrt(np.diag(inverse))
    return -inverse / np.outer(spread, spread)


# --- ranking and metrics by loops --------------------------------------------------------------------------------


def brute_force_top_k(scores, k, banned=()):
    """Columns and scores of the k best, ties to the lower column; −1 and −inf fill up."""
    candidates = [
        (-float(score), column)
        for column, score in enumerate(scores)
        if column not in banned and not math.isnan(score) and score != -math.inf
    ]
    best = sorted(candidates)[:k]
    columns = [column for _, column in best] + [-1] * (k - len(best))
    return columns, [scores[column] if column >= 0 else -math.inf for column in columns]


def brute_force_recall(ranked, truth, k):
    if not truth:
        return math.nan
    return sum(column in truth for column in ranked[:k]) / len(truth)


def brute_force_ndcg(ranked, truth, k):
    if not truth:
        return math.nan
    gain = sum(1 / math.log2(place + 2) for place, column in enumerate(ranked[:k]) if column in truth)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(k, len(truth))))


# --- data --------------------------------------------------------------------------------------------------------

EMPTY_USER, EMPTY_ITEM, TWINS = 2, 3, (4, 5)


def example(users, items, *, weighted, seed=0):
    """A dense matrix with a user and an item without interactions, and two users with the same history."""
    rng = np.random.default_rng(seed)
    popularity = rng.uniform(0.1, 0.6, items)
    x = (rng.random((users, items)) < popularity).astype(np.float32)
    if weighted:
        x *= rng.uniform(0.5, 3.0, x.shape).astype(np.float32)
    x[EMPTY_USER] = 0
    x[TWINS[1]] = x[TWINS[0]]
    x[:, EMPTY_ITEM] = 0
    return x


def new_histories(count, items, *, weighted, seed=1):
    """Histories of users who were not there in training; the first one is empty."""
    rng = np.random.default_rng(seed)
    h = (rng.random((count, items)) < 0.3).astype(np.float32)
    if weighted:
        h *= rng.uniform(0.5, 3.0, h.shape).astype(np.float32)
    h[0] = 0
    h[1, 0] = 1
    return h


def csr(dense):
    return sp.csr_array(np.asarray(dense))


def matrices(min_side=1, max_side=8, values=(0.0, 0.0, 1.0, 2.5)):
    """Small dense matrices with many zeros."""
    return hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=min_side, max_side=max_side),
        elements=st.sampled_from([float(value) for value in values]),
    )


def specs():
    """Hyper-parameters, ends of the intervals included."""
    return st.builds(
        Spec,
        l2=st.floats(0.1, 100),
        dropout=st.one_of(st.just(0.0), st.floats(0.0, 0.9)),
        xi=st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)),
    )
