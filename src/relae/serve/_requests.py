"""The requests of the service, declared once: checks, limits, messages and the OpenAPI document follow from them.

A field that is null counts as left out. `_decoding.bind` puts the settings of a service in the place of each `Limit`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct, defstruct

from relae.catalog import MAX_QUERY, MAX_WORDS, Id
from relae.models import DIALS
from relae.serve._problem import Problem

# Larger ones could overflow in float32 on their way through a model; a history needs none.
MAX_WEIGHT = 1e9
MAX_TIME = 4e15  # beyond 2^53, floating-point numbers are not whole any more; microseconds are below until 2096
PATHS = {"xis": "xi", "item_norms": "item_norm"}
"""The fields of a path, and the dial that changes along each of them."""

_RANGES = {dial.name: Meta(ge=dial.limits[0], le=dial.limits[1]) for dial in DIALS}


@dataclass(frozen=True)
class Limit:
    """A constraint of msgspec whose value is a setting of the service."""

    constraint: Literal["le", "max_length"]
    setting: str


class Event(Struct, forbid_unknown_fields=True):
    """An item of a history, and when the user had it: any number that rises with time."""

    item: Id
    at: Annotated[float, Meta(ge=-MAX_TIME, le=MAX_TIME)]


History = list[Id | Event] | dict[str, Annotated[float, Meta(ge=0, le=MAX_WEIGHT)]]
_MAX_HISTORY = Limit("max_length", "max_history")
_HISTORY = (
    'Ids, the latest last; or ids with times, such as {"item": 260, "at": 978300019}, which come after those without; '
    "or an object of ids and weights."
)
_ID = 'An id; "260" finds the integer 260.'


class Query(Struct, kw_only=True):
    """The parameters of a URL; others are ignored."""


class SearchQuery(Query, kw_only=True):
    """The query of /v1/items."""

    q: Annotated[
        str, Meta(max_length=MAX_QUERY), f"Words of a title, of which the longest {MAX_WORDS} count, or an id."
    ] = ""
    limit: Annotated[int, Meta(ge=1), Limit("le", "max_k")] = 20


class SimilarQuery(Query, kw_only=True):
    """The query of /v1/similar/{item}."""

    k: Annotated[int, Meta(ge=1), Limit("le", "max_k")] = 10


class Request(Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of a request: for one of two sources, and no other fields than those declared."""

    EXAMPLE: ClassVar[str] = "{}"
    SOURCES: ClassVar[tuple[str, str]] = ("history", "user")
    DEFAULTS: ClassVar[Mapping[str, Any]] = {}  # the values of fields that are null; filled in by `bind`

    def __post_init__(self) -> None:
        for name, default in self.DEFAULTS.items():
            if getattr(self, name) is None:
                setattr(self, name, default)
        first, second = self.SOURCES
        has_first, has_second = (getattr(self, name) is not None for name in self.SOURCES)
        if has_first == has_second:
            verb = "are" if has_second or second.endswith("s") else "is"
            which = f"both {first} and {second}" if has_second else f"neither {first} nor {second}"
            message = f"{which} {verb} given: give one of them, such as {self.EXAMPLE}"
            raise Problem(422, message, first)


if TYPE_CHECKING:

    class DialRequest(Request, kw_only=True):
        """A request with a field for each dial that the models declare."""

        @property
        def dials(self) -> dict[str, float]:
            """The dials that the request sets, by name; the others stay where the model has them."""
            ...
else:
    DialRequest = defstruct(
        "DialRequest",
        [
            (
                dial.name,
                Annotated[float | None, _RANGES[dial.name], f"{dial.label}: {dial.help}; null: the model's own."],
                None,
            )
            for dial in DIALS
        ],
        bases=(Request,),
        kw_only=True,
        namespace={
            "dials": property(
                lambda self: {dial.name: value for dial in DIALS if (value := getattr(self, dial.name)) is not None}
            )
        },
    )


class ListRequest(DialRequest, kw_only=True):
    """Options of lists, whoever they are for."""

    k: Annotated[int, Meta(ge=1), Limit("le", "max_k"), "Items of a list."] = 10
    allow: Annotated[list[Id] | None, Limit("max_length", "max_ids"), "Items that alone may be recommended."] = None
    deny: Annotated[list[Id] | None, Limit("max_length", "max_ids"), "Items that are never recommended."] = None
    exclude_seen: Annotated[bool, "Leave out the items of the history, and other items that the user has had."] = True


class RecommendRequest(ListRequest, kw_only=True):
    """The body of /v1/recommend."""

    EXAMPLE = '{"history": [260, 1196], "k": 10, "xi": 0.4, "explain": true}'

    history: Annotated[History | None, _MAX_HISTORY, _HISTORY] = None
    user: Annotated[Id | None, _ID] = None
    explain: Annotated[bool, "Give the reasons of each item."] = False


class BatchRequest(ListRequest, kw_only=True):
    """The body of /v1/recommend/batch."""

    EXAMPLE = '{"histories": [[260, 1196], {"1210": 2.0}], "k": 10}'
    SOURCES = ("histories", "users")

    histories: Annotated[list[Annotated[History, _MAX_HISTORY]] | None, Limit("max_length", "max_batch"), _HISTORY] = (
        None
    )
    users: Annotated[list[Id] | None, Limit("max_length", "max_batch"), "Ids of users."] = None
    explain: Annotated[bool, "Give the reasons of each item."] = False


class PathRequest(ListRequest, kw_only=True):
    """The body of /v1/path: the dial that changes along the path has no single value."""

    EXAMPLE = '{"history": [260, 1196], "k": 10}'

    history: Annotated[History | None, _MAX_HISTORY, _HISTORY] = None
    user: Annotated[Id | None, _ID] = None
    xis: Annotated[
        list[Annotated[float, _RANGES["xi"]]] | None,
        Meta(min_length=1),
        Limit("max_length", "max_xis"),
        "The ξ of the lists; null: some that are spread over the interval that matters.",
    ] = None
    item_norms: Annotated[
        list[Annotated[float, _RANGES["item_norm"]]] | None,
        Meta(min_length=1),
        Limit("max_length", "max_xis"),
        "A path along the item norm, in place of ξ.",
    ] = None

    @property
    def along(self) -> str:
        """The field of the path: `xis` unless another one is given."""
        return next((name for name in PATHS if name != "xis" and getattr(self, name) is not None), "xis")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in {*PATHS, PATHS[self.along]} - {self.along}:
            if getattr(self, name) is not None:
                way = (
                    "leave it out, or give item_norms for a path at one ξ" if name == "xi" else "leave one of them out"
                )
                raise Problem(422, f"a path along {self.along} takes no {name}: {way}", name)


class ExplainRequest(DialRequest, kw_only=True):
    """The body of /v1/explain."""

    EXAMPLE = '{"history": [260, 1196], "item": 1210}'

    history: Annotated[History | None, _MAX_HISTORY, _HISTORY] = None
    user: Annotated[Id | None, _ID] = None
    item: Annotated[Id, "The item to explain."]
