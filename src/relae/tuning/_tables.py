"""The result of a search as tables."""

from typing import TYPE_CHECKING, Any

from relae._common.tables import Grid, short
from relae.tuning import _family as family
from relae.tuning._trial import Point

if TYPE_CHECKING:
    from relae.tuning._result import Tuning


def records(result: "Tuning") -> list[dict[str, Any]]:
    """Return a dictionary per configuration: parameters and metrics, and the seconds of a fit of its own."""
    names = _metrics(result)
    rows = []
    for trial in result.trials:
        seconds = {"fit_seconds": trial.fit_seconds, "evaluate_seconds": trial.evaluate_seconds}
        epochs = {} if trial.training is None else {"best_epoch": trial.training.best_epoch}
        own = {} if len(result.members) > 1 else seconds | epochs
        for point in trial.points or [Point(trial.parameters, {})]:
            figures = {name: point.metrics.get(name, float("nan")) for name in names}
            rows.append({**point.parameters, **figures, **own})
    return rows


def _metrics(result: "Tuning") -> list[str]:
    return list(dict.fromkeys(name for point in result.points for name in point.metrics))


def of_models(result: "Tuning") -> Grid:
    """Return a row per model: its best configuration and what it scores."""
    default = {} if result.default is None else {"default": result.default}
    bests = {**result.bests, **default}
    shown, names = _shown_of_models(result), result.parameters
    rows = [
        [model, *(short(point.parameters[name]) for name in names), *(f"{point.metrics[m]:.4f}" for m in shown)]
        for model, point in bests.items()
    ]
    strong = set()
    for c, metric in enumerate(shown):
        values = [round(point[metric], 4) for point in bests.values()]
        strong |= {(r, c + 1 + len(names)) for r, value in enumerate(values) if value == max(values)}
    notes = [f"{len(result.trials)} inversions, {len(result.points):,} configurations, judged by validation users"]
    notes += family.remarks(result.model, result.trials)
    verdict, kept = result.verdict(), result.constraint
    notes += [] if verdict is None else [verdict]
    notes += [] if kept is None else [f"with at most {kept.loss:.1%} of the best {kept.metric} lost"]
    notes += _failures(result)
    header = ["model", *map(family.symbol, names), *shown]
    return Grid(f"Best {result.objective} of each model", header, rows, notes, frozenset(strong))


def _shown_of_models(result: "Tuning") -> list[str]:
    first, second = result.axes()
    k = result.objective.split("@")[1]
    names = [result.objective, first, second, f"unbiased_ndcg@{k}", f"coverage@{k}"]
    return [name for name in dict.fromkeys(names) if name in result.points[0].metrics]


def of_trials(result: "Tuning") -> Grid:
    """Return a row per trial."""
    shown, best = _shown_of_trials(result), result.trial_of(result.chosen)
    learned = any(trial.training is not None for trial in result.trials)
    names = list(result.trials[0].parameters)
    rows = []
    for number, trial in enumerate(result.trials, start=1):
        figures = {name: trial[name] for name in shown} if trial.points else {}
        rows.append(
            [
                f"{number}{' → best' if trial is best else ''}",
                *(short(trial.parameters[name]) for name in names),
                *(f"{figures[name]:.4f}" if figures else "–" for name in shown),
                *([str(trial.training.best_epoch) if trial.training else "–"] if learned else []),
                f"{trial.seconds:.1f}",
            ]
        )
    strong = {
        (r, c + 1 + len(names))
        for c, name in enumerate(shown)
        for r, trial in enumerate(result.trials)
        if round(trial[name], 4) == max(round(other[name], 4) for other in result.trials)
    }
    verdict = result.verdict()
    notes = [f"{len(result.trials)} fits, judged by validation users; the first has the model's own parameters"]
    notes += ([] if verdict is None else [verdict]) + _failures(result)
    header = ["trial", *map(family.symbol, names), *shown, *(["best epoch"] if learned else []), "seconds"]
    title = f"{type(result.model).__name__}: parameters by {result.objective}"
    return Grid(title, header, rows, notes, frozenset(strong))


def _failures(result: "Tuning") -> list[str]:
    return [f"trial {n} could not be fitted: {t.failure}" for n, t in enumerate(result.trials, 1) if t.failure]


def _shown_of_trials(result: "Tuning") -> list[str]:
    """Return the metrics that a reader wants to see first."""
    k = result.objective.partition("@")[2]
    names = [result.objective, f"ndcg@{k}", f"tail_ndcg@{k}", f"unbiased_ndcg@{k}", f"coverage@{k}"]
    return [name for name in dict.fromkeys(names) if name in _metrics(result)]


def of_front(result: "Tuning") -> Grid:
    """Return the trade-off in a dozen lines at most, from most accurate to most tail."""
    first, second = result.axes()
    front, chosen, names = result.pareto(), result.chosen, result.parameters
    step = max(1, len(front) // 10)
    shown = [point for at, point in enumerate(front) if at % step == 0 or at == len(front) - 1 or point is chosen]
    rows = [
        [
            "→ chosen" if point is chosen else "",
            *(short(point.parameters[name]) for name in names),
            *(f"{point.metrics[name]:.4f}" for name in (first, second)),
            f"{point[first] / front[0][first] - 1:+.1%}",
        ]
        for point in shown
    ]
    header = ["", *map(family.symbol, names), first, second, "accuracy"]
    return Grid("The trade-off: no point beats these in both", header, rows, [f"{len(front)} points on the front"])
