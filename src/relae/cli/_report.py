"""`relae report`: read a run, fit the chosen model once more, and write one page about it."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

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
from relae.tuning import ModelTrial, ModelTuning, Point, Trial, read_trial

_Kind = TypeVar("_Kind", Trial, ModelTrial)
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
    trials: list[Trial | ModelTrial],
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
    if "kind" in result:
        data: report.ReportData | report.ModelReportData = _other(
            common, result, _of(ModelTrial, trials), divided, type(models[0][1]).__name__
        )
    else:
        assert isinstance(model, LinearAutoencoder)
        data = _linear(common, result, _of(Trial, trials), model)
    return report.render(data)


# --- the run -----------------------------------------------------------------------------------------------------


def _read(run: Path) -> tuple[dict[str, Any], dict[str, Any], list[Trial | ModelTrial]]:
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
        purpose, trials = json.loads(lines[0]), [read_trial(line) for line in lines[1:]]
        _examine(result, trials)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise DataError(f"{run} is damaged, or no folder of a run ({error}); {way_out}") from error
    return result, purpose, trials[: result["trials"]]


def _examine(result: Any, trials: Sequence[Trial | ModelTrial]) -> None:
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
    if "kind" in result:
        _examine_model(result, _of(ModelTrial, trials))
    else:
        _examine_family(result, _of(Trial, trials))
    for entry in result["test"] or []:
        _judged(entry["role"], entry["model"], entry["figures"])


def _examine_family(result: Any, trials: Sequence[Trial]) -> None:
    if not result["best"]:
        raise ValueError("there is no best point")
    first, second = result["axes"]
    for record in (result["chosen"], *result["best"].values(), *result["front"]):
        read_point(record).model()
        if not {first, second, result["objective"]} <= set(record):
            raise ValueError("a point lacks a metric")


def _examine_model(result: Any, trials: Sequence[ModelTrial]) -> None:
    chosen = trials[result["chosen_trial"]]
    space = [Range(**ranged) for ranged in result["space"].values()]
    if not space or result["objective"] not in chosen.metrics:
        raise ValueError("the chosen trial lacks its figures")
    for trial in trials:
        if set(trial.parameters) != set(result["space"]):
            raise ValueError("a trial has other parameters than those searched")
    kind(result["kind"])(**result["parameters"])


def _of(wanted: type[_Kind], trials: Sequence[Trial | ModelTrial]) -> list[_Kind]:
    """Return trials that are all of one kind."""
    found = [trial for trial in trials if isinstance(trial, wanted)]
    if len(found) < len(trials):
        raise ValueError("the journal is of another kind of search than the result")
    return found


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


def _models(result: Mapping[str, Any], trials: Sequence[Trial | ModelTrial]) -> list[tuple[str, HistoryRecommender]]:
    """Return the chosen model and its rivals, not fitted, by role."""
    if "kind" in result:
        made = kind(result["kind"])(**result["parameters"])
        tuning = ModelTuning(made, result["objective"], {}, _of(ModelTrial, trials))
        found = [("chosen", made)]
        found += [(DEFAULTS, tuning.model_of(tuning.trials[0]))] if result["chosen_trial"] else []
    else:
        points = [("chosen", read_point(result["chosen"]))]
        if result["default"] not in (None, result["chosen"]):
            points.append((DEFAULTS, read_point(result["default"])))
        found = [(role, point.model()) for role, point in points]
    return [*found, ("popularity", Popularity())]


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
        if not samples and "kind" in result:
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
    if "kind" in result:
        return "best"
    return "default" if result["chosen"] == result["default"] else str(result["request"]["choose"])


def _linear(
    common: Mapping[str, Any], result: Mapping[str, Any], trials: Sequence[Trial], model: LinearAutoencoder
) -> report.ReportData:
    chosen: Mapping[str, Any] = read_point(result["chosen"]).parameters
    return report.ReportData(
        **common,
        **chosen,
        model_name=type(model).__name__,
        axes=(result["axes"][0], result["axes"][1]),
        trials=[_trial(trial) for trial in trials],
        bests={name: _shown(read_point(point)) for name, point in result["best"].items()},
        front=[_shown(read_point(point)) for point in result["front"]],
        fit=report.fit_facts(model),
        neighbours=report.neighbours(model),
    )


def _other(
    common: Mapping[str, Any], result: Mapping[str, Any], trials: Sequence[ModelTrial], divided: Divided, name: str
) -> report.ModelReportData:
    return report.ModelReportData(
        **common,
        model_name=name,
        space=[report.Searched(key, bool(ranged["log"])) for key, ranged in result["space"].items()],
        parameters=result["parameters"],
        attempts=[_attempt(trial) for trial in trials],
        picked=result["chosen_trial"],
        fit_users=divided.test.train.n_users,
        fit_items=divided.test.train.n_items,
    )


def _attempt(trial: ModelTrial) -> report.Attempt:
    training = trial.training
    learning = (
        None
        if training is None
        else report.Learning(
            [(mark.epoch, mark.loss, mark.value) for mark in training.curve], training.best_epoch, training.stopped
        )
    )
    return report.Attempt(trial.parameters, trial.metrics, trial.seconds, learning, trial.failure)


def _shown(point: Point) -> report.Point:
    return report.Point(point.l2, point.dropout, point.xi, point.metrics, point.user_norm, point.item_norm)


def _trial(trial: Trial) -> report.Trial:
    return report.Trial(
        l2=trial.l2,
        dropout=trial.dropout,
        user_norm=trial.user_norm,
        xi_interval=trial.xi_interval,
        residual=trial.residual,
        solver=trial.solver,
        seconds=trial.fit_seconds + trial.evaluate_seconds,
        points=[_shown(point) for point in trial.points],
    )
