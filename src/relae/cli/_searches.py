"""The two searches behind `relae tune`: of the linear autoencoders, and of the parameters of any other model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

from rich.markup import escape

from relae._common.progress import Progress
from relae._common.tables import Grid, short
from relae.baselines import Popularity
from relae.cli._choice import chosen_model, saved_point
from relae.cli._columns import Columns
from relae.cli._data import Divided
from relae.errors import DataError
from relae.models import DEQL, LinearAutoencoder
from relae.recommender import HistoryRecommender, Range
from relae.registry import kind
from relae.solvers import Solver, as_solver
from relae.tuning import (
    Choice,
    Constraint,
    Journal,
    ModelTrial,
    ModelTuning,
    Trial,
    Tuning,
    check_choice,
    tune,
    tune_model,
)

Say = Callable[[str], None]
DEFAULTS = "the defaults"  # the role of a model with its own parameters
_Result = TypeVar("_Result", Tuning, ModelTuning)


@dataclass(frozen=True)
class Request:
    """What is asked for, as it is kept in the run's folder."""

    source: str
    columns: Columns
    split: str = "auto"
    share: float = 0.1
    seed: int = 0
    search: str = "auto"
    budget: int | None = None
    objective: str = "ndcg@100"
    keep: str | None = None
    loss: float = 0.01
    solver: str = "auto"
    choose: Choice = "tail"
    parameters: Mapping[str, Any] = field(default_factory=dict)  # the model, and what of it is not searched

    @property
    def constraint(self) -> Constraint | None:
        """What to keep."""
        return None if self.keep is None else Constraint(self.keep, self.loss)


class Searching(Protocol, Generic[_Result]):
    """What `relae tune` asks of a search."""

    solver: Solver

    def purpose(self) -> dict[str, Any]:
        """What has to be the same for trials to be used again."""
        ...

    def run(
        self, divided: Divided, journal: Journal, time_budget: float | None, progress: Progress, say: Say
    ) -> _Result:
        """Search, or go on."""
        ...

    def tables(self, result: _Result) -> list[Grid]:
        """What to show of the result."""
        ...

    def models(self, result: _Result) -> list[tuple[str, HistoryRecommender]]:
        """The chosen model and its rivals, not fitted, by role."""
        ...

    def record(self, result: _Result) -> dict[str, Any]:
        """What of the result goes to result.json."""
        ...


def searching(request: Request) -> "Searching[Any]":
    """Return the search for a model; what it cannot use is an error."""
    name = str(request.parameters.get("model", "rdlae"))
    found = kind(name)  # the weights of DEQL are no matter of ξ
    return LinearSearch(request) if issubclass(found, LinearAutoencoder) and found is not DEQL else ModelSearch(request)


class LinearSearch:
    """All six linear autoencoders at once, or DAN: l2, dropout, norms of users, and every dial from one inverse."""

    def __init__(self, request: Request) -> None:
        self.request = request
        given = dict(request.parameters)
        name, self.neighbours = str(given.pop("model", "rdlae")), given.pop("neighbours", None)
        self.solver = as_solver(request.solver, neighbours=self.neighbours)
        self.norms = name == "dan"
        check_choice(request.choose)
        if name not in ("rdlae", "dan"):
            raise DataError(
                f"one run tunes all six linear autoencoders, {name} among them: leave --model {name} out, and name it "
                f"in `relae fit --from RUN --model {name}`"
            )
        if given:
            raise DataError(
                f"{', '.join(map(_flag, given))} cannot be fixed: a run finds l2, dropout and ξ, and norms with "
                "--model dan; leave it out"
            )

    def purpose(self) -> dict[str, Any]:
        """What has to be the same; without neighbours and norms it is as it was before there were any."""
        kept = ("search", "objective", "keep", "loss", "solver")
        found = {name: getattr(self.request, name) for name in kept}
        found |= {} if self.neighbours is None else {"neighbours": self.neighbours}
        return found | ({"norms": True} if self.norms else {})

    def run(
        self, divided: Divided, journal: Journal, time_budget: float | None, progress: Progress, say: Say
    ) -> Tuning:
        """Search, or go on."""
        request = self.request
        return tune(
            divided.valid,
            request.search,
            objective=request.objective,
            budget=16 if request.budget is None else request.budget,
            constraint=request.constraint,
            solver=self.solver,
            norms=self.norms,
            choose=request.choose,
            lengths=divided.lengths,
            journal=journal,
            time_budget=time_budget,
            progress=progress,
            on_trial=lambda trial, so_far: say(_linear_news(trial, so_far)),
        )

    def tables(self, result: Tuning) -> list[Grid]:
        """The best of each model, and the trade-off."""
        bests, front = result.grid(), _front(result)
        if not self.norms:
            return [bests, front]
        plain = sum(trial.user_norm == 0 for trial in result.trials)
        note = f"searched for DAN: models without norms had only {plain} of them, and may do better by their own search"
        return [replace(bests, notes=[*bests.notes, note]), front]

    def models(self, result: Tuning) -> list[tuple[str, HistoryRecommender]]:
        """The chosen model, the same with its defaults unless they were chosen, and popularity."""
        points = [("chosen", result.chosen)]
        if result.default is not None and result.default is not result.chosen:
            points.append((DEFAULTS, result.default))
        return [*((role, point.model()) for role, point in points), ("popularity", Popularity())]

    def record(self, result: Tuning) -> dict[str, Any]:
        """The chosen point, the best of each model and the trade-off."""
        return {
            "chosen": saved_point(result.chosen),
            "default": None if result.default is None else saved_point(result.default),
            "best": {name: saved_point(point) for name, point in result.bests.items()},
            "axes": list(result.axes()),
            "front": [saved_point(point) for point in result.pareto()],
        }


class ModelSearch:
    """The parameters of one model, within its `SPACE`; those that are given stay as they are."""

    def __init__(self, request: Request) -> None:
        self.request = request
        for name in ("search", "keep", "solver", "choose"):
            if getattr(request, name) != getattr(Request("", Columns()), name):
                raise DataError(f"--{name} is for the linear autoencoders: leave it out, or leave --model out")
        self.model, self.solver = chosen_model(request.parameters, None)
        fixed = {name for name in request.parameters if name not in ("model", "set")}
        fixed |= {pair.partition("=")[0].strip().replace("-", "_") for pair in request.parameters.get("set", ())}
        searched = self.model.search_space()
        self.space: Mapping[str, Range] = {n: r for n, r in searched.items() if n not in fixed}
        if searched and not self.space:
            name = type(self.model).__name__
            raise DataError(f"nothing is left to search: {name} is tuned in {', '.join(searched)}, all given")

    def purpose(self) -> dict[str, Any]:
        """The model with its parameters, and where they are searched."""
        return {
            "model": type(self.model).__name__,
            "parameters": self.model.get_params(),
            "space": {name: asdict(ranged) for name, ranged in self.space.items()},
            "objective": self.request.objective,
            "seed": self.request.seed,
        }

    def run(
        self, divided: Divided, journal: Journal, time_budget: float | None, progress: Progress, say: Say
    ) -> ModelTuning:
        """Search, or go on."""
        return tune_model(
            self.model,
            divided.valid,
            objective=self.request.objective,
            budget=8 if self.request.budget is None else self.request.budget,
            space=self.space,
            seed=self.request.seed,
            journal=journal,
            time_budget=time_budget,
            lengths=divided.lengths,
            solver=self.solver,
            progress=progress,
            on_trial=lambda trial, so_far: say(_model_news(trial, so_far)),
        )

    def tables(self, result: ModelTuning) -> list[Grid]:
        """All trials."""
        return [result.grid()]

    def models(self, result: ModelTuning) -> list[tuple[str, HistoryRecommender]]:
        """The chosen model, the one it began with if that is another, and popularity."""
        found = [("chosen", result.best_model())]
        if result.best_trial is not result.trials[0]:
            found.append((DEFAULTS, result.model_of(result.trials[0])))
        return [*found, ("popularity", Popularity())]

    def record(self, result: ModelTuning) -> dict[str, Any]:
        """The kind of model, all parameters of the chosen one, and its trial."""
        return {
            "kind": type(self.model).__name__.lower(),
            "parameters": result.best_model().get_params(),
            "space": {name: asdict(ranged) for name, ranged in self.space.items()},
            "chosen": {**result.best, **result.best_trial.metrics},
            "chosen_trial": result.trials.index(result.best_trial),
        }


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _linear_news(trial: Trial, so_far: Tuning) -> str:
    name = so_far.objective
    best, here = so_far.best(), max(trial.points, key=lambda point: point[name])
    beta, alpha = (f"β {trial.user_norm:<3g} ", f"α {here.item_norm:<4g} ") if so_far.normalizing else ("", "")
    text = (
        f"{len(so_far.trials):>3}  l2 {trial.l2:<7g} dropout {trial.dropout:<4g} {beta}{name} {here[name]:.4f} "
        f"at ξ {here.xi:<6g} {alpha}{trial.fit_seconds + trial.evaluate_seconds:5.1f} s"
    )
    return _marked(text, best in trial.points)


def _model_news(trial: ModelTrial, so_far: ModelTuning) -> str:
    name, number = so_far.objective, len(so_far.trials)
    values = " ".join(f"{key} {short(value):<7}" for key, value in trial.parameters.items())
    if trial.failure is not None:
        return f"[yellow]{number:>3}  {values} not fitted: {escape(trial.failure)}[/yellow]"
    epochs = "" if trial.training is None else f" epoch {trial.training.best_epoch:>4} of {trial.training.epochs:<4}"
    text = f"{number:>3}  {values} {name} {trial[name]:.4f}{epochs} {trial.seconds:5.1f} s"
    return _marked(text, so_far.best_trial is trial)


def _marked(text: str, is_best: bool) -> str:
    return f"[green]{text}  best so far[/green]" if is_best else f"[dim]{text}[/dim]"


def _front(result: Tuning) -> Grid:
    """The trade-off in a dozen lines at most, from most accurate to most tail."""
    first, second = result.axes()
    front = result.pareto()
    chosen = result.chosen
    step = max(1, len(front) // 10)
    shown = [point for at, point in enumerate(front) if at % step == 0 or at == len(front) - 1 or point is chosen]
    signs = {"l2": "l2", "dropout": "dropout", "xi": "ξ"}
    signs |= {"user_norm": "β", "item_norm": "α"} if result.normalizing else {}
    rows: Sequence[Sequence[str]] = [
        [
            "→ chosen" if point is chosen else "",
            *(f"{getattr(point, name):.4g}" for name in signs),
            *(f"{point.metrics[name]:.4f}" for name in (first, second)),
            f"{point[first] / front[0][first] - 1:+.1%}",
        ]
        for point in shown
    ]
    header = ["", *signs.values(), first, second, "accuracy"]
    return Grid("The trade-off: no point beats these in both", header, rows, [f"{len(front)} points on the front"])
