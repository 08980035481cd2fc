"""Confidence intervals and tests of means and their differences, by resampling users.

Users are drawn with an explicit generator; the columns of `values` are metrics, and NaN is a user who does not count.
"""

import numpy as np
from numpy.typing import NDArray

from relae._common.checks import refuse
from relae.errors import ParameterError

Values = NDArray[np.float64]  # (users, metrics)
_CHUNK = 2**24  # cells of weights at a time
_MOST_PARTS, _LEAST_USERS = 20, 25  # of lengths, and of users in each part


def means(values: Values, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return the mean of each column without NaN : (metrics,); NaN where all are NaN. `weights` : (users,)."""
    counted = ~np.isnan(values) * (1.0 if weights is None else weights[:, None])
    users = counted.sum(axis=0)
    sums = (counted * np.nan_to_num(values)).sum(axis=0)
    result = np.full(values.shape[1], np.nan)
    np.divide(sums, users, out=result, where=users > 0)
    return result


def length_weights(lengths: NDArray[np.integer], wanted: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return weights of users that give their history lengths another distribution : (users,), mean 1.

    The lengths are divided at quantiles into at most 20 parts, of at least 25 users or so each. The weight of a user
    is the share of the wanted lengths in the user's part, divided by the share of users in it.

    Parameters
    ----------
    lengths : (users,)
        Items in the history of each user.
    wanted : (any,)
        The lengths to imitate, in any order; without any, all weights are 1.
    """
    parts = min(_MOST_PARTS, len(lengths) // _LEAST_USERS)
    if parts < 2 or len(wanted) == 0:
        return np.ones(len(lengths))
    edges = np.unique(np.quantile(lengths, np.linspace(0, 1, parts + 1)[1:-1], method="higher"))
    part = np.searchsorted(edges, lengths, side="right")
    users = np.bincount(part, minlength=len(edges) + 1) / len(lengths)
    target = np.bincount(np.searchsorted(edges, wanted, side="right"), minlength=len(edges) + 1) / len(wanted)
    weights = np.divide(target, users, out=np.zeros_like(target), where=users > 0)[part]
    total = float(weights.sum())
    return np.asarray(weights * (len(weights) / total)) if total > 0 else np.ones(len(lengths))


def bootstrap(
    values: Values, level: float, resamples: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return percentile intervals of the means : two of (metrics,), with the same resampled users for all columns."""
    if not 0 < level < 1:
        raise ParameterError(
            f"the level of an interval must lie between 0 and 1, got {level!r}", field="level", value=level
        )
    _check_resamples(resamples)
    users = len(values)
    counted = ~np.isnan(values)
    both = np.concatenate([np.where(counted, values, 0.0), counted], axis=1)  # one product for sums and counts
    resampled = np.full((resamples, values.shape[1]), np.nan)
    step = max(1, _CHUNK // max(users, 1))
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        drawn = rng.integers(0, users, (count, users)) + np.arange(count)[:, None] * users
        weights = np.bincount(drawn.ravel(), minlength=count * users).reshape(count, users)
        sums, sizes = np.hsplit(weights.astype(np.float64) @ both, 2)
        np.divide(sums, sizes, out=resampled[start : start + count], where=sizes > 0)
    edges = (1 - level) / 2, (1 + level) / 2
    low, high = np.full((2, values.shape[1]), np.nan)
    known = counted.any(axis=0)
    if known.any():
        low[known], high[known] = np.nanquantile(resampled[:, known], edges, axis=0)
    return low, high


def _check_resamples(resamples: int) -> None:
    if resamples < 1:
        refuse("resamples", resamples, "be at least 1")


def permutation_test(differences: Values, resamples: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return two-sided p-values of mean differences : (metrics,), by flipping the sign of users' differences at random.

    p = (1 + flips at least as extreme)/(1 + resamples), so that it is never 0.
    """
    _check_resamples(resamples)
    known = np.nan_to_num(differences)
    users = len(known)
    seen = np.abs(known.sum(axis=0))
    extreme = np.zeros(known.shape[1], np.int64)
    step = max(1, _CHUNK // max(users, 1))
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        signs = rng.integers(0, 2, (count, users), dtype=np.int8).astype(np.float64) * 2 - 1
        extreme += (np.abs(signs @ known) >= seen * (1 - 1e-12)).sum(axis=0)
    return np.asarray((1 + extreme) / (1 + resamples))


def wilcoxon_test(differences: Values) -> NDArray[np.float64]:
    """Return two-sided p-values of Wilcoxon's signed-rank test : (metrics,); 1 where no user differs."""
    from scipy.stats import wilcoxon

    p_values = np.ones(differences.shape[1])
    for column in range(differences.shape[1]):
        different = differences[:, column]
        different = different[~np.isnan(different) & (different != 0)]
        if len(different):
            p_values[column] = float(wilcoxon(different).pvalue)
    return p_values
