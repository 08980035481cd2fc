"""Search the parameters of a model for a data set, evaluate the best ones, and save the run in a folder."""

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

# Options that only the shared search of the linear autoencoders has, with their defaults.
_SHARED = {"search": "auto", "keep": None, "solver": "auto", "choose": "tail"}


def tune(
    data: DataSource,
    model: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    split: str = "auto",
    share: float = 0.1,
    seed: int = 0,
    last: int = 1,
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

    Without `model`, one search tunes all six linear autoencoders. With `model="dan"`, it also tunes the norms of users
    and items. With another model, it tunes that model's own parameters.

    Parameters
    ----------
    data
        A CSV, TSV or Parquet file, a folder or a pattern of such files, a folder with train.txt and test.txt, the name
        of a benchmark, a data frame, or `Interactions`.
    model
        The kind of model, such as "ials"; the six linear autoencoders if not given.
    parameters
        Fixed parameters of the model, which are not searched; for the linear autoencoders only `neighbours` of the
        local solver.
    out
        The folder of the run. If it contains an unfinished run of the same search, that run is continued. Without
        `out`, nothing is written to disk.
    split, share, seed, last
        How the data are split into train, validation and test; see `Division`.
    search, budget, objective, choose
        See `relae.tuning.tune`.
    keep, loss
        A metric, and the largest share of its best value that the chosen parameters may lose; see `Constraint`.
    solver
        The solver of the linear autoencoders.
    time_budget
        Seconds after which no further fit is started.
    test
        Evaluate the chosen model and those it is compared with on the test users; `Run.judge` does this later.
    progress
        Called with the name of a stage and the fraction of it that is done.
    on_trial
        Called with each new trial and the result so far.
    notify
        Called with messages for people, such as the number of trials that an earlier run has finished.
    wording
        How messages name options; by default as Python keywords.
    columns
        How to read a table: `user`, `item`, `rating` and so on; see `Columns`.
    """
    options = {
        "search": search,
        "budget": budget,
        "objective": objective,
        "keep": keep,
        "loss": loss,
        "solver": solver,
        "choose": choose,
    }
    fixed = dict(parameters or {})
    plan = _plan_search(model, fixed, options)
    table_options, division = Columns(**columns), Division(split, share, seed, last)
    fixed = ({} if model is None else {"model": model}) | fixed
    folder = None if out is None else Path(out)
    source = name_source(data)
    if folder is not None:
        table_options.check_paths()
    request = {
        "source": source,
        "columns": table_options.record(),
        **division._asdict(),
        **options,
        "parameters": fixed,
    }
    # The recorded command names only what differs from the defaults.
    changed = {name: value for name, value in request.items() if name in _DEFAULTS and value != _DEFAULTS[name]}
    changed |= table_options.changes() | fixed
    command = wording.call("tune", source, changed | ({} if folder is None else {"out": os.fspath(folder)}))
    with nullcontext() if folder is None else lock_folder(folder):
        divided = read_divided(data, table_options, division, progress)
        purpose = {  # a journal is continued only if all of this is the same
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
            "periods": wording.text(divided.periods),
            "objective": objective,
            **summarize_tuning(tuning),
            "test": None,
        }
        run = Run.from_record(record, folder, source=data, columns=table_options, divided=divided, search=tuning)
        run.save({"points.csv": tuning.to_polars().write_csv(), "result.md": tuning.to_markdown()} if folder else None)
    return judge_and_save(run, progress) if test else run


def judge_and_save(run: Run, progress: Progress | None = None) -> Run:
    """Evaluate the models of a run on the test users, and save the figures in its folder."""
    with nullcontext() if run.path is None else lock_folder(run.path):
        judged = run.judge(progress)
        judged.save()
    return judged


def read_divided(data: DataSource, columns: Columns, division: Division, progress: Progress | None) -> DividedData:
    """Read data and split it into train, validation and test, reporting progress."""
    stage = f"reading {data}" if isinstance(data, (str, os.PathLike)) else "reading"
    if progress is not None:
        progress(stage, 0.0)
    try:
        return divide_data(data, columns, division)
    finally:
        if progress is not None:
            progress(stage, 1.0)


def name_source(data: DataSource) -> str | None:
    """Return the path or name of the data, as result.json records it; None for data in memory."""
    return os.fspath(data) if isinstance(data, (str, os.PathLike)) else None


# The defaults of `tune`, by option.
_DEFAULTS = {**Division()._asdict(), **_SHARED, "budget": None, "objective": "ndcg@100", "loss": 0.01}


@contextmanager
def _open_journal(folder: Path | None, purpose: Mapping[str, Any]) -> Iterator[Journal | None]:
    """Open the journal of a folder; if the search is refused before its first trial, remove a new journal again."""
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


# --- Plan of a search --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """The model to tune and its search space: one shared by the linear autoencoders, or that of another model."""

    model: HistoryRecommender
    solver: Solver
    space: Mapping[str, Range] | None  # None: the space that the linear autoencoders share
    neighbours: int | None = None

    @property
    def is_shared(self) -> bool:
        """True if the linear autoencoders are tuned together."""
        return self.space is None

    def purpose(self) -> dict[str, Any]:
        """Return the values that must be equal, so that a later run can use the trials of an earlier one."""
        purpose: dict[str, Any] = {"model": type(self.model).__name__, "parameters": self.model.get_params()}
        if self.space is not None:
            purpose["space"] = {name: vars(limits) for name, limits in self.space.items()}
        return purpose | ({} if self.neighbours is None else {"neighbours": self.neighbours})


def _plan_search(name: str | None, parameters: Mapping[str, Any], options: Mapping[str, Any]) -> _Plan:
    """Return the plan of a search; raise a DataError for an option that the search cannot use."""
    model = kind("rdlae" if name is None else name)
    if model.__name__ in MEMBERS:
        return _plan_shared(model, parameters, options)
    for option, default in _SHARED.items():
        if options[option] != default:
            advice = " is for the linear autoencoders: leave it out, or leave "
            raise DataError(Option(option), advice, Option("model"), " out")
    start, solver = choose_model(name, parameters)
    searched = start.search_space()
    space = {name: limits for name, limits in searched.items() if name not in parameters}
    if searched and not space:
        raise DataError(f"nothing is left to search: {model.__name__} is tuned in {', '.join(searched)}, all given")
    return _Plan(start, solver, space)


def _plan_shared(model: type[HistoryRecommender], parameters: Mapping[str, Any], options: Mapping[str, Any]) -> _Plan:
    """Return the plan of the search that the linear autoencoders share."""
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
