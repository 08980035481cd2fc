"""What to fit, as the options or a run of `relae tune` say."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relae.baselines import GFCF, Popularity
from relae.cli._data import Columns
from relae.errors import DataError
from relae.models import DLAE, EASE, EDLAE, LAE, RDLAE, RLAE, LinearAutoencoder
from relae.recommender import HistoryRecommender
from relae.tuning import Point

KINDS: dict[str, type[HistoryRecommender]] = {
    kind.__name__.lower(): kind for kind in (RDLAE, EDLAE, DLAE, RLAE, EASE, LAE, GFCF, Popularity)
}


@dataclass(frozen=True)
class Run:
    """What a run of `relae tune` has chosen, and what for."""

    path: Path
    source: str
    columns: Columns
    split: str
    share: float
    seed: int
    objective: str
    chosen: Point
    bests: Mapping[str, Point]


def read_run(path: Path) -> Run:
    """Read the result of a run."""
    way_out = f"`relae tune DATA --out {shlex.quote(str(path))}` makes it"
    file = path / "result.json"
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
        request = result["request"]
        return Run(
            path,
            str(request["source"]),
            Columns.of(request["columns"]),
            str(request["split"]),
            float(request["share"]),
            int(request["seed"]),
            str(result["objective"]),
            _point(result["chosen"]),
            {name: _point(point) for name, point in result["best"].items()},
        )
    except FileNotFoundError as error:
        what = "has no result.json: the run is not finished" if path.is_dir() else "is no folder of a run"
        raise DataError(f"{path} {what}; {way_out}") from error
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{file} is damaged, or no result of a run ({error!r}); {way_out}") from error


def _point(record: Mapping[str, float]) -> Point:
    return Point(float(record["l2"]), float(record["dropout"]), float(record["xi"]), {})


def source_of(data: str | None, given: Mapping[str, Any], run: Run | None) -> tuple[str, Columns]:
    """Return DATA and its columns: what is given, otherwise the run's."""
    if data is None and run is None:
        raise DataError("there is no DATA: name a table, a folder or a benchmark, or a run with --from")
    columns = (Columns() if run is None else run.columns).but(given)
    return (data if data is not None else run.source if run is not None else ""), columns


def chosen_model(given: Mapping[str, Any], run: Run | None, **how: str) -> HistoryRecommender:
    """Return a model that is not fitted yet.

    Parameters
    ----------
    given
        The options: a kind of model under "model", and some of its parameters.
    run
        Where the parameters come from that are not given; without it they are the model's defaults.
    how
        Solver and precision, for the models that have them.
    """
    options = dict(given)
    kind = options.pop("model", None)
    model = _fresh(kind) if run is None else _of_run(run, kind)
    names = model.get_params()
    for option in options:
        if option not in names:
            raise DataError(_stranger(type(model), option))
    return model.set_params(**options, **{name: value for name, value in how.items() if name in names})


def _fresh(kind: str | None) -> HistoryRecommender:
    return KINDS["rdlae" if kind is None else str(kind)]()


def _of_run(run: Run, kind: str | None) -> HistoryRecommender:
    if kind is None:
        return run.chosen.model()
    name = KINDS[str(kind)].__name__
    if not issubclass(KINDS[str(kind)], LinearAutoencoder):
        return _fresh(kind)  # nothing of it was tuned, and it can be judged by the same users
    if name not in run.bests:
        raise DataError(f"{run.path} has no {name}: it has {', '.join(run.bests)}")
    return run.bests[name].model(name)


def _stranger(kind: type[HistoryRecommender], option: str) -> str:
    have = [name for name, other in KINDS.items() if option in other().get_params()]
    return f"{kind.__name__} has no --{option}: leave it out, or choose --model {' or '.join(have)}, which has it"
