"""Every model by its name: what a command can fit, a comparison can name and a folder can hold.

This is the only place that imports a module by its name, so that `import relae` and the start of a command stay fast.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relae.recommender import HistoryRecommender

_ROOMS = {
    "relae.models": ("DAN", "RDLAE", "EDLAE", "DLAE", "RLAE", "EASE", "LAE", "DEQL", "NextItem"),
    "relae.baselines": (
        *("Random", "Popularity", "Trending", "ItemKNN", "ContentKNN", "SLIM", "IALS"),
        *("RP3Beta", "GFCF", "TurboCF", "ChebyCF", "BSPM"),
        *("MultVAE", "GRMF", "GRMFNorm", "LightGCN", "LTOCF", "HMLET"),
        *("LastItemKNN", "Markov", "SASRec"),
    ),
}
_modules = {name.lower(): room for room, names in _ROOMS.items() for name in names}
_names = {name.lower(): name for names in _ROOMS.values() for name in names}
_own: dict[str, type["HistoryRecommender"]] = {}  # registered by users

KINDS: Mapping[str, str] = MappingProxyType(_names)
"""The name of every model's class, by the name that commands and options use: the class name in lower case."""


def kind(name: str) -> type["HistoryRecommender"]:
    """Return the class of a model by its name, in upper or lower case; it is imported when it is first asked for.

    Raises
    ------
    DataError
        If there is no such model.
    """
    key = name.lower()
    if key not in KINDS:
        from difflib import get_close_matches

        from relae.errors import DataError

        close = get_close_matches(key, KINDS, 1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise DataError(f"there is no model {name!r}{hint}: the models are {', '.join(KINDS)}")
    return _own[key] if key in _own else import_name(_modules[key], KINDS[key])


def register(model: type["HistoryRecommender"]) -> type["HistoryRecommender"]:
    """Add a model class of your own, so that comparisons and saved folders find it by its name; a decorator.

    A class that is defined again in the same module replaces the earlier one, as in a notebook.

    Raises
    ------
    ValueError
        If another model has this name, in upper or lower case.
    """
    key = model.__name__.lower()
    if key in _modules or (key in _own and _own[key].__module__ != model.__module__):
        raise ValueError(f"there is another model {KINDS[key]}: give yours another name")
    _names[key], _own[key] = model.__name__, model
    return model


def import_name(module: str, name: str | None = None) -> Any:
    """Import a module, and return it or what has this name in it."""
    imported = import_module(module)
    return imported if name is None else getattr(imported, name)
