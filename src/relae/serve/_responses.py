"""The responses of the service, as types: mypy checks them in the code, and OpenAPI shows them to callers."""

from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from relae.catalog import Id, Item, Reason, RecommendedItem, SimilarItem, Suggestion
from relae.models import DIALS

if TYPE_CHECKING:

    class Dials(TypedDict):
        """The values of the dials that the models declare; null for a model without them."""

else:
    Dials = TypedDict("Dials", {dial.name: float | None for dial in DIALS})


class Recommendation(Dials):
    """A list of recommendations, the best first.

    `known` counts the items of the history that the model knows, `unknown` names the others. `popular` tells that none
    is known, so that these are the most popular items.
    """

    items: list[RecommendedItem]
    k: int
    user: Id | None
    known: int
    unknown: list[Id]
    popular: bool


class SingleRecommendation(Recommendation):
    """A list for one history, with `suggestions` for the first three unknown ids that are like other ids, or titles."""

    suggestions: list[Suggestion]


class Recommendations(TypedDict):
    """One result for each history or user, in their order."""

    results: list[Recommendation]


class PathPoint(Dials):
    """A list, its items' mean popularity and the share of them in the tail (null for no items)."""

    popularity: float | None
    tail_share: float | None
    items: list[Id]


class DialPath(TypedDict):
    """A list for each value of ξ, or of the item norm."""

    path: list[PathPoint]


class FoundItems(TypedDict):
    """Items that match a search, and how many there are in all."""

    items: list[Item]
    total: int


class SimilarItems(TypedDict):
    """The items most similar to one item."""

    item: Item
    items: list[SimilarItem]


class Explained(Dials):
    """The part of a score that each item of the history adds, the largest first; negative ones are there, too.

    `seen` tells that the item is in the history, or that the user has had it beside the history, such as with a low
    rating: it is then recommended only with `exclude_seen` false. `demand` is what the recent demand for the item adds.
    """

    item: Item
    score: float
    seen: bool
    demand: float
    because: list[Reason]


class Limits(TypedDict):
    """The most that a request may ask for."""

    history: int
    k: int
    batch: int
    ids: int
    xis: int
    results: int
    explained: int
    body_bytes: int


class Model(Dials):
    """The model that answers.

    `dials` names what a request may set to another value than the model's own; `user_norm` needs another fit. `users`
    and `titles` tell whether the model knows users by their ids, and items by titles.
    """

    model: str
    parameters: dict[str, Any]
    dials: list[str]
    xi_interval: list[float] | None
    user_norm: float | None
    title: str | None
    data: dict[str, Any]
    fitted: dict[str, Any]
    versions: dict[str, Any]
    created: str
    users: bool
    titles: bool
    limits: Limits
    loaded: str


class Status(TypedDict):
    """The state of the service."""

    status: str


class ErrorDetail(TypedDict):
    """A message that says what is wrong and what to do, and the field at fault, if it is one."""

    message: str
    field: str | None


class Error(TypedDict):
    """The one shape of all errors."""

    error: ErrorDetail


def _to_python(value: Any) -> Any:
    """Return a scalar of NumPy as Python's."""
    return value.item()


encode = msgspec.json.Encoder(enc_hook=_to_python).encode
"""Return a response as JSON; NaN and infinity are null."""
