"""Every model by its name: what a command can fit and a folder can hold."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import cast

from relae.errors import DataError
from relae.recommender import HistoryRecommender

_ROOMS = {
    "relae.models": ("DAN", "RDLAE", "EDLAE", "DLAE", "RLAE", "EASE", "LAE", "DEQL"),
    "relae.baselines": (
        *("Random", "Popularity", "ItemKNN", "ContentKNN", "IALS", "GFCF"),
        *("MultVAE", "GRMF", "GRMFNorm", "LightGCN", "LTOCF", "HMLET"),
    ),
}
_PLACES = {name.lower(): (room, name) for room, names in _ROOMS.items() for name in names}

KINDS: Mapping[str, str] = MappingProxyType({key: name for key, (_, name) in _PLACES.items()})
"""The name of every model's class, by the name that commands and options use."""


def kind(name: str) -> type[HistoryRecommender]:
    """Return the class of a model by its name, in any case. It is imported only now, so that a start stays quick."""
    if name.lower() not in _PLACES:
        close = get_close_matches(name.lower(), KINDS, 1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise DataError(f"there is no model {name!r}{hint}: the models are {', '.join(KINDS)}")
    room, found = _PLACES[name.lower()]
    return cast(type[HistoryRecommender], getattr(import_module(room), found))
