"""`relae report`: read a run, fit the chosen model once more, and write one page about it."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from relae import __version__
from relae._common.files import lock_file, write_text
from relae._common.progress import Progress
from relae.analysis import report
from relae.baselines import Popularity
from relae.cli import _console
from relae.cli._choice import read_point
from relae.cli._columns import Columns
from relae.cli._data import Divided, load
from relae.cli._progress import progress_bar
from relae.cli._searches import DEFAULTS
from relae.errors import DataError
from relae.evaluation import Evaluation, evaluate
from relae.models import LinearAutoencoder
from relae.recommender import HistoryRecommender, Range
from relae.registry import kind
from relae.solvers import Solver, as_solver
from relae.tuning import Point, Training, Trial, describe, ends, linear_model, with_epochs

_SAMPLES = 5


def make(
    run: Path, out: Path | None = None, *, samples: int = _SAMPLES, user_ids: bool = False, today: date | None = None
) -> Path:
    """Write the report of a run, show where it is, and return that place.

    Parameters
    ----------
    run
        The folder of `relae tune DATA --out RUN`.
    out
        The file; `report.html` in that folder if not given.
    samples
        How many test users to show recommendations for; with 0 nobody's history is in the report.
    user_ids
        Call these users by their ids rather than by a number.
    today
        The date in the report.
    """
    if samples < 0:
        raise ValueError(f"the number of sample users must be at least 0, got {samples!r}")
    console = _console.output()
    target = run / "report.html" if out is None else out
    found = _read(run)
    with lock_file(target):
        page = _page(run, out, *found, samples, user_ids, today)
        write_text(target, page)
    console.print(f"{target}: {len(page.encode()) / 1e3:,.0f} kB, open it in any browser", soft_wrap=True, markup=False)
    return target


def _page(
    run: Path,
    out: Path | None,
    result: dict[str, Any],
    purpose: dict[str, Any],
    trials: list[Trial],
    samples: int,
    user_ids: bool,
    today: date | None,
) -> str:
    """Return the report as a page."""
    errors = _console.errors()
    with errors.status(f"reading {result['request']['source']}", spinner="line"):
        divided = _load(run, result)
    _check(run, result, purpose, divided)
    models = _models(result, trials)
    with progress_bar(errors) as progress:
        model, judged, differences = _judge(models, result, divided, progress, samples > 0)
    common = _common(run, out, result, divided, judged, differences, samples, user_ids, today)
    if model is not None:
        common["samples"] = report.samples(model, divided.test, samples, ids=user_ids)
    data = _data(common, result, trials, divided, models[0][1], model)
    return report.render(data)


# --- the run -----------------------------------------------------------------------------------------------------


def _read(run: Path) -> tuple[dict[str, Any], dict[str, Any], list[Trial]]:
    """Return the result, what was searched, and the trials."""
    way_out = f"make it with `relae tune DATA --out {shlex.quote(str(run))}`"
    texts = []
    for name in ("result.json", "journal.jsonl"):
        try:
            texts.append((run / name).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            what = "is no folder of a run" if not run.is_dir() else f"has no {name}: the run is not finished"
            raise DataError(f"{run} {what}; {way_out}") from error
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{run / name} cannot be read ({error}); {way_out}") from error
    try:
        result = json.loads(texts[0])
        lines = texts[1][: texts[1].rfind("\n") + 1].splitlines()
        purpose, trials = json.loads(lines[0]), [Trial.from_json(line) for line in lines[1:]]
        _examine(result, trials)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise DataError(f"{run} is damaged, or no folder of a run ({error}); {way_out}") from error
    return result, purpose, trials[: result["trials"]]


def _examine(result: Any, trials: Sequence[Trial]) -> None:
    """Raise some error if a result is not what `relae tune` writes."""
    wanted = ("title", "command", "protocol", "model", "test")
    request = ("source", "columns", "split", "share", "seed", "solver", "loss", "choose")
    missing = [name for name in wanted if name not in result]
    missing += [name for name in request if name not in result["request"]]
    if missing or not trials:
        raise ValueError(f"there is no {', '.join(missing) or 'trial'}")
    if len(trials) < result["trials"]:
        raise ValueError(f"the journal has {len(trials)} of {result['trials']} trials")
    _cut_off(result)
    names = [name for name in result["space"] if name not in result["dials"]]
    for trial in trials:
        if set(trial.parameters) != set(names):
            raise ValueError("a trial has other parameters than those searched")
    if not names or result["objective"] not in result["chosen"] or not trials[result["chosen_trial"]].points:
        raise ValueError("the chosen trial lacks its figures")
    for ranged in result["space"].values():
        Range(**ranged)
    kind(result["kind"])(**result["parameters"])
    if result["dials"]:
        _examine_points(result)
    for entry in result["test"] or []:
        _judged(entry["role"], entry["model"], entry["figures"])


def _examine_points(result: Any) -> None:
    if not result["best"]:
        raise ValueError("there is no best point")
    first, second = result["axes"]
    for record in (result["chosen"], *result["best"].values(), *result["front"]):
        linear_model(_point(record, result).parameters)
        if not {first, second, result["objective"]} <= set(record):
            raise ValueError("a point lacks a metric")


def _cut_off(result: Mapping[str, Any]) -> int:
    return int(result["objective"].split("@")[1])


def _load(run: Path, result: Mapping[str, Any]) -> Divided:
    request = result["request"]
    try:
        given = Columns.of(request["columns"]), request["split"], request["share"], request["seed"]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{run / 'result.json'} does not say how to read the data ({error}): tune again") from error
    try:
        return load(request["source"], *given)
    except DataError as error:
        raise DataError(f"{error}. Run `relae report` where `relae tune` was run, with the same data there") from error


def _check(run: Path, result: Mapping[str, Any], purpose: Mapping[str, Any], divided: Divided) -> None:
    """Refuse to report figures of one data set or version next to recommendations of another."""
    again = f"make the run again: {result['command']}"
    if purpose.get("version") != __version__:
        raise DataError(f"{run} was made by relae {purpose.get('version')}, and this is {__version__}; {again}")
    if purpose.get("data") != divided.fingerprint:
        raise DataError(f"the data {result['request']['source']} has changed since {run} was made; {again}")


# --- the models --------------------------------------------------------------------------------------------------


def _models(result: Mapping[str, Any], trials: Sequence[Trial]) -> list[tuple[str, HistoryRecommender]]:
    """Return the chosen model and its rivals, not fitted, by role."""
    chosen = kind(result["kind"])(**result["parameters"])
    found: list[tuple[str, HistoryRecommender]] = [("chosen", chosen)]
    if result["default"] not in (None, result["chosen"]):
        default = _point(result["default"], result)
        found.append(
            (DEFAULTS, linear_model(default.parameters) if result["dials"] else _other(chosen, default, trials[0]))
        )
    return [*found, ("popularity", Popularity())]


def _other(model: HistoryRecommender, point: Point, trial: Trial) -> HistoryRecommender:
    """Return a model with the parameters of a point, trained for as many epochs as were best there."""
    other = type(model)(**model.get_params()).set_params(**point.parameters)
    return with_epochs(other, trial.training)


def _judge(
    models: Sequence[tuple[str, HistoryRecommender]],
    result: Mapping[str, Any],
    divided: Divided,
    progress: Progress,
    samples: bool,
) -> tuple[HistoryRecommender | None, list[report.Judged], list[report.Difference]]:
    """Fit the chosen model; evaluate it and its rivals unless the run already says all there is to say.

    Rivals come first: what was fitted of them is gone when the chosen one comes. If the run says all and no samples are
    wanted, only a run of the linear autoencoders needs a fit, for its ξ.
    """
    chosen, k = models[0][1], _cut_off(result)
    saved = result["test"] or []
    differences = [_difference(entry["role"], row) for entry in saved[1:] for row in entry.get("differences") or []]
    known = {(row["metric"], row["k"]) for entry in saved[:1] for row in entry["figures"]}
    if differences and all((metric, k) in known for metric in report.METRICS if metric != "unbiased_recall"):
        judged = [_judged(entry["role"], entry["model"], entry["figures"]) for entry in saved]
        if not samples and not result["dials"]:
            return None, judged, differences
        chosen.fit_with(divided.test.train, solver=_solver(result), progress=progress)
        return chosen, judged, differences
    evaluations = {role: _evaluated(type(m)(**m.get_params()), result, divided, k, progress) for role, m in models[1:]}
    ours = _evaluated(chosen, result, divided, k, progress)
    by_role = {entry["role"]: entry["figures"] for entry in saved}
    judged = [
        _judged(role, evaluation.model, _merged(evaluation.records(), by_role.get(role, [])))
        for role, evaluation in {"chosen": ours, **evaluations}.items()
    ]
    rows = [_difference(role, row._asdict()) for role, e in evaluations.items() for row in ours.compare(e).rows]
    return chosen, judged, rows


def _solver(result: Mapping[str, Any]) -> Solver:
    """Return how the linear autoencoders of a run were solved."""
    request = result["request"]
    return as_solver(request["solver"], neighbours=request.get("parameters", {}).get("neighbours"))


def _evaluated(
    model: HistoryRecommender, result: Mapping[str, Any], divided: Divided, k: int, progress: Progress
) -> Evaluation:
    model.fit_with(divided.test.train, solver=_solver(result), progress=progress)
    return evaluate(model, divided.test, report.METRICS, sorted({min(20, k), k}), progress=progress)


def _merged(ours: Sequence[Mapping[str, Any]], saved: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What the run says counts; the rest is what it did not look at."""
    found = {(row["metric"], row["k"]): row for row in (*ours, *saved)}
    return list(found.values())


def _judged(role: str, model: str, rows: Sequence[Mapping[str, Any]]) -> report.Judged:
    names = ("metric", "k", "mean", "low", "high", "users")
    return report.Judged(role, model, [report.Figure(**{name: _number(row[name]) for name in names}) for row in rows])


def _difference(role: str, row: Mapping[str, Any]) -> report.Difference:
    names = ("metric", "k", "difference", "low", "high", "p_value")
    return report.Difference(role, **{name: _number(row[name]) for name in names})


def _number(value: Any) -> Any:
    """JSON has null for what is not a number."""
    return float("nan") if value is None else value


# --- the page ----------------------------------------------------------------------------------------------------


def _common(
    run: Path,
    out: Path | None,
    result: Mapping[str, Any],
    divided: Divided,
    judged: Sequence[report.Judged],
    differences: Sequence[report.Difference],
    samples: int,
    user_ids: bool,
    today: date | None,
) -> dict[str, Any]:
    """Return what every report shows."""
    request, keep = result["request"], result["request"].get("keep")
    options = [] if out is None else ["--out", shlex.quote(str(out))]
    options += [] if samples == _SAMPLES else ["--samples", str(samples)]
    options += ["--user-ids"] if user_ids else []
    return {
        "title": result["title"],
        "made": (today or date.today()).isoformat(),
        "commands": [result["command"], " ".join(["relae report", shlex.quote(str(run)), *options])],
        "versions": {"relae": __version__, "Python": sys.version.split()[0]}
        | {name: version(name) for name in ("numpy", "scipy", "numba")},
        "model": result["model"],
        "objective": result["objective"],
        "constraint": None if keep is None else (keep, request["loss"]),
        "choose": _reason(result),
        "complete": bool(result.get("complete", True)),
        "judged": judged,
        "differences": differences,
        "k": _cut_off(result),
        "protocol": result["protocol"],
        "low_ratings": divided.low_ratings.removeprefix("low ratings: "),
        "valid_users": len(divided.valid.users),
        "test_users": len(divided.test.users),
        "seed": request["seed"],
        "split": request["split"],
        "share": request["share"],
        "new_users": divided.test.new_users,
        "data": report.data_facts(divided.data),
    }


def _reason(result: Mapping[str, Any]) -> str:
    """Return what the chosen model was chosen for."""
    if not result["dials"]:
        return "best"
    return "default" if result["chosen"] == result["default"] else str(result["request"]["choose"])


def _data(
    common: Mapping[str, Any],
    result: Mapping[str, Any],
    trials: Sequence[Trial],
    divided: Divided,
    chosen: HistoryRecommender,
    model: HistoryRecommender | None,
) -> report.ReportData:
    """Return what the page shows; `model` is the chosen one, fitted, where that was needed."""
    dials, point = result["dials"], _point(result["chosen"], result)
    found = report.ReportData(
        **common,
        model_name=type(chosen).__name__,
        space=[
            report.Searched(name, log=bool(ranged["log"]), is_dial=name in dials, **describe(name))
            for name, ranged in result["space"].items()
        ],
        point=point.parameters,
        parameters=result["parameters"],
        trials=[_trial(trial) for trial in trials],
        fit_users=divided.test.train.n_users,
        fit_items=divided.test.train.n_items,
    )
    if not dials:
        return found
    assert isinstance(model, LinearAutoencoder)
    return replace(
        found,
        axes=(result["axes"][0], result["axes"][1]),
        bests={name: _shown(_point(record, result)) for name, record in result["best"].items()},
        front=[_shown(_point(record, result)) for record in result["front"]],
        fit=report.fit_facts(model, point.parameters[dials[0]], ends(point.parameters, dials[0])),
        neighbours=report.neighbours(model),
    )


def _point(record: Mapping[str, Any], result: Mapping[str, Any]) -> Point:
    return read_point(record, result["space"])


def _shown(point: Point) -> report.Point:
    return report.Point(point.parameters, point.metrics)


def _trial(trial: Trial) -> report.Trial:
    low, high = trial.facts.get("interval", (0.0, 1.0))
    return report.Trial(
        trial.parameters,
        [_shown(point) for point in trial.points],
        trial.seconds,
        (low, high),
        None if trial.training is None else _learning(trial.training),
        trial.failure,
    )


def _learning(training: Training) -> report.Learning:
    curve = [(mark.epoch, mark.loss, mark.value) for mark in training.curve]
    return report.Learning(curve, training.best_epoch, training.stopped)
