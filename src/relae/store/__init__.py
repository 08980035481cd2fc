"""A model as a folder: plain arrays and a JSON file, memory-mapped when it is opened, with nothing in it that runs."""

import os
import platform
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae._common.checks import refuse
from relae._common.progress import Progress
from relae.data import Interactions, gini
from relae.errors import StoreError
from relae.linalg import check_layout, load_kernels
from relae.recommender import HistoryRecommender, number, shortened, text, whole
from relae.registry import KINDS, kind
from relae.solvers import FORMS, ensure_memory
from relae.store._folder import ReservedFolder, reserve
from relae.store._format import Record
from relae.store._history import Change, digest_of, read_history
from relae.store._read import FileState, overwritten, read
from relae.store._size import forecast_size
from relae.store._users import check_user_facts, read_users, user_arrays, user_facts, user_layout, users_of_fit

_IMPOSSIBLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)  # what a corrupt folder leads to

__all__ = [
    "Change",
    "ReservedFolder",
    "Saved",
    "digest_of",
    "forecast_size",
    "load",
    "open_model",
    "reserve",
    "roll_back",
    "save",
]


def save(
    model: HistoryRecommender,
    path: str | os.PathLike[str] | ReservedFolder,
    *,
    form: str = "fitted",
    histories: Interactions | None = None,
    title: str | None = None,
    progress: Progress | None = None,
    change: Change | None = None,
    keep: int = 0,
) -> None:
    """Save a fitted model as a folder. An earlier model there is replaced at the very end, or not at all.

    Parameters
    ----------
    path
        A new or empty folder, or that of an earlier model; or what `reserve` gives, where a fit takes long and the
        folder shall be held meanwhile.
    form
        Of the inverse of a linear autoencoder: "fitted" (as it was solved); "primal", which is P itself: a model solved
        in the dual form is turned into it row by row, in bounded memory; "dual" or "local", for those solved so; or
        "auto", which serves fastest: primal for exact models.
    histories
        Users whom the saved model shall know by their ids, with what they have and what else they have seen; such as
        the training data. The ids of users whom filters dropped go along, to tell them from strangers. Anyone who has
        the folder can read them. A model that `holds_histories` holds those of the fit in any case, without the
        users' ids.
    title
        What the data is called.
    progress
        Called with "save" and the fraction that is done.
    change
        The change that has made this model of the one in the folder, for its history. Without it, a new history begins
        and no earlier version is kept.
    keep
        How many earlier versions stay in the folder, that of now included, to `roll_back` to.

    Raises
    ------
    StoreError
        If the folder cannot be written; what was there before is kept.
    """
    model.check_fitted()
    if form not in ("auto", "fitted", *FORMS):
        refuse("form", form, "be 'auto', 'fitted', 'primal', 'dual' or 'local'")
    name = type(model).__name__
    if name not in KINDS.values() or kind(name) is not type(model):
        raise StoreError(f"a {name} cannot be saved: the models that can are {', '.join(KINDS.values())}")
    state = model.state(form)
    arrays = dict(state.arrays)
    if histories is not None:
        arrays |= user_arrays(histories, model.items_, arrays)
    record = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "title": title,
        "model": name,
        "parameters": {key: _plain(value) for key, value in model.get_params().items()},
        "fitted": dict(state.facts),
        "data": _statistics(model)
        | user_facts(histories, arrays, model.users_)
        | {"titles": model.titles_ is not None},
        "versions": _versions(),
    }
    with nullcontext(path) if isinstance(path, ReservedFolder) else reserve(path) as target:
        target.write(record, arrays, progress, change, keep)


def roll_back(path: str | os.PathLike[str] | ReservedFolder) -> None:
    """Go back to the version of a model before its last change, which is removed; the history has a line more.

    Raises
    ------
    StoreError
        If the folder keeps no earlier version; the model stays as it is.
    """
    with nullcontext(path) if isinstance(path, ReservedFolder) else reserve(path) as target:
        target.roll_back()


@dataclass(frozen=True)
class Saved:
    """An opened model folder."""

    path: Path
    info: Mapping[str, Any]
    model: HistoryRecommender
    _arrays: Mapping[str, NDArray[Any]]
    _files: dict[str, FileState] = field(default_factory=dict)

    def overwritten(self) -> Path | None:
        """Return a file that was overwritten in place since it was mapped: to use the model is no longer safe.

        Where a file became shorter, the process ends at the next look at what is gone (SIGBUS). What was replaced by
        a new file, as a save does it, is not overwritten.
        """
        return overwritten(self.path, dict(self.info), self._files)

    @property
    def size(self) -> int:
        """Bytes of the arrays on disk."""
        return sum(int(entry["bytes"]) for entry in self.info["arrays"].values())

    @property
    def history(self) -> list[Record]:
        """The changes since the fit, the first one first; a StoreError if the file was changed by others."""
        return read_history(self.path, self.info)

    @property
    def earlier(self) -> int:
        """The number of earlier versions that are kept, to `roll_back` to."""
        return len(self.info.get("earlier", []))

    @cached_property
    def histories(self) -> Interactions | None:
        """The saved histories of users, and what else they have seen; None if the model was saved without them."""
        try:
            users = read_users(self._arrays, self.info["data"], self.model.items_)
        except _IMPOSSIBLE as error:
            raise _corrupt(self.path, error) from error
        return None if users is None else users.replace(titles=self.model.titles_)


def open_model(path: str | os.PathLike[str], *, verify: bool = False, in_memory: bool = False) -> Saved:
    """Open a model folder. Arrays are mapped, not read: large models open at once, and processes share their memory.

    The files of a mapped model must not be overwritten in place, which `save` never does: a process that looks at what
    is gone from a file ends (SIGBUS).

    Parameters
    ----------
    path
        The folder.
    verify
        Read all of it, and check every checksum.
    in_memory
        Read all of it into memory, so that its files may change.

    Raises
    ------
    StoreError
        If there is no model, or it is corrupt or of a newer format.
    """
    folder = Path(path)
    check = partial(_blank_model, folder, in_memory)
    record, model, arrays, files = read(folder, check, verify=verify, in_memory=in_memory)
    try:
        model.restore(record["fitted"], arrays)
        model.users_ = users_of_fit(arrays, record["data"], model.n_users_)
    except _IMPOSSIBLE as error:
        raise _corrupt(folder, error) from error
    return Saved(folder, record, model, arrays, files)


def _blank_model(path: Path, in_memory: bool, record: Record) -> HistoryRecommender:
    """Return the model that a record names, not fitted yet; a StoreError if the record cannot be one of its kind."""
    try:
        _check_information(record)
        model = kind(text(record, "model", *KINDS.values()))(**record["parameters"])
        names, facts = record["arrays"].keys(), record["fitted"]
        layout = {**model.layout(facts, names), **user_layout(names)}
        arrays = {name: (entry["dtype"], tuple(entry["shape"])) for name, entry in record["arrays"].items()}
        check_layout(layout, arrays, {"users": whole(facts, "users")})
    except _IMPOSSIBLE as error:
        raise _corrupt(path, error) from error
    copied = sum(entry["bytes"] for name, entry in record["arrays"].items() if in_memory or not layout[name].mapped)
    ensure_memory(copied, f"the model in {path}", "free some, or use a machine with more")
    return model


def _check_information(record: Record) -> None:
    """Raise a ValueError, KeyError or TypeError unless what is shown of a model is what `save` writes there."""
    for name in ("parameters", "fitted", "data", "versions"):
        if not isinstance(record[name], dict):
            raise ValueError(f"{name} is {shortened(record[name])}, not a mapping")
    for name, value in record["parameters"].items():
        if value is not None and not isinstance(value, (bool, int, float, str)):
            raise ValueError(f"the parameter {shortened(name)} is {shortened(value)}, not a number or a text")
    if record["title"] is not None:
        text(record, "title")
    text(record, "created")
    data, versions = record["data"], record["versions"]
    for name in ("users", "items", "interactions"):
        whole(data, name)
    for name in ("density", "gini"):
        number(data, name)
    if not isinstance(data["titles"], bool):
        raise ValueError(f"titles is {shortened(data['titles'])}, not true or false")
    check_user_facts(data)
    for name in versions:
        text(versions, name)


def load(path: str | os.PathLike[str], *, verify: bool = False) -> HistoryRecommender:
    """Return the model that was saved in a folder, ready to use; see `open_model`."""
    load_kernels()
    return open_model(path, verify=verify).model


def _corrupt(path: Path, error: Exception) -> StoreError:
    reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
    return StoreError(f"{path} is corrupt: {reason}; copy or save the model again")


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
