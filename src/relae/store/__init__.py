"""A model as a folder: plain arrays and a JSON file, memory-mapped when it is opened, with nothing in it that runs."""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae.data import Ids, Interactions, gini
from relae.errors import StoreError
from relae.linalg import csr_from_parts, csr_parts, load_kernels
from relae.recommender import HistoryRecommender, encode
from relae.solvers import FORMS, Progress
from relae.store._folder import check_place, read, write
from relae.store._kinds import KINDS, kind

_OWN = "x"  # what the histories of the fit are called in a model that has them as they are

__all__ = ["KINDS", "Saved", "check_place", "kind", "load", "open_model", "save"]


def save(
    model: HistoryRecommender,
    path: str | os.PathLike[str],
    *,
    form: str = "fitted",
    histories: Interactions | None = None,
    title: str | None = None,
    progress: Progress | None = None,
) -> None:
    """Save a fitted model as a folder. An earlier model there is replaced at the very end, or not at all.

    Parameters
    ----------
    path
        A new or empty folder, or that of an earlier model.
    form
        Of the inverse of a linear autoencoder: "fitted" (as it was solved); "primal", which is P itself: a model solved
        in the dual form is turned into it row by row, in bounded memory; "dual" or "local", for those solved so; or
        "auto", which serves fastest: primal for exact models.
    histories
        Users whom the saved model shall know by their ids, with what they have; such as the training data. Anyone who
        has the folder can read them. A model that `holds_histories` holds those of the fit in any case, without the
        users' ids.
    title
        What the data is called.
    progress
        Called with "save" and the fraction that is done.

    Raises
    ------
    StoreError
        If the folder cannot be written; what was there before is kept.
    """
    model._check_fitted()
    if form not in ("auto", "fitted", *FORMS):
        raise ValueError(f"form must be 'auto', 'fitted', 'primal', 'dual' or 'local', got {form!r}")
    name = type(model).__name__
    if name not in KINDS.values() or kind(name) is not type(model):
        raise StoreError(f"a {name} cannot be saved: the models that can are {', '.join(KINDS.values())}")
    state = model._state(form)
    arrays = dict(state.arrays)
    if histories is not None:
        given = csr_parts("histories", encode(histories, model.items_).matrix)
        arrays |= {"users": histories.users.encode()} | ({} if _has(arrays, given) else given)
    record = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "title": title,
        "model": name,
        "parameters": {key: _plain(value) for key, value in model.get_params().items()},
        "fitted": dict(state.facts),
        "data": _statistics(model) | {"histories": histories is not None, "titles": model.titles_ is not None},
        "versions": _versions(),
    }
    write(Path(path), record, arrays, progress)


@dataclass(frozen=True)
class Saved:
    """An opened model folder."""

    path: Path
    info: Mapping[str, Any]
    model: HistoryRecommender
    _arrays: Mapping[str, NDArray[Any]]

    @property
    def size(self) -> int:
        """Bytes of the arrays on disk."""
        return sum(int(entry["bytes"]) for entry in self.info["arrays"].values())

    @cached_property
    def histories(self) -> Interactions | None:
        """What the users have whom the model knows by their ids, None if it was saved without."""
        if "users" not in self._arrays:
            return None
        try:
            users = Ids.decode(self._arrays["users"])
            name = "histories" if "histories_starts" in self._arrays else _OWN
            matrix = csr_from_parts(name, self._arrays, (len(users), len(self.model.items_)))
            found = Interactions(matrix, users, self.model.items_)
        except (ValueError, KeyError) as error:
            raise _corrupt(self.path, error) from error
        found.titles = self.model.titles_
        return found


def open_model(path: str | os.PathLike[str], *, verify: bool = False) -> Saved:
    """Open a model folder. Arrays are mapped, not read: large models open at once, and processes share their memory.

    Parameters
    ----------
    path
        The folder.
    verify
        Read all of it, and check every checksum.

    Raises
    ------
    StoreError
        If there is no model, or it is corrupt or of a newer format.
    """
    place = Path(path)
    record, arrays = read(place, verify=verify)
    try:
        model = kind(record["model"])(**record["parameters"])
        model._restore(record["fitted"], arrays)
        info = {key: record[key] for key in ("title", "created", "data", "versions")}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _corrupt(place, error) from error
    return Saved(place, record | info, model, arrays)


def load(path: str | os.PathLike[str], *, verify: bool = False) -> HistoryRecommender:
    """Return the model that was saved in a folder, ready to use; see `open_model`."""
    load_kernels()
    return open_model(path, verify=verify).model


def _corrupt(path: Path, error: Exception) -> StoreError:
    reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
    return StoreError(f"{path} is corrupt: {reason}; copy or save the model again")


def _has(arrays: Mapping[str, Any], histories: Mapping[str, NDArray[Any]]) -> bool:
    """Whether a model has these histories itself, so that they need not be there twice."""
    own = {name: name.replace("histories", _OWN) for name in histories}
    return all(own[name] in arrays and np.array_equal(arrays[own[name]], part) for name, part in histories.items())


def _statistics(model: HistoryRecommender) -> dict[str, Any]:
    users, items, interactions = model.n_users_, len(model.items_), int(model.item_counts_.sum())
    return {
        "users": users,
        "items": items,
        "interactions": interactions,
        "density": interactions / max(users * items, 1),
        "gini": gini(model.item_counts_),
    }


def _versions() -> dict[str, str]:
    from relae import __version__

    return {"relae": __version__, "numpy": np.__version__, "python": platform.python_version()}


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it."""
    return value.item() if isinstance(value, np.generic) else value
