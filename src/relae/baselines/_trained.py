"""The base of models that are trained by gradient steps. Only their fit needs torch."""

import json
import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypedDict

import numpy as np

from relae._common.checks import refuse
from relae._common.files import lock_file
from relae._common.progress import Progress
from relae.baselines._parameters import TRAINING
from relae.data import Interactions, InteractionsLike
from relae.errors import DataError, Option, ParameterError, PlanError, RelaeError
from relae.evaluation import METRICS, Split, evaluate
from relae.linalg import Arrays, fingerprint
from relae.recommender import HistoryRecommender, Parameter, State, number, text, whole

if TYPE_CHECKING:
    from relae.baselines.neural import Network


class Mark(NamedTuple):
    """A point of a learning curve; without a validation, `value` is nan."""

    epoch: int
    seconds: float
    loss: float
    value: float


class Training(TypedDict, total=False):
    """Training options shared by all neural models; see `Trained`."""

    batch_size: int | None
    epochs: int
    every: int
    patience: int
    validation_share: float
    objective: str
    seed: int


class GraphTraining(Training, total=False):
    """Training options shared by the graph models; each sets its own learning rate."""

    average: float


class Trained(HistoryRecommender):
    """A model that is trained by Adam, epoch after epoch, until a validation stops it.

    Parameters
    ----------
    learning_rate : float
        Of Adam.
    batch_size : int, optional
        Chosen from the data if not given: see the model.
    average : float
        What a running average of the weights keeps of itself at a step, from 0 (no average) to below 1: 0.98 looks back
        some fifty steps, 0.999 a thousand, but never further than a tenth of all steps so far. The average is then
        what is judged, kept and used.
    epochs : int
        The most.
    every : int
        Epochs from one validation to the next.
    patience : int
        Validations without a new best before training stops; 0 never stops.
    validation_share : float
        What is hidden from training for the validation: of every user's items, or of the users for a model that folds
        in new ones. With 0, and without a validation of your own, the last epoch counts.
    objective : str
        What the validation maximizes: a metric and a cut-off.
    seed : int
        Of the start, the batches and the validation.

    Attributes
    ----------
    curve_ : list of Mark
        Epoch, seconds of training so far, mean loss, and the objective where it was measured.
    epochs_, best_epoch_ : int
        Trained, and kept.
    stopped_ : str
        What ended the training: "epochs", "patience" or "time".
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = TRAINING
    trains: ClassVar[bool] = True

    curve_: list[Mark]
    epochs_: int
    best_epoch_: int
    stopped_: str

    def __init__(
        self,
        *,
        learning_rate: float = 1e-3,
        batch_size: int | None = None,
        average: float = 0.999,
        epochs: int = 1000,
        every: int = 5,
        patience: int = 10,
        validation_share: float = 0.1,
        objective: str = "ndcg@20",
        seed: int = 0,
    ) -> None:
        self.learning_rate, self.batch_size, self.average = learning_rate, batch_size, average
        self.epochs, self.every = epochs, every
        self.patience, self.validation_share, self.objective, self.seed = patience, validation_share, objective, seed

    # --- what a model says of itself -----------------------------------------------------------------------------

    @abstractmethod
    def _network(self, data: Interactions) -> "Network":
        """Return the network to train."""

    @abstractmethod
    def _take(self, arrays: Arrays, data: Interactions) -> None:
        """Take up what a network has learned."""

    @abstractmethod
    def _divide(self, data: Interactions) -> Split:
        """Hide `validation_share`."""

    def _check(self) -> None:
        """Raise a ValueError for a parameter whose value is not allowed."""
        self.check_params()
        metric, _, k = str(self.objective).partition("@")
        if metric not in METRICS or not k.isdigit():
            raise ParameterError(
                Option("objective"),
                f" must be a metric and a cut-off, such as 'ndcg@20', got {self.objective!r}: the metrics are "
                f"{', '.join(METRICS)}",
                field="objective",
                value=self.objective,
            )

    # --- training ------------------------------------------------------------------------------------------------

    def fit(
        self,
        data: InteractionsLike,
        *,
        validation: Split | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        time_budget: float | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Train on interactions, or on a sparse matrix (users × items); an earlier fit is kept until this one is done.

        Parameters
        ----------
        data
            What to train on.
        validation
            Whom to judge each epoch by, instead of a share of the data.
        checkpoint
            A file that is kept up to date meanwhile: if it exists, training goes on from it and ends where it would
            have ended without a break.
        time_budget
            Seconds of training after which no further epoch is started, counting those before a break, and not those
            of validations.
        progress
            Called with "train" and the fraction of the epochs, or of the time, that is done.
        """
        self._check()
        if time_budget is not None and not time_budget >= 0:
            refuse("time_budget", time_budget, "be a number of seconds of at least 0")
        interactions = self.to_interactions(data)
        with _torch():
            from relae.baselines import neural
        split = validation
        if split is None and self.validation_share > 0:
            try:
                split = self._divide(interactions)
            except DataError as error:
                raise DataError(
                    error, "; ", Option("validation_share", 0), " trains without a validation", field="validation_share"
                ) from error
        seen = interactions if validation is not None or split is None else split.train
        path = None if checkpoint is None else Path(checkpoint)
        try:
            with _torch():
                network = self._network(seen)
            with nullcontext() if path is None else lock_file(path):
                outcome = neural.train(
                    network,
                    self,
                    judge=None if split is None else self._judge(seen, split),
                    checkpoint=None if path is None else neural.Checkpoint(path, self._purpose(seen, split)),
                    time_budget=time_budget,
                    progress=progress,
                )
        except RuntimeError as error:  # what torch makes of too little memory
            if "can't allocate memory" not in str(error):
                raise
            raise PlanError(
                f"{type(self).__name__} with ",
                Option("dim", self.get_params()["dim"]),
                " does not fit into memory: use a smaller ",
                Option("dim"),
                " or ",
                Option("batch_size"),
                ", or data with fewer items, as by ",
                Option("min_item_count"),
            ) from error
        self._take(outcome.arrays, interactions)
        self.curve_, self.stopped_ = outcome.curve, outcome.stopped
        self.epochs_, self.best_epoch_ = outcome.epoch, outcome.best_epoch
        return self

    def _judge(self, seen: Interactions, split: Split) -> Any:
        """Return a function that evaluates the arrays of an epoch."""
        metric, _, k = self.objective.partition("@")
        at = min(int(k), split.n_candidates)

        def judge(arrays: Arrays) -> float:
            candidate = type(self)(**self.get_params())
            candidate._take(arrays, seen)
            return float(evaluate(candidate, split, [metric], [at])[f"{metric}@{at}"])

        return judge

    def _purpose(self, seen: Interactions, split: Split | None) -> str:
        """Return what has to be the same for a training to go on from a checkpoint."""
        judged: list[Any] = [] if split is None else [split.histories, split.truth, split.candidates, split.seen]
        parameters = {name: value for name, value in self.get_params().items() if name not in ("epochs", "patience")}
        if self.uses_times:
            judged += [seen.times, None if split is None else split.history_times]
        data = fingerprint(seen.matrix, *(part for part in judged if part is not None))
        return json.dumps([type(self).__name__, parameters, data], default=str)

    # --- on disk -------------------------------------------------------------------------------------------------

    def state(self, form: str) -> State:
        state = super().state(form)
        facts = {
            "epochs": self.epochs_,
            "best_epoch": self.best_epoch_,
            "stopped": self.stopped_,
            "curve": [[*mark[:3], None if np.isnan(mark.value) else mark.value] for mark in self.curve_],
        }
        return State({**state.facts, **facts}, state.arrays)

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        self.epochs_, self.best_epoch_ = whole(facts, "epochs"), whole(facts, "best_epoch")
        self.stopped_, self.curve_ = text(facts, "stopped"), [_mark(*mark) for mark in facts["curve"]]
        if not self.curve_:
            raise ValueError("the curve of the training has no epoch")

    def facts(self) -> dict[str, str]:
        trained = f"{self.epochs_:,} epochs, {self.curve_[-1].seconds:,.0f} s, stopped by {self.stopped_}"
        return super().facts() | {"trained": trained, "kept": f"epoch {self.best_epoch_:,}"}


def _mark(epoch: Any, seconds: Any, loss: Any, value: Any) -> Mark:
    """Return what was noted of an epoch; a ValueError if one of its figures is not a number."""
    noted = {"epoch": epoch, "seconds": seconds, "loss": loss, "value": 0.0 if value is None else value}
    objective = number(noted, "value")
    return Mark(
        whole(noted, "epoch"),
        number(noted, "seconds", 0),
        number(noted, "loss"),
        np.nan if value is None else objective,
    )


@contextmanager
def _torch() -> Iterator[None]:
    """Raise an error that says what to install where an import fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "torchdiffeq"):
            raise
        raise RelaeError(f"{error.name} is not installed: pip install 'relae[neural]'") from error
    except ImportError as error:
        raise RelaeError(f"torch cannot be loaded ({error}): install it again, pip install 'relae[neural]'") from error
