"""The training loop: batches, steps of Adam, validation, the best epoch, and checkpoints."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite, isnan, nan
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from relae._common.progress import Progress
from relae.baselines._trained import Mark
from relae.baselines.neural._average import Average
from relae.baselines.neural._checkpoint import Checkpoint, optimizer_arrays, restore_optimizer
from relae.errors import DataError, DataWarning, Option, ParameterWarning

if TYPE_CHECKING:
    from relae.baselines._trained import Trained

_KEEP_EVERY = 20.0  # seconds from one checkpoint to the next
Found = dict[str, NDArray[Any]]


def even_parts(total: int, size: int) -> Iterator[tuple[int, int]]:
    """Return the bounds of the batches of an epoch: as few as possible, of equal size and at most `size`.

    A last batch of a few draws would be noise, for which Adam takes a step as long as for any other.
    """
    number = -(-total // size)
    return pairwise(total * at // number for at in range(number + 1))


class Network(nn.Module):
    """A network that can be trained."""

    warm_up = 0  # epochs before all of it learns: none of them is kept as the best, or ends the training

    def batches(self, rng: np.random.Generator, size: int | None) -> Iterator[Any]:
        """Draw the batches of one epoch, each with the fraction of the epoch that it completes."""
        raise NotImplementedError

    def loss(self, batch: Any) -> Tensor:
        """Return the mean loss of a batch."""
        raise NotImplementedError

    def score_arrays(self) -> Found:
        """Return copies of the arrays that scores are computed from."""
        raise NotImplementedError

    def start(self, epoch: int) -> None:
        """Do what an epoch begins with, such as cooling."""

    def groups(self, learning_rate: float) -> list[dict[str, Any]]:
        """Return parameters for the optimizer, with their learning rates."""
        return [{"params": list(self.parameters()), "lr": learning_rate}]


@dataclass
class Outcome:
    """The state of a training and its best epoch."""

    epoch: int = 0
    seconds: float = 0.0
    best: float = nan
    best_epoch: int = 0
    stopped: str = ""
    curve: list[Mark] = field(default_factory=list)
    arrays: Found = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return everything but the arrays, for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "arrays"}


def train(
    network: Network,
    model: "Trained",
    *,
    judge: Callable[[Found], float] | None = None,
    checkpoint: Checkpoint | None = None,
    time_budget: float | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Train until the epochs, the patience or the time are at their end, and return the best epoch.

    Every epoch draws from a generator of its own, so that an epoch that is repeated after a break is the same.
    """
    optimizer = torch.optim.AdamW(network.groups(model.learning_rate), weight_decay=0.0, fused=True)
    average = Average(network, model.average)
    outcome = _begun(network, optimizer, average, checkpoint)
    if checkpoint is not None and outcome.epoch > model.epochs:
        raise DataError(
            f"the checkpoint {checkpoint.path} has {outcome.epoch:,} epochs, and {model.epochs:,} are asked for: "
            "remove it to start anew"
        )
    if checkpoint is not None and not outcome.epoch:
        _keep(checkpoint, outcome, network, optimizer, average)  # where it cannot be written, now is the time to know
    kept = monotonic()
    while not (stopped := _reason_to_stop(outcome, network.warm_up, model, time_budget)):
        done = _share_done(outcome, model.epochs, time_budget)
        outcome.epoch += 1
        then = _share_done(outcome, model.epochs, time_budget)
        started = perf_counter()
        with torch.random.fork_rng(devices=[]):
            loss = _epoch(network, optimizer, average, outcome.epoch, model, _between(progress, done, then))
        outcome.seconds = round(outcome.seconds + perf_counter() - started, 3)
        value = nan
        if judge is not None and (outcome.epoch % model.every == 0 or outcome.epoch == model.epochs):
            arrays = _score_arrays(network, average, model, outcome.epoch)
            value = judge(arrays)
            if outcome.epoch > network.warm_up and (isnan(outcome.best) or value > outcome.best):
                outcome.best, outcome.best_epoch, outcome.arrays = value, outcome.epoch, arrays
        outcome.curve.append(Mark(outcome.epoch, outcome.seconds, loss, value))
        if checkpoint is not None and monotonic() - kept > _KEEP_EVERY:
            _keep(checkpoint, outcome, network, optimizer, average)
            kept = monotonic()
    if isnan(outcome.best):  # nothing was judged: the last one counts
        outcome.arrays, outcome.best_epoch = _score_arrays(network, average, model, outcome.epoch), outcome.epoch
    if outcome.epoch <= network.warm_up:
        warnings.warn(
            ParameterWarning(
                f"{type(model).__name__} was trained for {outcome.epoch:,} epochs, and some of it learns only after a "
                f"warm-up of {network.warm_up:,}: train longer, or give a lower ",
                Option("warm_up", ...),
            ),
            stacklevel=3,
        )
    outcome.stopped = stopped
    if checkpoint is not None:
        try:
            _keep(checkpoint, outcome, network, optimizer, average)
        except DataError as error:  # what was asked for is there
            warnings.warn(DataWarning(error, "; the training is complete without it"), stacklevel=3)
    return outcome


def _reason_to_stop(outcome: Outcome, warm_up: int, model: "Trained", time_budget: float | None) -> str:
    since = max(outcome.best_epoch, warm_up)
    judged = sum(not isnan(mark.value) for mark in outcome.curve if mark.epoch > since)
    if outcome.epoch >= model.epochs:
        return "epochs"
    if model.patience and judged >= model.patience:
        return "patience"
    return "time" if time_budget is not None and outcome.epoch and outcome.seconds >= time_budget else ""


def _epoch(
    network: Network,
    optimizer: torch.optim.Optimizer,
    average: Average,
    epoch: int,
    model: "Trained",
    report: Callable[[float], None],
) -> float:
    """Take the steps of one epoch, and return their mean loss."""
    rng = np.random.default_rng([model.seed, epoch])
    torch.manual_seed(int(rng.integers(2**63)))
    network.train()
    network.start(epoch)
    losses = []
    for batch, fraction in network.batches(rng, model.batch_size):
        optimizer.zero_grad(set_to_none=True)
        loss = network.loss(batch)
        loss.backward()
        optimizer.step()
        average.follow()
        losses.append(float(loss.detach()))
        report(fraction)
    mean = float(np.mean(losses))
    if not isfinite(mean):
        raise _diverged(model, epoch, f"the loss is {mean}")
    return mean


def _score_arrays(network: Network, average: Average, model: "Trained", epoch: int) -> Found:
    with average.in_place():
        arrays = network.score_arrays()
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise _diverged(model, epoch, "some weights are not finite")
    return arrays


def _diverged(model: "Trained", epoch: int, what: str) -> DataError:
    return DataError(
        f"the training has diverged in epoch {epoch}: {what}; use a learning rate below {model.learning_rate:g}"
    )


def _share_done(outcome: Outcome, epochs: int, time_budget: float | None) -> float:
    by_time = 0.0 if time_budget is None else min(1.0, outcome.seconds / max(time_budget, 1e-9))
    return max(outcome.epoch / epochs, by_time)


def _between(progress: Progress | None, low: float, high: float) -> Callable[[float], None]:
    """Report the fraction of an epoch as a part of the whole."""
    if progress is None:
        return lambda _: None
    return lambda fraction: progress("train", low + (high - low) * fraction)


# --- checkpoints ---------------------------------------------------------------------------------------------------


def _begun(
    network: Network, optimizer: torch.optim.Optimizer, average: Average, checkpoint: Checkpoint | None
) -> Outcome:
    """Return where a training stands, with the network, the optimizer and the average as they were then."""
    if checkpoint is None or (before := checkpoint.read()) is None:
        return Outcome()
    record, groups = before
    try:
        network.load_state_dict({name: torch.from_numpy(np.array(a)) for name, a in groups["network"].items()})
        restore_optimizer(optimizer, groups.get("optimizer", {}))
        average.restore(groups["average"])
        curve = [Mark(*mark) for mark in record.pop("curve")]
        return Outcome(**record, curve=curve, arrays=groups.get("best", {}))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:  # RuntimeError: load_state_dict misses something
        raise checkpoint.damaged() from error


def _keep(
    checkpoint: Checkpoint, outcome: Outcome, network: Network, optimizer: torch.optim.Optimizer, average: Average
) -> None:
    checkpoint.write(
        outcome.record(),
        {
            "network": {name: value.numpy() for name, value in network.state_dict().items()},
            "optimizer": optimizer_arrays(optimizer),
            "average": average.arrays(),
            "best": outcome.arrays,
        },
    )
