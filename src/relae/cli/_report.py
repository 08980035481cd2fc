"""`relae report`: read a run, fit the chosen model once more, and write one page about it."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from relae import __version__
from relae.analysis import report
from relae.baselines import Popularity
from relae.cli import _console
from relae.cli._data import Columns, Divided, load
from relae.cli._files import write_text
from relae.cli._progress import progress_bar
from relae.errors import DataError
from relae.evaluation import Evaluation, evaluate
from relae.models import LinearAutoencoder
from relae.solvers import Progress
from relae.tuning import Point, Trial

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
    console, errors = _console.output(), _console.errors()
    result, purpose, trials = _read(run)
    with errors.status(f"reading {result['request']['source']}", spinner="line"):
        divided = _load(run, result)
    _check(run, result, purpose, divided)
    with progress_bar(errors) as progress:
        model, judged, differences = _judge(result, divided, progress)
    data = _gathered(run, out, result, trials, divided, model, judged, differences, samples, user_ids, today)
    page = report.render(data)
    target = run / "report.html" if out is None else out
    write_text(target, page)
    console.print(f"{target}: {len(page.encode()) / 1e3:,.0f} kB, open it in any browser", soft_wrap=True, markup=False)
    return target


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
    request = ("source", "columns", "split", "share", "seed", "solver", "loss")
    missing = [name for name in wanted if name not in result]
    missing += [name for name in request if name not in result["request"]]
    if missing or not trials or not result["best"]:
        raise ValueError(f"there is no {', '.join(missing) or 'trial'}")
    if len(trials) < result["trials"]:
        raise ValueError(f"the journal has {len(trials)} of {result['trials']} trials")
    first, second = result["axes"]
    _cut_off(result)
    for record in (result["chosen"], *result["best"].values(), *result["front"]):
        _point(record).model()
        if not {first, second, result["objective"]} <= set(record):
            raise ValueError("a point lacks a metric")
    for entry in result["test"] or []:
        _judged(entry["role"], entry["model"], entry["figures"])


def _cut_off(result: Mapping[str, Any]) -> int:
    return int(result["objective"].split("@")[1])


def _load(run: Path, result: Mapping[str, Any]) -> Divided:
    request = result["request"]
    try:
        columns = dict(request["columns"])
        if columns.get("titles") is not None:
            columns["titles"] = Path(columns["titles"])
        given = Columns(**columns), request["split"], request["share"], request["seed"]
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


def _point(record: Mapping[str, float]) -> Point:
    metrics = {name: value for name, value in record.items() if name not in ("l2", "dropout", "xi")}
    return Point(record["l2"], record["dropout"], record["xi"], metrics)


def _judge(
    result: Mapping[str, Any], divided: Divided, progress: Progress
) -> tuple[LinearAutoencoder, list[report.Judged], list[report.Difference]]:
    """Fit the chosen model; evaluate it and its rivals unless the run already says all there is to say.

    Rivals come first: their inverses are gone when that of the chosen one comes.
    """
    chosen = _point(result["chosen"]).model()
    saved = result["test"] or []
    differences = [_difference(entry["role"], row) for entry in saved[1:] for row in entry.get("differences") or []]
    known = {(row["metric"], row["k"]) for entry in saved[:1] for row in entry["figures"]}
    k = _cut_off(result)
    enough = bool(differences) and all((metric, k) in known for metric in report.METRICS if metric != "unbiased_recall")
    found: list[tuple[str, Evaluation]] = []
    if not enough:
        ease = result["best"].get("EASE")
        if ease is not None and ease != result["chosen"]:
            found.append(("EASE", _evaluated(_point(ease).model(), result, divided, k, progress)))
        found.append(("popularity", _evaluated(Popularity(), result, divided, k, progress)))
    if enough:
        model = _fitted(chosen, result, divided, progress)
        return model, [_judged(entry["role"], entry["model"], entry["figures"]) for entry in saved], differences
    ours = _evaluated(chosen, result, divided, k, progress)
    by_role = {entry["role"]: entry["figures"] for entry in saved}
    judged = [
        _judged(role, evaluation.model, _merged(evaluation.records(), by_role.get(role, [])))
        for role, evaluation in [("chosen", ours), *found]
    ]
    differences = [_difference(role, row._asdict()) for role, rival in found for row in ours.compare(rival).rows]
    return chosen, judged, differences


def _fitted(model: Any, result: Mapping[str, Any], divided: Divided, progress: Progress) -> Any:
    if isinstance(model, LinearAutoencoder):
        model.set_params(solver=result["request"]["solver"])
    return model.fit(divided.test.train, progress=progress)


def _evaluated(model: Any, result: Mapping[str, Any], divided: Divided, k: int, progress: Progress) -> Evaluation:
    _fitted(model, result, divided, progress)
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


def _gathered(
    run: Path,
    out: Path | None,
    result: Mapping[str, Any],
    trials: Sequence[Trial],
    divided: Divided,
    model: LinearAutoencoder,
    judged: Sequence[report.Judged],
    differences: Sequence[report.Difference],
    samples: int,
    user_ids: bool,
    today: date | None,
) -> report.ReportData:
    request, chosen = result["request"], result["chosen"]
    keep = request.get("keep")
    options = [] if out is None else ["--out", shlex.quote(str(out))]
    options += [] if samples == _SAMPLES else ["--samples", str(samples)]
    options += ["--user-ids"] if user_ids else []
    return report.ReportData(
        title=result["title"],
        made=(today or date.today()).isoformat(),
        commands=[result["command"], " ".join(["relae report", shlex.quote(str(run)), *options])],
        versions={"relae": __version__, "Python": sys.version.split()[0]}
        | {name: version(name) for name in ("numpy", "scipy", "numba")},
        model=result["model"],
        model_name=type(model).__name__,
        l2=chosen["l2"],
        dropout=chosen["dropout"],
        xi=chosen["xi"],
        objective=result["objective"],
        constraint=None if keep is None else (keep, request["loss"]),
        axes=(result["axes"][0], result["axes"][1]),
        trials=[_trial(trial) for trial in trials],
        bests={name: _shown(_point(point)) for name, point in result["best"].items()},
        front=[_shown(_point(point)) for point in result["front"]],
        complete=bool(result.get("complete", True)),
        judged=judged,
        differences=differences,
        k=_cut_off(result),
        protocol=result["protocol"],
        valid_users=len(divided.valid.users),
        test_users=len(divided.test.users),
        seed=request["seed"],
        split=request["split"],
        share=request["share"],
        new_users=divided.test.new_users,
        data=report.data_facts(divided.data),
        fit=report.fit_facts(model),
        samples=report.samples(model, divided.test, samples, ids=user_ids),
        neighbours=report.neighbours(model),
    )


def _shown(point: Point) -> report.Point:
    return report.Point(**asdict(point))


def _trial(trial: Trial) -> report.Trial:
    return report.Trial(
        l2=trial.l2,
        dropout=trial.dropout,
        xi_interval=trial.xi_interval,
        residual=trial.residual,
        solver=trial.solver,
        seconds=trial.fit_seconds + trial.evaluate_seconds,
        points=[_shown(point) for point in trial.points],
    )
