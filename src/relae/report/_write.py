"""Make the contents of a report from a run, and write the page."""

import os
import shlex
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path

from relae import __version__
from relae._common.files import lock_file, write_text
from relae._common.progress import Progress
from relae.errors import DataError, ParameterError
from relae.experiments import DividedData, Run
from relae.recommender import HistoryRecommender
from relae.report._facts import describe_data, describe_fit
from relae.report._page import render
from relae.report._report import Report
from relae.report._samples import find_neighbours, make_samples
from relae.solvers import as_solver
from relae.tuning import Tuning, ends

SAMPLES = 5


def write_report(
    run: Run,
    out: str | os.PathLike[str] | None = None,
    *,
    samples: int = SAMPLES,
    user_ids: bool = False,
    today: date | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write the report of a search as one HTML page, and return its path.

    Parameters
    ----------
    run
        Of `relae.tune`, or `Run.read(folder)`.
    out
        The file; `report.html` in the folder of the run if not given.
    samples
        How many test users to show recommendations for; with 0 nobody's history is in the report.
    user_ids
        Call these users by their ids rather than by a number.
    today
        The date in the report.
    progress
        Called with the name of a stage and the fraction of it that is done.
    """
    if samples < 0:
        raise ParameterError(f"the number of sample users must be at least 0, got {samples!r}", field="samples")
    if out is not None:
        target = Path(out)
    elif run.path is not None:
        target = run.path / "report.html"
    else:
        raise DataError("a run without a folder has no place for its report: name a file")
    tuning = run.tuning
    with lock_file(target):
        report = make_report(run, tuning, samples=samples, user_ids=user_ids, today=today, progress=progress, out=out)
        write_text(target, render(report))
    return target


def make_report(
    run: Run,
    tuning: Tuning,
    *,
    samples: int = SAMPLES,
    user_ids: bool = False,
    today: date | None = None,
    progress: Progress | None = None,
    out: str | os.PathLike[str] | None = None,
) -> Report:
    """Return the contents of a report; see `write_report`.

    Models are judged again only if the run has no figures of the test users.
    """
    divided = _divide(run)
    judged = run if run.results else run.judge(progress)
    is_family = bool(tuning.dials)
    model: HistoryRecommender | None = None
    if samples > 0 or is_family:
        model = tuning.model_of(tuning.chosen)
        model.fit_with(divided.test.train, solver=as_solver(**run.solver_options), progress=progress)
    fit = None
    if model is not None and is_family:
        dial = tuning.dials[0]
        point = tuning.chosen.parameters
        fit = describe_fit(model, point[dial], ends(point, dial))
    options = [] if out is None else ["--out", shlex.quote(os.fspath(out))]
    options += [] if samples == SAMPLES else ["--samples", str(samples)]
    options += ["--user-ids"] if user_ids else []
    libraries = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return Report(
        run=run,
        tuning=tuning,
        divided=divided,
        results=judged.results,
        data=describe_data(divided.data),
        fit=fit,
        samples=[] if model is None else make_samples(model, divided.test, samples, ids=user_ids),
        neighbours=find_neighbours(model) if model is not None and is_family else [],
        made=(today or date.today()).isoformat(),
        command=" ".join(["relae report", shlex.quote(str(run.path)), *options]),
        versions={"relae": __version__, "Python": sys.version.split()[0], **libraries},
    )


def _divide(run: Run) -> DividedData:
    """Return the data of a run; a DataError if it is not there, or has changed."""
    try:
        divided = run.divide()
    except DataError as error:
        raise DataError(error, ". Run `relae report` where `relae tune` was run, with the same data there") from error
    if run.record["fingerprint"] != divided.fingerprint:
        raise DataError(
            f"the data {run.source} has changed since {run.path} was made; make the run again: {run.command}"
        )
    return divided
