"""From a question to its answer, on one snapshot: all that is worked off the event loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from relae.catalog import Id, Item
from relae.models import Dial
from relae.serve._answers import (
    Dials as DialValues,
)
from relae.serve._answers import (
    Explained,
    FoundItems,
    PathPoint,
    Recommendation,
    SimilarItems,
    SingleRecommendation,
)
from relae.serve._problem import Problem
from relae.serve._questions import BatchQuestion, Dials, ExplainQuestion, PathQuestion, RecommendQuestion, Wish
from relae.serve._snapshot import Snapshot, Taste

_PATH_POINTS = 21  # ξ of a path if none are given
# A batch is worked off in turns of so much, so that its memory is bounded and other requests get theirs in between.
_TURN_HISTORIES, _TURN_ITEMS = 16, 5_000


def encode(answer: Any) -> bytes:
    """Return an answer as JSON; what is not a number is null."""
    return to_json(answer, inf_nan_mode="null")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of recommendations on one snapshot, looked up once per request, however many lists it asks for."""

    wish: Wish
    k: int  # at most the items of the model
    allow: NDArray[np.int64] | None
    deny: NDArray[np.int64] | None

    @classmethod
    def of(cls, snapshot: Snapshot, wish: Wish, lists: int = 1) -> "Options":
        """Look up the ids of a wish for so many lists, and refuse what would cost too much."""
        k = min(wish.k, len(snapshot.catalog.ids))
        limits = snapshot.description["limits"]
        for most, what, field in (
            (limits["results"], "an answer has at most", "k"),
            (limits["explained"] if wish.explain else lists * k, "with explain, an answer has at most", "explain"),
        ):
            if lists * k > most:
                raise Problem(
                    413,
                    f"{lists:,} lists of {k:,} are {lists * k:,} items, and {what} {most:,}: ask for fewer at a time",
                    field,
                )
        return cls(wish, k, snapshot.columns(wish.allow), snapshot.columns(wish.deny))

    def filters(self, snapshot: Snapshot, tastes: Sequence[Taste]) -> dict[str, Any]:
        """Return what `recommend` takes beside histories and k."""
        seen = snapshot.seen(tastes) if self.wish.exclude_seen else None
        return {"exclude_seen": self.wish.exclude_seen, "seen": seen, "allow": self.allow, "deny": self.deny}


def recommend(snapshot: Snapshot, question: RecommendQuestion) -> SingleRecommendation:
    """Answer with one list."""
    taste = snapshot.taste(question.who)
    [result] = _lists(snapshot, [taste], Options.of(snapshot, question.wish))
    return {**result, "suggestions": snapshot.catalog.suggestions(taste.unknown)}


def batch_turns(snapshot: Snapshot, question: BatchQuestion) -> tuple[list[list[Taste]], Options]:
    """Divide the histories of a batch, in their order, and look up the options that they share."""
    options = Options.of(snapshot, question.wish, len(question.who))
    turns: list[list[Taste]] = []
    room = 0
    for at, who in enumerate(question.who):
        try:
            taste = snapshot.taste(who)
        except Problem as problem:
            raise Problem(problem.status, f"users[{at}]: {problem.message}", "users") from None
        if not turns or room < len(taste.columns) or len(turns[-1]) == _TURN_HISTORIES:
            turns.append([])
            room = max(_TURN_ITEMS, len(taste.columns))
        turns[-1].append(taste)
        room -= len(taste.columns)
    return turns, options


def batch_turn(snapshot: Snapshot, tastes: Sequence[Taste], options: Options) -> bytes:
    """Answer with some lists of a batch, as JSON without the brackets around it."""
    return encode(_lists(snapshot, tastes, options))[1:-1]


def path_turns(snapshot: Snapshot, question: PathQuestion) -> tuple[list[list[Dials]], Taste, Options]:
    """Return the dials of a path in turns, and what the turns share.

    All ξ share one projection, and every item norm costs one.
    """
    low, high = snapshot.needs("xi").xi_interval_
    at = question.wish.dials
    if question.item_norms is not None:
        turns: list[list[Dials]] = [[{**at, "item_norm": item_norm}] for item_norm in question.item_norms]
    else:
        spread = np.linspace(low, high, _PATH_POINTS).tolist() if low < high else [low]
        turns = [[{**at, "xi": xi} for xi in question.xis or spread]]
    options = Options.of(snapshot, question.wish, sum(map(len, turns)))
    return turns, snapshot.taste(question.who), options


def path_turn(snapshot: Snapshot, dials: Sequence[Dials], along_xi: bool, taste: Taste, options: Options) -> bytes:
    """Answer with the lists at some dials, as JSON without the brackets around it."""
    matrix, filters = snapshot.matrix([taste]), options.filters(snapshot, [taste])
    places = [snapshot.standing(each) for each in dials]
    if along_xi:
        path = [Dial(**cast(Any, place)) for place in places]
        lists = snapshot.needs("xi").recommend_path(matrix, path, options.k, **filters)
    else:  # ξ may be left to the model
        lists = [snapshot.at(each).recommend(matrix, options.k, **filters) for each in dials]
    return encode([_point(snapshot, at, ids[0].tolist()) for at, (ids, _) in zip(places, lists, strict=True)])[1:-1]


def explain(snapshot: Snapshot, question: ExplainQuestion) -> Explained:
    """Answer with what each item of a history adds to the score of an item."""
    snapshot.needs("explanations")
    column = snapshot.column(question.item)
    model = cast(Any, snapshot.at(question.dials))
    taste = snapshot.taste(question.who)
    [explanation] = model.explain_all(snapshot.matrix([taste]), [snapshot.catalog.ids[column]])
    [because] = snapshot.catalog.reasons([explanation])
    return {
        "item": snapshot.catalog.record(column),
        "score": explanation.score,
        "seen": taste.has_had(column),
        **snapshot.standing(question.dials),
        "because": because,
    }


def search(snapshot: Snapshot, query: str, limit: int) -> FoundItems:
    """Answer with the items that a search finds."""
    found = snapshot.catalog.search(query)
    return {"items": [snapshot.catalog.record(column) for column in found[:limit].tolist()], "total": len(found)}


def item(snapshot: Snapshot, name: Id) -> Item:
    """Answer with one item."""
    return snapshot.catalog.record(snapshot.column(name))


def similar(snapshot: Snapshot, name: Id, k: int) -> SimilarItems:
    """Answer with the items most similar to one."""
    column = snapshot.column(name)
    snapshot.needs("similar items")
    return {"item": snapshot.catalog.record(column), "items": snapshot.catalog.similar(column, k)}


# --- lists ---------------------------------------------------------------------------------------------------------


def _lists(snapshot: Snapshot, tastes: Sequence[Taste], options: Options) -> list[Recommendation]:
    wish = options.wish
    if wish.explain:
        snapshot.needs("explanations", "explain")
    model = snapshot.at(wish.dials)
    matrix = snapshot.matrix(tastes)
    ids, scores = model.recommend(matrix, options.k, **options.filters(snapshot, tastes))
    dials = snapshot.standing(wish.dials)
    results: list[Recommendation] = []
    for row, taste in enumerate(tastes):
        items = snapshot.catalog.recommended(ids[row].tolist(), scores[row].tolist())
        if wish.explain:
            snapshot.catalog.add_reasons(items, matrix[[row]], model)
        results.append(
            {
                "items": items,
                **dials,
                "k": wish.k,
                "user": taste.user,
                "known": len(taste.columns),
                "unknown": list(taste.unknown),
                "popular": len(taste.columns) == 0,
            }
        )
    return results


def _point(snapshot: Snapshot, dials: DialValues, padded: list[int]) -> PathPoint:
    columns = [column for column in padded if column >= 0]
    count = len(columns)
    return {
        **dials,
        "popularity": sum(snapshot.catalog.popularity[column] for column in columns) / count if count else None,
        "tail_share": sum(not snapshot.catalog.in_head[column] for column in columns) / count if count else None,
        "items": [snapshot.catalog.ids[column] for column in columns],
    }
