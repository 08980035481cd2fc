"""Search the parameters of a model for a data set, judge the choice, and keep all of it in a folder."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from relae import __version__
from relae._common.files import lock_folder
from relae._common.progress import Progress
from relae.errors import DataError, Option, Text
from relae.experiments._columns import ColumnKeywords, Columns
from relae.experiments._data import DataSource, DividedData, Division, divide_data
from relae.experiments._models import choose_model
from relae.experiments._run import Run, summarize_tuning
from relae.experiments._wording import PYTHON, Wording
from relae.recommender import HistoryRecommender, Range
from relae.registry import kind
from relae.solvers import Solver, as_solver
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
)
from relae.tuning import tune as search_parameters

_SHARED = {"search": "auto", "keep": None, "solver": "auto", "choose": "tail"}  # of the linear autoencoders alone


def tune(
    data: DataSource,
    model: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    split: str = "auto",
    share: float = 0.1,
    seed: int = 0,
    search: str = "auto",
    budget: int | None = None,
    objective: str = "ndcg@100",
    keep: str | None = None,
    loss: float = 0.01,
    choose: Choice = "tail",
    solver: str = "auto",
    time_budget: float | None = None,
    test: bool = True,
    progress: Progress | None = None,
    on_trial: Callable[[Trial, Tuning], None] | None = None,
    notify: Callable[[str], None] | None = None,
    wording: Wording = PYTHON,
    **columns: Unpack[ColumnKeywords],
) -> Run:
    """Find the parameters of a model for a data set, as `relae tune` does.

    One search tunes all six linear autoencoders; with `model="dan"`, norms of users and items as well. With another
    model, its own parameters are searched.

    Parameters
    ----------
    data
        A CSV, TSV or Parquet file, a folder or a pattern of such files, a folder with train.txt and test.txt, the name
        of a benchmark, a data frame, or `Interactions`.
    model
        The kind of model, such as "ials"; the six linear autoencoders if not given.
    parameters
        Parameters of the model that are not searched; for the linear autoencoders `neighbours` of the local solver.
    out
        The folder of the run, in which an unfinished run goes on; without it nothing is kept on disk.
    split, share, seed
        How data is divided; see `Division`.
    search, budget, objective, choose
        See `relae.tuning.tune`.
    keep, loss
        A metric of which at most the share `loss` of the best value may be lost.
    solver
        How linear autoencoders are solved.
    time_budget
        Seconds after which no further fit is started.
    test
        Judge the chosen model and its rivals by the test users; `Run.judge` does it later.
    progress
        Called with the name of a stage and the fraction of it that is done.
    on_trial
        Called with each new trial and the result so far.
    notify
        Called with notes for people, such as how many trials of an earlier run there are.
    wording
        How texts name options; Python's way if not given.
    columns
        How to read a table: `user`, `item`, `rating` and so on; see `Columns`.
    """
    options = {"search": search, "budget": budget, "objective": objective, "keep": keep, "loss": loss}
    options |= {"solver": solver, "choose": choose}
    fixed = dict(parameters or {})
    plan = _plan_search(model, fixed, options)
    table, division = Columns(**columns), Division(split, share, seed)
    fixed = ({} if model is None else {"model": model}) | fixed
    folder = None if out is None else Path(out)
    source = name_source(data)
    if folder is not None:
        table.check_paths()
    request = {
        "source": source,
        "columns": table.record(),
        **division._asdict(),
        **options,
        "parameters": fixed,
    }
    changed = {name: value for name, value in request.items() if name not in ("source", "columns", "parameters")}
    changed = {name: value for name, value in changed.items() if value != _DEFAULTS[name]}
    changed |= table.changes() | fixed
    command = wording.call("tune", source, changed | ({} if folder is None else {"out": os.fspath(folder)}))
    with nullcontext() if folder is None else lock_folder(folder):
        divided = read_divided(data, table, division, progress)
        purpose = {
            "data": divided.fingerprint,
            **{name: request[name] for name in ("search", "objective", "keep", "loss", "solver", "seed")},
            **plan.purpose(),
            "version": __version__,
        }
        with _open_journal(folder, purpose) as journal:
            if journal is not None and journal.trials and notify is not None:
                notify(f"going on from {journal.path}: {len(journal.trials)} trials are done")
            tuning = search_parameters(
                plan.model,
                divided.valid,
                search,
                objective=objective,
                budget=budget,
                constraint=None if keep is None else Constraint(keep, loss),
                space=plan.space,
                choose=choose if plan.is_shared else "best",
                solver=plan.solver,
                seed=seed,
                lengths=divided.lengths,
                journal=journal,
                time_budget=time_budget,
                progress=progress,
                on_trial=on_trial,
            )
        record = {
            "relae": __version__,
            "python": sys.version.split()[0],
            "command": command,
            "request": request,
            "title": divided.title,
            "protocol": divided.valid.protocol,
            "fingerprint": divided.fingerprint,
            "low_ratings": wording.text(divided.low_ratings),
            "objective": objective,
            **summarize_tuning(tuning),
            "test": None,
        }
        run = Run.from_record(record, folder, source=data, columns=table, divided=divided, search=tuning)
        run.save({"points.csv": tuning.to_polars().write_csv(), "result.md": tuning.to_markdown()} if folder else None)
    return judge_and_save(run, progress) if test else run


def judge_and_save(run: Run, progress: Progress | None = None) -> Run:
    """Judge the models of a search by the test users, and keep their figures in its folder."""
    with nullcontext() if run.path is None else lock_folder(run.path):
        judged = run.judge(progress)
        judged.save()
    return judged


def read_divided(data: DataSource, columns: Columns, division: Division, progress: Progress | None) -> DividedData:
    """Read and divide data, and report that it is being read."""
    stage = f"reading {data}" if isinstance(data, (str, os.PathLike)) else "reading"
    if progress is not None:
        progress(stage, 0.0)
    try:
        return divide_data(data, columns, division)
    finally:
        if progress is not None:
            progress(stage, 1.0)


def name_source(data: DataSource) -> str | None:
    """Return data as result.json names it; None if it is in memory."""
    return os.fspath(data) if isinstance(data, (str, os.PathLike)) else None


_DEFAULTS = {**Division()._asdict(), **_SHARED, "budget": None, "objective": "ndcg@100", "loss": 0.01}


@contextmanager
def _open_journal(folder: Path | None, purpose: Mapping[str, Any]) -> Iterator[Journal | None]:
    """Open the journal of a folder; one that was begun for a search that cannot be is removed again."""
    if folder is None:
        yield None
        return
    path = folder / "journal.jsonl"
    is_new = not path.exists()
    with Journal(path, purpose) as journal:
        try:
            yield journal
        except ValueError:
            if is_new and not journal.trials:
                path.unlink()
            raise


# --- what is searched --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """The start of a search: the linear autoencoders, which share one, or the `SPACE` of any other model."""

    model: HistoryRecommender
    solver: Solver
    space: Mapping[str, Range] | None  # None: that of the linear autoencoders
    neighbours: int | None = None

    @property
    def is_shared(self) -> bool:
        return self.space is None

    def purpose(self) -> dict[str, Any]:
        """Return what must be the same for trials to be used again."""
        purpose: dict[str, Any] = {"model": type(self.model).__name__, "parameters": self.model.get_params()}
        if self.space is not None:
            purpose["space"] = {name: vars(limits) for name, limits in self.space.items()}
        return purpose | ({} if self.neighbours is None else {"neighbours": self.neighbours})


def _plan_search(name: str | None, parameters: Mapping[str, Any], options: Mapping[str, Any]) -> _Plan:
    """Return what to search; an option that the search cannot use is an error."""
    model = kind("rdlae" if name is None else name)
    if model.__name__ in MEMBERS:
        return _plan_shared(model, parameters, options)
    for option, default in _SHARED.items():
        if options[option] != default:
            advice = " is for the linear autoencoders: leave it out, or leave "
            raise DataError(Option(option), advice, Option("model"), " out")
    made, solver = choose_model(name, parameters)
    searched = made.search_space()
    space = {name: limits for name, limits in searched.items() if name not in parameters}
    if searched and not space:
        raise DataError(f"nothing is left to search: {model.__name__} is tuned in {', '.join(searched)}, all given")
    return _Plan(made, solver, space)


def _plan_shared(model: type[HistoryRecommender], parameters: Mapping[str, Any], options: Mapping[str, Any]) -> _Plan:
    fixed = dict(parameters)
    neighbours = fixed.pop("neighbours", None)
    solver = as_solver(options["solver"], neighbours=neighbours)
    check_choice(options["choose"])
    if model not in BASES:
        name = model.__name__.lower()
        raise DataError(
            f"one run tunes all six linear autoencoders, {name} among them: leave ",
            Option("model", name),
            f" out, and name it in `relae fit --from RUN --model {name}`",
        )
    if fixed:
        searched = [", ".join(map(symbol, searched_names(base))) for base in BASES]
        raise DataError(
            Text.join(", ", map(Option, fixed)),
            f" cannot be fixed: a run finds {searched[0]} (",
            *(Option("model", BASES[0].__name__.lower()), f"), or {searched[1]} (", Option("model", "dan")),
            "); leave it out",
        )
    return _Plan(model(), solver, None, neighbours)
