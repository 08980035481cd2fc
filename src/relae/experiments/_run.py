"""A finished search or comparison: what was chosen, from which data, and the folder that keeps it."""

import json
import os
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relae import __version__
from relae._common.files import write_text
from relae._common.progress import Progress
from relae.data import Interactions
from relae.errors import DataError
from relae.evaluation import Evaluation, evaluate
from relae.evaluation.result import Difference, Estimate
from relae.experiments._columns import Columns
from relae.experiments._data import DataSource, DividedData, Division, divide_data, read_data
from relae.experiments._models import choose_model
from relae.experiments._yardsticks import TRENDING, make_yardsticks
from relae.models import LinearAutoencoder
from relae.recommender import HistoryRecommender, Range
from relae.registry import KINDS, import_name, kind
from relae.solvers import as_solver
from relae.tuning import Constraint, Point, Tuning, linear_model, read_journal

if TYPE_CHECKING:
    from relae.experiments._comparison_table import ComparisonTable

CHOSEN, DEFAULTS = "chosen", "the defaults"
"""The roles of models that the test users judge, beside the yardsticks."""

TEST_METRICS = (
    *("ndcg", "recall", "head_ndcg", "head_recall", "tail_ndcg", "tail_recall"),
    *("unbiased_ndcg", "unbiased_recall", "coverage"),
)
_RESULT, _JOURNAL = "result.json", "journal.jsonl"


@dataclass(frozen=True)
class ModelResult:
    """Figures of one model on the test users.

    Attributes
    ----------
    role : str
        "chosen", "the defaults", "popularity" or "trending".
    model : str
        As code.
    estimates : sequence of Estimate
    differences : sequence of Difference
        Of the chosen model from this one, user by user.
    """

    role: str
    model: str
    estimates: Sequence[Estimate]
    differences: Sequence[Difference] = ()

    def estimate(self, metric: str, k: int) -> Estimate | None:
        """Return one figure; None if it was not evaluated."""
        return next((row for row in self.estimates if (row.metric, row.k) == (metric, k)), None)

    def difference(self, metric: str, k: int) -> Difference | None:
        """Return the difference in a metric; None if it was not compared."""
        return next((row for row in self.differences if (row.metric, row.k) == (metric, k)), None)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "ModelResult":
        """Return the result of an entry of `test` in result.json."""
        rows = [_read_tuple(Estimate, row) for row in record["figures"]]
        differences = [_read_tuple(Difference, row) for row in record.get("differences") or []]
        return cls(str(record["role"]), str(record["model"]), rows, differences)


@dataclass(frozen=True)
class Run:
    """A search (`relae.tune`), a comparison (`relae.compare`) or a table of the paper (`relae.experiments.paper`).

    Attributes
    ----------
    record : mapping
        What result.json has.
    source
        The data: a path, the name of a benchmark, or what is in memory.
    columns : Columns
    division : Division
    objective : str
        The metric by which parameters were chosen, such as "ndcg@100".
    model : HistoryRecommender
        The chosen model, not fitted: of a comparison, the first of its table; of the paper's, the best of its rows.
    models : mapping of str to HistoryRecommender
        All models by name: those of a comparison in the order of its table; of a search, the best of each of the linear
        autoencoders, which share it.
    solver_options : mapping
        How linear autoencoders were solved.
    path : Path or None
        The folder; None if the run is not kept.
    divided : DividedData or None
        The data where it is in memory; see `divide`.
    search : Tuning or None
        The search where it is in memory; see `tuning`.
    evaluations : mapping of str to Evaluation
        What the test users say of each role where it is in memory; see `results`.
    table : ComparisonTable or None
        The table of a comparison where it is in memory.
    heading : sequence of str
        The lines above it: the data, the split, and what happens to low ratings.
    """

    record: Mapping[str, Any] = field(repr=False)
    source: DataSource
    columns: Columns = field(repr=False)
    division: Division
    objective: str
    model: HistoryRecommender
    models: Mapping[str, HistoryRecommender] = field(repr=False)
    solver_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    path: Path | None = None
    divided: DividedData | None = field(default=None, repr=False)
    search: Tuning | None = field(default=None, repr=False)
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict, repr=False)
    table: "ComparisonTable | None" = field(default=None, repr=False)
    heading: Sequence[str] = field(default=(), repr=False)

    # --- the folder ----------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Run":
        """Return the run of a folder of `tune`, `compare` or `reproduce`; a DataError if there is none."""
        folder = Path(path)
        run: Run = _read_file(folder, _RESULT, lambda text: cls.from_record(json.loads(text), folder))
        return run

    @classmethod
    def from_record(cls, record: Mapping[str, Any], path: Path | None = None, **changes: Any) -> "Run":
        """Return the run of what result.json has; `changes` are what of it is in memory."""
        is_table = "rows" in record
        parse = _parse_reproduction if is_table else _parse_comparison if "models" in record else _parse_search
        parts = parse(record)
        if "columns" not in changes:
            parts["columns"] = Columns.from_record(parts["columns"])
        return cls(record, path=path, **{**parts, **changes})

    def save(self, texts: Mapping[str, str] | None = None) -> None:
        """Write the record and other files into the folder, each whole or not at all; nothing if there is none."""
        if self.path is None:
            return
        write_text(self.path / _RESULT, json.dumps(self.record, indent=1) + "\n")
        for name, text in (texts or {}).items():
            write_text(self.path / name, text)

    # --- what it has ---------------------------------------------------------------------------------------------

    @property
    def is_comparison(self) -> bool:
        """True if it compares models."""
        return "models" in self.record

    @property
    def is_search(self) -> bool:
        """True if it searches the parameters of a model."""
        return "request" in self.record

    @property
    def title(self) -> str:
        """The name of the data."""
        return str(self.record["data" if self.is_comparison else "title"])

    @property
    def k(self) -> int:
        """The cut-off of the objective."""
        return int(self.objective.split("@")[1])

    @property
    def command(self) -> str:
        """The call or command that runs the search again."""
        return str(self.record["command"])

    @property
    def tuning(self) -> Tuning:
        """The search with all its trials; a DataError if the folder is damaged or of another version of relae."""
        if self.search is not None:
            return self.search
        if self.path is None or not self.is_search:
            raise DataError(f"{self.path} is not a search: name a folder of `relae tune`")
        tuning: Tuning = _read_file(self.path, _JOURNAL, lambda text: _read_tuning(self, text))
        return tuning

    @property
    def results(self) -> list[ModelResult]:
        """The figures of the test users, the chosen model first; none before `judge`."""
        return [ModelResult.from_record(entry) for entry in self.record.get("test") or []]

    def find_model(self, name: str | None = None) -> HistoryRecommender:
        """Return a model of the run by its name, not fitted; the chosen one if no name is given."""
        if name is None:
            return self.model
        if name in self.models:
            return self.models[name]
        if not self.is_search:
            raise DataError(f"{self.path} has no {KINDS[name]}: its models are {', '.join(self.models)}")
        if len(self.models) > 1 and issubclass(kind(name), LinearAutoencoder):
            has = ", ".join(KINDS[each] for each in self.models)
            raise DataError(f"{self.path} has no {KINDS[name]}: it has {has}")
        return kind(name)()  # nothing of it was tuned, and it can be judged by the same users

    # --- what it does --------------------------------------------------------------------------------------------

    def divide(self) -> DividedData:
        """Return the data, divided as for this run; it is read again unless it is in memory."""
        if not self.is_search and not self.is_comparison:
            raise DataError(f"{self.path} is judged by the published lists: `relae reproduce` runs it again")
        return divide_data(self._find_source(), self.columns, self.division) if self.divided is None else self.divided

    def read_data(self) -> tuple[str, Interactions]:
        """Return the title and all interactions of the data."""
        return read_data(self._find_source(), self.columns)

    def _find_source(self) -> DataSource:
        if self.source is None:
            raise DataError(f"{self.path} is a run of data in memory, which it does not keep: fit to that data instead")
        return self.source

    def fit(
        self,
        model: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        *,
        solver: str = "auto",
        dtype: str = "float32",
        progress: Progress | None = None,
    ) -> Any:
        """Fit the chosen model to all of the data, as `relae fit --from RUN` does.

        Parameters
        ----------
        model
            Another model of the run, by name.
        parameters
            Parameters that differ from those of the run.
        solver, dtype
            How a linear autoencoder is solved; the solver "auto" is that of the run.
        progress
            Called with the name of a stage and the fraction of it that is done.
        """
        chosen, how = choose_model(model, parameters, self, solver=solver, dtype=dtype)
        _, data = self.read_data()
        weight = self.columns.feature_weight
        chosen.fit_with(data, solver=how, progress=progress, feature_weight=weight)
        return chosen

    def judge(self, progress: Progress | None = None) -> "Run":
        """Judge the chosen model and its rivals by the test users, and return the run with their figures.

        They are fitted to train and validation. The rivals are the same model with its defaults, unless these were
        chosen, popularity, and where there are times trending, with a window chosen on validation.
        """
        divided, ks = self.divide(), sorted({min(20, self.k), self.k})
        models = _list_models(self.tuning)
        models += [
            (role, model)
            for role, model in make_yardsticks(
                divided.valid, divided.test, self.objective, seed=self.division.seed, progress=progress
            )
            if role != TRENDING or type(model) is not type(self.model)
        ]
        evaluations = {}
        while models:
            role, model = models.pop(0)  # what was fitted is freed before the next fit
            model.fit_with(divided.test.train, solver=as_solver(**self.solver_options), progress=progress)
            evaluations[role] = evaluate(model, divided.test, TEST_METRICS, ks, progress=progress)
        test = [
            {
                "role": role,
                "model": evaluation.model,
                "figures": evaluation.records(),
                "differences": [] if role == CHOSEN else evaluations[CHOSEN].compare(evaluation).records(),
            }
            for role, evaluation in evaluations.items()
        ]
        return replace(self, record={**self.record, "test": test}, evaluations=evaluations)

    def report(self, out: str | os.PathLike[str] | None = None, **options: Any) -> Path:
        """Write the report of a search as one HTML page, and return its path; see `relae.report.write_report`."""
        path: Path = import_name("relae.report", "write_report")(self, out, **options)  # a room above this one
        return path


# --- records of a search -----------------------------------------------------------------------------------------


def summarize_tuning(tuning: Tuning) -> dict[str, Any]:
    """Return what result.json has of a search."""
    chosen, default = tuning.chosen, tuning.default
    model = tuning.model_of(chosen)
    record = {
        "trials": len(tuning.trials),
        "complete": tuning.complete,
        "model": repr(model),
        "kind": type(model).__name__.lower(),
        "parameters": model.get_params(),
        "space": {name: vars(limits) for name, limits in tuning.space.items()},
        "dials": tuning.dials,
        "chosen": _record_point(chosen),
        "chosen_trial": next(at for at, trial in enumerate(tuning.trials) if trial is tuning.trial_of(chosen)),
        "default": None if default is None else _record_point(default),
        "best": {name: _record_point(point) for name, point in tuning.bests.items()},
    }
    if tuning.dials:
        record |= {"axes": list(tuning.axes()), "front": [_record_point(point) for point in tuning.pareto()]}
    return record


def read_point(record: Mapping[str, Any], names: Collection[str]) -> Point:
    """Return a point of result.json, whose parameters have these names."""
    metrics = {name: value for name, value in record.items() if name not in names}
    return Point({name: record[name] for name in names}, metrics)


def _record_point(point: Point) -> dict[str, Any]:
    return {**point.parameters, **point.metrics}


def _read_tuning(run: Run, text: str) -> Tuning:
    """Return the search of a run from its journal; what result.json has of it must agree."""
    purpose, trials = read_journal(text)
    record, request = run.record, run.record["request"]
    if purpose["version"] != __version__:
        raise DataError(
            f"{run.path} was made by relae {purpose['version']}, and this is {__version__}; "
            f"make the run again: {run.command}"
        )
    if len(trials) < record["trials"]:
        raise ValueError(f"the journal has {len(trials)} of {record['trials']} trials")
    space = {name: Range(**limits) for name, limits in record["space"].items()}
    default = record["default"]
    tuning = Tuning(
        kind(request["parameters"].get("model", "rdlae"))() if record["dials"] else run.model,
        run.objective,
        trials[: record["trials"]],
        None if request["keep"] is None else Constraint(request["keep"], request["loss"]),
        space,
        record["complete"],
        request["choose"] if record["dials"] else "best",
        None if default is None else {name: default[name] for name in space},
    )
    expected = summarize_tuning(tuning)
    different = [name for name, value in expected.items() if json.dumps(value) != json.dumps(record[name])]
    if different:
        raise ValueError(f"{_RESULT} and the journal differ in {', '.join(different)}")
    return tuning


def _list_models(tuning: Tuning) -> list[tuple[str, HistoryRecommender]]:
    """Return the chosen model, and the same with its defaults unless they were chosen, by role."""
    points = {CHOSEN: tuning.chosen}
    if tuning.default is not None and tuning.default is not tuning.chosen:
        points[DEFAULTS] = tuning.default
    return [(role, tuning.model_of(point)) for role, point in points.items()]


# --- reading -----------------------------------------------------------------------------------------------------


def _read_file(folder: Path, name: str, parse: Callable[[str], Any]) -> Any:
    """Return what a file of a run's folder has; a DataError if it is missing or damaged."""
    command = f"DATA --out {shlex.quote(str(folder))}`"
    way_out = f"make it with `relae tune {command} or `relae compare {command}"
    path = folder / name
    try:
        return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        what = f"has no {name}: the run is not finished" if folder.is_dir() else "is no folder of a run"
        raise DataError(f"{folder} {what}; {way_out}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except DataError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, LookupError) as error:
        raise DataError(f"{path} is damaged, or no result of a run ({error!r}); {way_out}") from error


def _parse_search(record: Mapping[str, Any]) -> dict[str, Any]:
    request = record["request"]
    model = kind(record["kind"])(**record["parameters"])
    neighbours = request["parameters"].get("neighbours")
    how = {"solver": str(request["solver"])} | ({} if neighbours is None else {"neighbours": int(neighbours)})
    names = list(record["space"])
    models = {
        str(name).lower(): linear_model(read_point(point, names).parameters, name)
        for name, point in (record["best"] if record["dials"] else {}).items()
    }
    return {
        "source": request["source"],
        "columns": request["columns"],
        "division": _parse_division(request["split"], request),
        "objective": str(record["objective"]),
        "model": model,
        "models": models or {str(record["kind"]): model},
        "solver_options": how,
    }


def _parse_division(split: Any, record: Mapping[str, Any]) -> Division:
    return Division(str(split), float(record["share"]), int(record["seed"]), int(record.get("last", 1)))


def _parse_comparison(record: Mapping[str, Any]) -> dict[str, Any]:
    split = record["split"]
    models = {str(row["model"]): kind(row["model"])(**row["parameters"]) for row in record["models"]}
    if not models:
        raise ValueError("it has no model")
    return {
        "source": record["source"],
        "columns": record["columns"],
        "division": _parse_division(split["name"], split),
        "objective": f"ndcg@{int(record['k'])}",
        "model": next(iter(models.values())),
        "models": models,
    }


def _parse_reproduction(record: Mapping[str, Any]) -> dict[str, Any]:
    models: dict[str, HistoryRecommender] = {}
    figures: dict[str, dict[str, float]] = {}
    for row in record["rows"]:
        name, parameters = str(row["model"]).replace("-", ""), row["parameters"]
        is_linear = "xi" in parameters  # of all of the family, also where it is a constant
        models[name.lower()] = linear_model(parameters, name) if is_linear else kind(name)(**parameters)
        figures[name.lower()] = {cell["metric"]: float(cell["ours"]) for cell in row["cells"]}
    if not models:
        raise ValueError("it has no model")
    metrics = [metric for metric in next(iter(figures.values())) if metric.startswith("ndcg@")]
    objective = max(metrics, key=lambda metric: int(metric.split("@")[1]))
    return {
        "source": str(record["dataset"]),
        "columns": {},
        "division": Division(),
        "objective": objective,
        "model": models[max(figures, key=lambda name: figures[name][objective])],
        "models": models,
    }


def _read_tuple(kind: Any, record: Mapping[str, Any]) -> Any:
    """Return the named tuple of a record of figures, in which JSON has null for NaN."""
    values = {name: record[name] if name in ("metric", "k") else record.get(name) for name in kind._fields}
    return kind(**{name: nan if value is None else value for name, value in values.items()})
