"""From a request to its response, on one snapshot: all that runs off the event loop."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from relae.catalog import Id, Item
from relae.models import Dial
from relae.serve._problem import Problem
from relae.serve._requests import (
    PATHS,
    BatchRequest,
    ExplainRequest,
    ListRequest,
    PathRequest,
    RecommendRequest,
    SearchQuery,
)
from relae.serve._responses import Dials as DialValues
from relae.serve._responses import (
    Explained,
    FoundItems,
    PathPoint,
    Recommendation,
    SimilarItems,
    SingleRecommendation,
    encode,
)
from relae.serve._snapshot import History, Snapshot

_PATH_POINTS = 21  # ξ of a path if none are given
# A batch is answered in parts of this size, so that its memory is bounded and other requests get turns in between.
_PART_HISTORIES, _PART_ITEMS = 16, 5_000

Dials = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The options of lists on one snapshot, looked up once per request, however many lists it asks for."""

    request: ListRequest
    dials: Dials
    k: int  # at most the items of the model
    explain: bool
    allow: NDArray[np.int64] | None
    deny: NDArray[np.int64] | None

    @classmethod
    def resolve(cls, snapshot: Snapshot, request: ListRequest, lists: int = 1) -> "ListOptions":
        """Look up the ids of a request for so many lists, and refuse what would cost too much."""
        k, explain = min(request.k, len(snapshot.catalog.items)), getattr(request, "explain", False)
        limits = snapshot.description["limits"]
        for limit, what, field in (
            (limits["results"], "an answer has at most", "k"),
            (limits["explained"] if explain else lists * k, "with explain, an answer has at most", "explain"),
        ):
            if lists * k > limit:
                raise Problem(
                    413,
                    f"{lists:,} lists of {k:,} are {lists * k:,} items, and {what} {limit:,}: ask for fewer at a time",
                    field,
                )
        allow, deny = snapshot.find_columns(request.allow), snapshot.find_columns(request.deny)
        return cls(request, request.dials, k, explain, allow, deny)

    def filters(self, snapshot: Snapshot, histories: Sequence[History]) -> dict[str, Any]:
        """Return the arguments of `recommend` beside histories and k."""
        exclude_seen = self.request.exclude_seen
        seen = snapshot.stack_seen(histories) if exclude_seen else None
        times = snapshot.stack_times(histories)
        return {"exclude_seen": exclude_seen, "seen": seen, "times": times, "allow": self.allow, "deny": self.deny}


# --- lists -----------------------------------------------------------------------------------------------------------


def recommend(snapshot: Snapshot, request: RecommendRequest) -> SingleRecommendation:
    """Return one list."""
    history = snapshot.find_history(request.history, request.user)
    [result] = _make_lists(snapshot, [history], ListOptions.resolve(snapshot, request))
    return {**result, "suggestions": snapshot.catalog.suggestions(history.unknown)}


def split_batch(snapshot: Snapshot, request: BatchRequest) -> tuple[list[list[History]], ListOptions]:
    """Divide the histories of a batch into parts, in their order, and look up the options that they share."""
    options = ListOptions.resolve(snapshot, request, len(request.histories or request.users or ()))
    parts: list[list[History]] = []
    room = 0
    for history in _find_histories(snapshot, request):
        if not parts or room < len(history.columns) or len(parts[-1]) == _PART_HISTORIES:
            parts.append([])
            room = max(_PART_ITEMS, len(history.columns))
        parts[-1].append(history)
        room -= len(history.columns)
    return parts, options


def _find_histories(snapshot: Snapshot, request: BatchRequest) -> list[History]:
    if request.users is None:
        return [snapshot.find_history(history, None) for history in request.histories or ()]
    histories = []
    for number, user in enumerate(request.users):
        try:
            histories.append(snapshot.find_history(None, user))
        except Problem as problem:
            raise Problem(problem.status, f"users[{number}]: {problem.message}", "users") from None
    return histories


def recommend_part(snapshot: Snapshot, histories: Sequence[History], options: ListOptions) -> bytes:
    """Return some lists of a batch, as JSON without the brackets around it."""
    return encode(_make_lists(snapshot, histories, options))[1:-1]


def _make_lists(snapshot: Snapshot, histories: Sequence[History], options: ListOptions) -> list[Recommendation]:
    if options.explain:
        snapshot.require(snapshot.model.explains, "explanations", "explain")
    model = snapshot.with_dials(options.dials)
    matrix = snapshot.stack(histories)
    columns, scores = model.recommend(matrix, options.k, **options.filters(snapshot, histories))
    dials = snapshot.dial_values(options.dials)
    results: list[Recommendation] = []
    for row, history in enumerate(histories):
        items = snapshot.catalog.recommended(columns[row].tolist(), scores[row].tolist())
        if options.explain:
            snapshot.catalog.add_reasons(items, matrix[[row]], model, history.times)
        results.append(
            {
                "items": items,
                **dials,
                "k": options.request.k,
                "user": history.user,
                "known": len(history.columns),
                "unknown": list(history.unknown),
                "popular": len(history.columns) == 0,
            }
        )
    return results


# --- paths -----------------------------------------------------------------------------------------------------------


def split_path(snapshot: Snapshot, request: PathRequest) -> tuple[list[list[Dials]], History, ListOptions]:
    """Return the dials of a path in parts, and what the parts share.

    All ξ share one projection, and every item norm costs one.
    """
    dial = PATHS[request.along]
    model = snapshot.require(dial in snapshot.model.dials, dial)
    values: Sequence[float] | None = getattr(request, request.along)
    if values is None:
        low, high = model.xi_interval_
        values = np.linspace(low, high, _PATH_POINTS).tolist() if low < high else [low]
    points: list[Dials] = [{**request.dials, dial: value} for value in values]
    parts = [points] if dial == "xi" else [[point] for point in points]
    options = ListOptions.resolve(snapshot, request, len(points))
    return parts, snapshot.find_history(request.history, request.user), options


def path_part(snapshot: Snapshot, points: Sequence[Dials], history: History, options: ListOptions) -> bytes:
    """Return the lists at some points of a path, as JSON without the brackets around it."""
    matrix, filters = snapshot.stack([history]), options.filters(snapshot, [history])
    values = [snapshot.dial_values(point) for point in points]
    if cast(PathRequest, options.request).along == "xis":
        dials = [Dial(**cast(Any, each)) for each in values]
        lists = snapshot.model.recommend_path(matrix, dials, options.k, **filters)
    else:  # ξ may be left to the model
        lists = [snapshot.with_dials(point).recommend(matrix, options.k, **filters) for point in points]
    return encode(
        [_make_point(snapshot, each, columns[0].tolist()) for each, (columns, _) in zip(values, lists, strict=True)]
    )[1:-1]


def _make_point(snapshot: Snapshot, dials: DialValues, padded: list[int]) -> PathPoint:
    catalog, columns = snapshot.catalog, [column for column in padded if column >= 0]
    count = len(columns)
    return {
        **dials,
        "popularity": sum(catalog.popularity[column] for column in columns) / count if count else None,
        "tail_share": sum(not catalog.in_head[column] for column in columns) / count if count else None,
        "items": [catalog.ids[column] for column in columns],
    }


# --- items -----------------------------------------------------------------------------------------------------------


def explain(snapshot: Snapshot, request: ExplainRequest) -> Explained:
    """Return the part of the score of an item that each item of a history adds."""
    snapshot.require(snapshot.model.explains, "explanations")
    column = snapshot.find_column(request.item)
    model = snapshot.with_dials(request.dials)
    history = snapshot.find_history(request.history, request.user)
    [explanation] = model.explain_all(
        snapshot.stack([history]), [snapshot.catalog.ids[column]], times=snapshot.stack_times([history])
    )
    [reasons] = snapshot.catalog.reasons([explanation])
    return {
        "item": snapshot.catalog.record(column),
        "score": explanation.score,
        "seen": history.has(column),
        **snapshot.dial_values(request.dials),
        "demand": explanation.demand,
        "because": reasons,
    }


def search(snapshot: Snapshot, query: SearchQuery) -> FoundItems:
    """Return the items that match a search."""
    columns = snapshot.catalog.search(query.q)
    return {"items": list(map(snapshot.catalog.record, columns[: query.limit].tolist())), "total": len(columns)}


def find_item(snapshot: Snapshot, item: Id) -> Item:
    """Return one item."""
    return snapshot.catalog.record(snapshot.find_column(item))


def find_similar(snapshot: Snapshot, item: Id, k: int) -> SimilarItems:
    """Return the items most similar to one."""
    column = snapshot.find_column(item)
    snapshot.require(snapshot.model.explains, "similar items")
    return {"item": snapshot.catalog.record(column), "items": snapshot.catalog.similar(column, k)}
