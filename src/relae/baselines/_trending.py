"""The same list for everybody: what most users took up lately."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from relae._common.progress import Progress
from relae.baselines._popularity import Popularity
from relae.data import InteractionsLike
from relae.errors import DataError, Option
from relae.linalg import INT64, Arrays, Expected, Layout
from relae.recommender import Parameter, Range, State


class Trending(Popularity):
    """Recommend the items with the most interactions in the last days of the training data, to everybody.

    With r_j the interactions of item j in the last `window` days, c_j those of all time, and c the largest of these,
    the score of item j is

        r_j + c_j / (1 + c)

    so that c_j decides between items with the same r_j, such as those without any in the window. A pair of user and
    item that occurs several times counts with its last time.

    Parameters
    ----------
    window : float
        The length of the window in days, up to the latest interaction; see `Interactions.ages` for the unit of times.

    Attributes
    ----------
    recent_counts_ : (items,)
        r: the interactions of each item in the window.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "window",
            14.0,
            "the number of days, up to the latest interaction, that count",
            low=0,
            above=True,
            search=Range(1, 365, log=True),
            option=True,
        ),
    )

    recent_counts_: NDArray[np.int64]

    def __init__(self, window: float = 14.0) -> None:
        self.window = window

    def fit(self, data: InteractionsLike, *, progress: Progress | None = None) -> Self:
        """Count the interactions of each item in the window; a DataError if the data has no times."""
        self.check_params()
        interactions = self.to_interactions(data)
        if interactions.times is None:
            raise DataError(
                "Trending counts the interactions of the last days, and these have no times: name their column, as in ",
                Option("timestamp", "ts", python="Interactions.read(…, timestamp='ts')"),
            )
        recent = interactions.matrix.indices[interactions.ages() < self.window]
        self.recent_counts_ = np.bincount(recent, minlength=interactions.n_items)
        self.remember(interactions)
        return self

    def demand(self) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self.recent_counts_ + self.item_counts_ / (1.0 + self.item_counts_.max())
        return scores

    def state(self, form: str) -> State:
        state = super().state(form)
        return State(state.facts, {**state.arrays, "recent_counts": self.recent_counts_})

    @classmethod
    def layout(cls, facts: Mapping[str, Any], names: Collection[str]) -> Layout:
        return {**super().layout(facts, names), "recent_counts": Expected(INT64, ("items",))}

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        recent = np.array(arrays["recent_counts"])
        if (recent < 0).any() or (recent > self.item_counts_).any():
            raise ValueError("recent_counts has numbers below 0 or above those of item_counts")
        self.recent_counts_ = recent
