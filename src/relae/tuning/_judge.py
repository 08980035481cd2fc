"""Compare configurations by validation users: the weight of each user, and which differences are significant."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from relae.evaluation import Evaluation, Split
from relae.evaluation.statistics import length_weights, means

Groups = Mapping[str, Sequence[float]]  # of each metric, what groups of users add to its mean

_GROUPS = 64
_LEVEL = 0.95


class Judge:
    """Weighted means over the validation users of a split, and the same by groups of users for paired tests.

    Hiding items makes the histories of validation users shorter than those that the model will be asked for, and
    shorter histories prefer stronger regularization. So users count more the more the length of what is left of their
    history is found among the histories to be served, and less the rarer it is there.

    Parameters
    ----------
    split
        Whose users judge.
    names
        The metrics by which configurations are told apart, such as "ndcg@100".
    lengths
        How many items the histories have that the model will be asked for, one number each; those of all users of the
        split, with what is hidden of them, if not given.
    """

    def __init__(self, split: Split, names: Iterable[str], lengths: ArrayLike | None = None) -> None:
        self.names = tuple(names)
        served = np.diff(split.everything().matrix.indptr) if lengths is None else np.asarray(lengths)
        self.weights = length_weights(np.diff(split.histories.indptr), served[served > 0])
        users = len(split.users)
        count = min(_GROUPS, users)
        self._groups = np.random.default_rng(0).permutation(users) % max(count, 1)  # the same for every configuration
        self._count = count

    def means(self, evaluation: Evaluation) -> dict[str, float]:
        """Return the weighted mean of each metric; metrics of all lists together stay as they are."""
        figures = {name: float(means(values[:, None], self.weights)[0]) for name, values in evaluation.values.items()}
        return figures | dict(evaluation.overall)

    def groups(self, evaluation: Evaluation) -> Groups:
        """Return what each group of users adds to the weighted mean of each metric, so that their mean is that mean.

        Metrics that are not counted by user, or not evaluated, are left out.
        """
        return {name: self._sums(evaluation.values[name]) for name in self.names if name in evaluation.values}

    def _sums(self, values: NDArray[np.float64]) -> tuple[float, ...]:
        counted = np.where(np.isnan(values), 0.0, self.weights)
        sums = np.bincount(self._groups, counted * np.nan_to_num(values), self._count)
        return tuple(np.round(sums * self._count / max(counted.sum(), 1e-300), 9).tolist())


class Gap(NamedTuple):
    """A difference of two means over the same users, its standard error, and half the width of its 95% interval."""

    difference: float
    error: float
    margin: float

    @property
    def significant(self) -> bool:
        """True if the 95% interval of the difference does not contain 0."""
        return abs(self.difference) > self.margin

    @property
    def better(self) -> bool:
        """True if the first is significantly better than the second."""
        return self.difference > self.margin

    @property
    def near(self) -> bool:
        """True if the two are within one standard error of each other."""
        return abs(self.difference) <= self.error

    def __str__(self) -> str:
        return f"{self.difference:+.4f} ± {self.margin:.4f}"


def gap(ours: Groups, theirs: Groups, name: str) -> Gap:
    """Return the difference of two means of a metric, paired by groups of users (Student's t).

    Where there are fewer than two groups, nothing can be told.
    """
    differences: NDArray[np.float64] = np.subtract(ours.get(name, ()), theirs.get(name, ()), dtype=np.float64)
    count = len(differences)
    if count < 2:
        return Gap(float(differences.sum()), np.inf, np.inf)
    error = float(differences.std(ddof=1)) / np.sqrt(count)
    return Gap(float(differences.mean()), error, float(stdtrit(count - 1, 0.5 + _LEVEL / 2)) * error)


def read_groups(record: Mapping[str, Sequence[float]]) -> Groups:
    """Return the groups of a journal."""
    return {name: tuple(values) for name, values in record.items()}
