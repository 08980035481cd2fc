"""The learning curve of a model that learns by epochs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

from relae.errors import DataError, Option
from relae.evaluation import Split
from relae.recommender import HistoryRecommender


class Epoch(NamedTuple):
    """A point of a learning curve; the value on validation users is NaN where they were not evaluated."""

    epoch: int
    seconds: float
    loss: float
    value: float


@dataclass(frozen=True)
class Training:
    """The learning curve of a fit.

    Attributes
    ----------
    curve : sequence of Epoch
    best_epoch, epochs : int
        The epoch whose weights were kept, and how many there were.
    stopped : str
        What ended it: "patience", "epochs" or "time".
    """

    curve: Sequence[Epoch]
    best_epoch: int
    epochs: int
    stopped: str

    @classmethod
    def of(cls, model: HistoryRecommender) -> "Training | None":
        """Return the training of a fitted model; None if it does not learn by epochs."""
        if not model.trains:
            return None
        trained: Any = model  # as every model that `trains`
        marks = tuple(Epoch(int(mark[0]), *(round(float(part), 9) for part in mark[1:4])) for mark in trained.curve_)
        return cls(marks, int(trained.best_epoch_), int(trained.epochs_), str(trained.stopped_))

    def record(self) -> dict[str, Any]:
        """Return the training for JSON, with None for NaN."""
        curve = [[part if isfinite(part) else None for part in mark] for mark in self.curve]
        return {"curve": curve, "best_epoch": self.best_epoch, "epochs": self.epochs, "stopped": self.stopped}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Training":
        """Return the training that `record` wrote."""
        curve = tuple(
            Epoch(int(epoch), *(float("nan") if part is None else float(part) for part in rest))
            for epoch, *rest in record["curve"]
        )
        return cls(curve, int(record["best_epoch"]), int(record["epochs"]), str(record["stopped"]))


def check_users(model: HistoryRecommender, split: Split) -> None:
    """Raise a DataError if a model cannot know the users of a split."""
    if split.new_users and not model.folds_in:
        raise DataError(
            f"{type(model).__name__} knows only the users whom it is fitted to, and those of this split "
            f"({split.protocol}) are others: hold out items instead, with ",
            Option("split", "weak", python="hold_out_items"),
        )
