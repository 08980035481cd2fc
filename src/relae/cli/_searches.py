"""The search behind `relae tune`: of the linear autoencoders, which share one, or of any other model."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.markup import escape

from relae._common.progress import Progress
from relae._common.tables import Grid, short
from relae.baselines import Popularity
from relae.cli._choice import chosen_model, saved_point
from relae.cli._columns import Columns
from relae.cli._data import Divided
from relae.errors import DataError
from relae.recommender import HistoryRecommender, Range
from relae.registry import kind
from relae.solvers import as_solver
from relae.tuning import (
    BASES,
    MEMBERS,
    Choice,
    Constraint,
    Journal,
    Trial,
    Tuning,
    check_choice,
    searched_names,
    symbol,
    tune,
)

Say = Callable[[str], None]
DEFAULTS = "the defaults"  # the role of a model with its own parameters


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


class Searching:
    """A search as the options say; what it cannot use is an error.

    One search serves all six linear autoencoders, or DAN, and fixes none of their parameters. That of any other model
    goes through its `SPACE`; parameters that are given stay as they are.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.model: HistoryRecommender
        self.space: Mapping[str, Range] | None = None
        asked = kind(str(request.parameters.get("model", "rdlae")))
        self.is_shared = asked.__name__ in MEMBERS
        if self.is_shared:
            self._of_family(asked)
        else:
            self._of_model()

    def _of_family(self, asked: type[HistoryRecommender]) -> None:
        given = {name: value for name, value in self.request.parameters.items() if name != "model"}
        self.neighbours = given.pop("neighbours", None)
        self.solver = as_solver(self.request.solver, neighbours=self.neighbours)
        check_choice(self.request.choose)
        if asked not in BASES:
            name = asked.__name__.lower()
            raise DataError(
                f"one run tunes all six linear autoencoders, {name} among them: leave --model {name} out, and name it "
                f"in `relae fit --from RUN --model {name}`"
            )
        if given:
            found = ", or ".join(
                f"{', '.join(map(symbol, searched_names(base)))} (--model {base.__name__.lower()})" for base in BASES
            )
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise DataError(f"{flags} cannot be fixed: a run finds {found}; leave it out")
        self.model = asked()

    def _of_model(self) -> None:
        request, self.neighbours = self.request, None
        for name in ("search", "keep", "solver", "choose"):
            if getattr(request, name) != getattr(Request("", Columns()), name):
                raise DataError(f"--{name} is for the linear autoencoders: leave it out, or leave --model out")
        self.model, self.solver = chosen_model(request.parameters, None)
        fixed = {name for name in request.parameters if name not in ("model", "set")}
        fixed |= {pair.partition("=")[0].strip().replace("-", "_") for pair in request.parameters.get("set", ())}
        searched = self.model.search_space()
        self.space = {name: ranged for name, ranged in searched.items() if name not in fixed}
        if searched and not self.space:
            name = type(self.model).__name__
            raise DataError(f"nothing is left to search: {name} is tuned in {', '.join(searched)}, all given")

    def purpose(self) -> dict[str, Any]:
        """Return what has to be the same for trials to be used again."""
        request = self.request
        found = {name: getattr(request, name) for name in ("search", "objective", "keep", "loss", "solver", "seed")}
        found |= {"model": type(self.model).__name__, "parameters": self.model.get_params()}
        found |= {} if self.space is None else {"space": _saved(self.space)}
        return found | ({} if self.neighbours is None else {"neighbours": self.neighbours})

    def run(
        self, divided: Divided, journal: Journal, time_budget: float | None, progress: Progress, say: Say
    ) -> Tuning:
        """Search, or go on."""
        request = self.request
        return tune(
            self.model,
            divided.valid,
            request.search,
            objective=request.objective,
            budget=request.budget,
            constraint=request.constraint,
            space=self.space,
            choose=request.choose if self.is_shared else "best",
            solver=self.solver,
            seed=request.seed,
            lengths=divided.lengths,
            journal=journal,
            time_budget=time_budget,
            progress=progress,
            on_trial=lambda trial, so_far: say(_news(trial, so_far)),
        )

    def tables(self, result: Tuning) -> list[Grid]:
        """Return the best of each model and the trade-off, or all trials of one model."""
        return [result.grid(), *([result.trade_off()] if self.is_shared else [])]

    def models(self, result: Tuning) -> list[tuple[str, HistoryRecommender]]:
        """Return the chosen model, the same with its defaults unless they were chosen, and popularity, by role."""
        points = {"chosen": result.chosen}
        if result.default is not None and result.default is not result.chosen:
            points[DEFAULTS] = result.default
        return [*((role, result.model_of(point)) for role, point in points.items()), ("popularity", Popularity())]

    def record(self, result: Tuning) -> dict[str, Any]:
        """Return what of the result goes to result.json."""
        chosen, default = result.chosen, result.default
        model = result.model_of(chosen)
        found = {
            "kind": type(model).__name__.lower(),
            "parameters": model.get_params(),
            "space": _saved(result.space),
            "dials": result.dials,
            "chosen": saved_point(chosen),
            "chosen_trial": next(at for at, trial in enumerate(result.trials) if trial is result.trial_of(chosen)),
            "default": None if default is None else saved_point(default),
            "best": {name: saved_point(point) for name, point in result.bests.items()},
        }
        if self.is_shared:
            found |= {"axes": list(result.axes()), "front": [saved_point(point) for point in result.pareto()]}
        return found


def _saved(space: Mapping[str, Range]) -> dict[str, Any]:
    return {name: asdict(ranged) for name, ranged in space.items()}


def _news(trial: Trial, so_far: Tuning) -> str:
    name, number = so_far.objective, len(so_far.trials)
    values = " ".join(f"{symbol(key)} {short(value):<7}" for key, value in trial.parameters.items())
    if trial.failure is not None:
        return f"[yellow]{number:>3}  {values} not fitted: {escape(trial.failure)}[/yellow]"
    here = max(trial.points, key=lambda point: point[name])
    dials = "".join(f" {symbol(key)} {short(here.parameters[key]):<6}" for key in so_far.dials)
    epochs = "" if trial.training is None else f" epoch {trial.training.best_epoch:>4} of {trial.training.epochs:<4}"
    text = f"{number:>3}  {values} {name} {here[name]:.4f}{' at' * bool(dials)}{dials}{epochs} {trial.seconds:5.1f} s"
    best = so_far.best()
    return f"[green]{text}  best so far[/green]" if any(p is best for p in trial.points) else f"[dim]{text}[/dim]"
