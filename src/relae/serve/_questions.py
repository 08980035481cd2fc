"""Questions as they come over HTTP: what they may contain, checked by hand so that every refusal can be understood.

A field that is null counts as not given. The schemas that OpenAPI shows are in `_schema`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from relae.algebra import NORMS, XIS
from relae.catalog import MAX_QUERY
from relae.models import DIALS
from relae.serve._problem import Problem, shown
from relae.serve._settings import Settings

Id = int | str
Dials = Mapping[str, float]
"""The dials that are given, by name; the others stay where the model has them."""

# Larger ones could overflow in float32 on their way through a model; a history needs none.
MAX_WEIGHT = 1e9


@dataclass(frozen=True, slots=True)
class History:
    """Ids, and their weights if any were given."""

    ids: Sequence[Id]
    weights: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """What recommendations shall be like, whoever they are for."""

    k: int
    dials: Dials
    allow: Sequence[Id] | None
    deny: Sequence[Id] | None
    exclude_seen: bool
    explain: bool


@dataclass(frozen=True, slots=True)
class RecommendQuestion:
    """One list, for a history or for a user by id."""

    who: History | Id
    wish: Wish


@dataclass(frozen=True, slots=True)
class BatchQuestion:
    """A list for each of several histories, or users."""

    who: Sequence[History | Id]
    wish: Wish


@dataclass(frozen=True, slots=True)
class PathQuestion:
    """One list for each of several ξ, or item norms."""

    who: History | Id
    xis: Sequence[float] | None
    item_norms: Sequence[float] | None
    wish: Wish


@dataclass(frozen=True, slots=True)
class ExplainQuestion:
    """Why an item has its score."""

    who: History | Id
    item: Id
    dials: Dials


def read_recommend(body: bytes, limits: Settings) -> RecommendQuestion:
    """Read the body of /v1/recommend."""
    fields = _Fields.of(body, limits, ("history", "user", *_WISH))
    return RecommendQuestion(fields.who(), fields.wish())


def read_batch(body: bytes, limits: Settings) -> BatchQuestion:
    """Read the body of /v1/recommend/batch."""
    fields = _Fields.of(body, limits, ("histories", "users", *_WISH))
    return BatchQuestion(fields.several(), fields.wish())


def read_path(body: bytes, limits: Settings) -> PathQuestion:
    """Read the body of /v1/path."""
    wish = tuple(name for name in _WISH if name != "explain")
    fields = _Fields.of(body, limits, ("history", "user", "xis", "item_norms", *wish))
    question = PathQuestion(
        fields.who(), fields.numbers("xis", XIS), fields.numbers("item_norms", NORMS), fields.wish()
    )
    along, others = ("xis", ("xi",)) if question.item_norms is None else ("item_norms", ("xis", "item_norm"))
    for name in others:
        if fields.given.get(name) is not None:
            way = "leave it out, or give item_norms for a path at one ξ" if name == "xi" else "leave one of them out"
            raise Problem(422, f"a path along {along} takes no {name}: {way}", name)
    return question


def read_explain(body: bytes, limits: Settings) -> ExplainQuestion:
    """Read the body of /v1/explain."""
    fields = _Fields.of(body, limits, ("history", "user", "item", *_DIALS))
    who, item = fields.who(), fields.id("item")
    if item is None:
        raise Problem(422, "item is missing: name the item to explain", "item")
    return ExplainQuestion(who, item, fields.dials())


def read_whole(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    """Read a whole number from the query of a URL."""
    text = query.get(name)
    if text is None:
        return default
    # a few digits, so that no text can make a number that takes long to read
    value: object = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text
    return _whole(name, value, most)


def read_search(query: Mapping[str, str]) -> str:
    """Read what to search for."""
    text = query.get("q", "")
    if len(text) > MAX_QUERY:
        raise Problem(422, f"q has {len(text):,} characters, at most {MAX_QUERY} are searched for", "q")
    return text


# --- fields --------------------------------------------------------------------------------------------------------

_DIALS = tuple(parameter.name for parameter in DIALS)
_WISH = ("k", *_DIALS, "allow", "deny", "exclude_seen", "explain")


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields of one body."""

    given: Mapping[str, Any]
    limits: Settings

    @classmethod
    def of(cls, body: bytes, limits: Settings, names: tuple[str, ...]) -> "_Fields":
        try:
            given = from_json(body, allow_inf_nan=False)
        except ValueError as error:
            raise Problem(422, f"the body is not valid JSON: {error}") from error
        if not isinstance(given, dict):
            raise Problem(422, f"the body must be a JSON object such as {{{_EXAMPLES[names[0]]}}}, got {shown(given)}")
        for name in given:
            if name not in names:
                raise Problem(422, f"there is no field {shown(name)} here: the fields are {', '.join(names)}")
        return cls(given, limits)

    def who(self) -> History | Id:
        history, user = self.given.get("history"), self.id("user")
        if (history is None) == (user is None):
            which = "both history and user are" if user is not None else "neither history nor user is"
            raise Problem(422, f"{which} given: give one of them, such as {{{_EXAMPLES['history']}}}", "history")
        return self._history("history", history) if user is None else user

    def several(self) -> Sequence[History | Id]:
        histories, users = self.given.get("histories"), self._ids("users", self.limits.max_batch)
        if (histories is None) == (users is None):
            which = "both histories and users" if users is not None else "neither histories nor users"
            raise Problem(
                422, f"{which} are given: give one of them, such as {{{_EXAMPLES['histories']}}}", "histories"
            )
        if users is not None:
            return users
        if not isinstance(histories, list):
            raise Problem(422, f"histories must be a list of histories, got {shown(histories)}", "histories")
        self._check_length("histories", histories, self.limits.max_batch)
        return [self._history("histories", each, f"histories[{at}]") for at, each in enumerate(histories)]

    def wish(self) -> Wish:
        k, most = self.given.get("k"), self.limits.max_k
        return Wish(
            k=10 if k is None and most >= 10 else most if k is None else _whole("k", k, most),
            dials=self.dials(),
            allow=self._ids("allow", self.limits.max_ids),
            deny=self._ids("deny", self.limits.max_ids),
            exclude_seen=self._flag("exclude_seen", True),
            explain=self._flag("explain", False),
        )

    def dials(self) -> Dials:
        values = {parameter.name: self._number(parameter.name, parameter.limits) for parameter in DIALS}
        return {name: value for name, value in values.items() if value is not None}

    def _number(self, name: str, ends: tuple[float, float]) -> float | None:
        value = self.given.get(name)
        return None if value is None else _between(name, value, *ends)

    def numbers(self, name: str, ends: tuple[float, float]) -> Sequence[float] | None:
        values = self.given.get(name)
        if values is None:
            return None
        if not isinstance(values, list) or not values:
            low, high = ends
            raise Problem(422, f"{name} must be a list of numbers from {low:g} to {high:g}, got {shown(values)}", name)
        self._check_length(name, values, self.limits.max_xis)
        return [_between(name, value, *ends) for value in values]

    def id(self, name: str) -> Id | None:
        value = self.given.get(name)
        return None if value is None else _id(name, value)

    def _ids(self, name: str, most: int) -> Sequence[Id] | None:
        values = self.given.get(name)
        if values is None:
            return None
        if not isinstance(values, list):
            raise Problem(422, f"{name} must be a list of ids, got {shown(values)}", name)
        self._check_length(name, values, most)
        return _list_of_ids(name, values)

    def _history(self, name: str, history: Any, place: str | None = None) -> History:
        place = place or name
        if isinstance(history, list):
            self._check_length(name, history, self.limits.max_history, place)
            return History(_list_of_ids(name, history, place))
        if isinstance(history, dict):
            self._check_length(name, history, self.limits.max_history, place)
            for item, weight in history.items():
                # `not <=` finds NaN, too
                if type(weight) not in (int, float) or not 0 <= weight <= MAX_WEIGHT:
                    raise Problem(
                        422,
                        f"the weight of item {shown(item)} in {place} must be a number from 0 to {MAX_WEIGHT:,.0f}, "
                        f"got {shown(weight)}",
                        name,
                    )
            return History(list(history), list(history.values()))
        raise Problem(
            422, f"{place} must be a list of ids, or an object of ids and their weights, got {shown(history)}", name
        )

    def _flag(self, name: str, default: bool) -> bool:
        value = self.given.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise Problem(422, f"{name} must be true or false, got {shown(value)}", name)
        return value

    def _check_length(self, name: str, values: Sequence[Any] | Mapping[str, Any], most: int, place: str = "") -> None:
        if len(values) > most:
            raise Problem(422, f"{place or name} has {len(values):,} entries, and at most {most:,} are taken", name)


def _whole(name: str, value: object, most: int) -> int:
    if isinstance(value, float) and value.is_integer():  # 10.0 is JSON's 10
        value = int(value)
    if type(value) is not int or not 1 <= value <= most:
        raise Problem(422, f"{name} must be a whole number from 1 to {most:,}, got {shown(value)}", name)
    return value


def _between(name: str, value: object, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise Problem(422, f"{name} must lie between {low:g} and {high:g}, got {shown(value)}", name)
    return float(value)


def _id(name: str, value: Any) -> Id:
    if isinstance(value, float) and value.is_integer():  # 260.0 is JSON's 260
        return int(value)
    if type(value) not in (int, str):
        raise Problem(422, f"{name} must be an id, which is an integer or a string, got {shown(value)}", name)
    found: Id = value
    return found


def _list_of_ids(name: str, values: list[Any], place: str | None = None) -> list[Id]:
    if set(map(type, values)) <= {int, str}:  # nearly always
        return values
    return [_id_at(name, value, f"{place or name}[{at}]") for at, value in enumerate(values)]


def _id_at(name: str, value: Any, place: str) -> Id:
    try:
        return _id(place, value)
    except Problem as problem:
        raise Problem(problem.status, problem.message, name) from None


_EXAMPLES = {"history": '"history": [260, 1196], "k": 10', "histories": '"histories": [[260, 1196], [1210]], "k": 10'}
