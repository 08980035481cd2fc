"""From a question to its answer, on one snapshot: all that is worked off the event loop."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from pydantic_core import to_json

from relae.models import Dial, Explanation
from relae.serve._answers import (
    Because,
    Explained,
    FoundItems,
    Id,
    Item,
    PathPoint,
    Recommendation,
    RecommendedItem,
    SimilarItem,
    SimilarItems,
)
from relae.serve._problem import Problem
from relae.serve._questions import BatchQuestion, Dials, ExplainQuestion, PathQuestion, RecommendQuestion, Wish
from relae.serve._snapshot import Snapshot, Taste, told

_PATH_POINTS = 21  # ξ of a path if none are given
_REASONS = 3  # items of a history that a recommended item is because of
# A batch is worked off in turns of so much, so that its memory is bounded and other requests get theirs in between.
_TURN_HISTORIES, _TURN_ITEMS = 16, 5_000
_EXPLAINED_AT_ONCE = 100


def encode(answer: Any) -> bytes:
    """Return an answer as JSON; what is not a number is null."""
    return to_json(answer, inf_nan_mode="null")


def recommend(snapshot: Snapshot, question: RecommendQuestion) -> Recommendation:
    """Answer with one list."""
    [result] = _lists(snapshot, [snapshot.taste(question.who)], question.wish)
    return result


def turns(snapshot: Snapshot, question: BatchQuestion) -> list[list[Taste]]:
    """Divide the histories of a batch, in their order."""
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
    return turns


def recommend_turn(snapshot: Snapshot, tastes: Sequence[Taste], wish: Wish) -> bytes:
    """Answer with some lists of a batch, as JSON without the brackets around it."""
    return encode(_lists(snapshot, tastes, wish))[1:-1]


def path_turns(snapshot: Snapshot, question: PathQuestion) -> list[list[Dials]]:
    """Return the dials of a path, in turns: all ξ share one projection, and every item norm costs one."""
    low, high = snapshot.needs("xi").xi_interval_
    at = question.wish.dials
    if question.item_norms is not None:
        return [[at._replace(item_norm=item_norm)] for item_norm in question.item_norms]
    spread = np.linspace(low, high, _PATH_POINTS).tolist() if low < high else [low]
    return [[at._replace(xi=xi) for xi in question.xis or spread]]


def path_turn(snapshot: Snapshot, dials: Sequence[Dials], question: PathQuestion) -> bytes:
    """Answer with the lists at some dials, as JSON without the brackets around it."""
    matrix, wish = snapshot.matrix([snapshot.taste(question.who)]), question.wish
    options: dict[str, Any] = {
        "exclude_seen": wish.exclude_seen,
        "allow": snapshot.columns(wish.allow),
        "deny": snapshot.columns(wish.deny),
    }
    places = [snapshot.standing(each) for each in dials]
    if question.item_norms is None:
        path = [Dial(*cast(Any, place)) for place in places]
        lists = snapshot.needs("xi").recommend_path(matrix, path, wish.k, **options)
    else:  # ξ may be left to the model
        lists = [snapshot.at(each).recommend(matrix, wish.k, **options) for each in dials]
    return encode([_point(snapshot, at, ids[0].tolist()) for at, (ids, _) in zip(places, lists, strict=True)])[1:-1]


def explain(snapshot: Snapshot, question: ExplainQuestion) -> Explained:
    """Answer with what each item of a history adds to the score of an item."""
    snapshot.needs("explanations")
    column = snapshot.column(question.item)
    model = cast(Any, snapshot.at(question.dials))
    [explanation] = model.explain_all(snapshot.matrix([snapshot.taste(question.who)]), [snapshot.ids[column]])
    [because] = _because(snapshot, [explanation], None)
    return {
        "item": snapshot.item(column),
        "score": explanation.score,
        **told(snapshot.standing(question.dials)),
        "because": because,
    }


def search(snapshot: Snapshot, query: str, limit: int) -> FoundItems:
    """Answer with the items that a search finds."""
    found = snapshot.search(query)
    return {"items": [snapshot.item(column) for column in found[:limit].tolist()], "total": len(found)}


def item(snapshot: Snapshot, name: Id) -> Item:
    """Answer with one item."""
    return snapshot.item(snapshot.column(name))


def similar(snapshot: Snapshot, name: Id, k: int) -> SimilarItems:
    """Answer with the items most similar to one."""
    column = snapshot.column(name)
    ids, scores = snapshot.needs("similar items").similar_items(snapshot.ids[column], k)
    columns = snapshot.model.items_.positions([found for found in ids if found is not None])
    items: list[SimilarItem] = [
        {**snapshot.item(other), "similarity": score}
        for other, score in zip(columns.tolist(), scores[: len(columns)].tolist(), strict=True)
    ]
    return {"item": snapshot.item(column), "items": items}


# --- lists ---------------------------------------------------------------------------------------------------------


def _lists(snapshot: Snapshot, tastes: Sequence[Taste], wish: Wish) -> list[Recommendation]:
    if wish.explain:
        snapshot.needs("explanations", "explain")
    model = snapshot.at(wish.dials)
    matrix = snapshot.matrix(tastes)
    ids, scores = model.recommend(
        matrix,
        wish.k,
        exclude_seen=wish.exclude_seen,
        allow=cast(Any, snapshot.columns(wish.allow)),
        deny=cast(Any, snapshot.columns(wish.deny)),
    )
    dials = told(snapshot.standing(wish.dials))
    results: list[Recommendation] = []
    for row, taste in enumerate(tastes):
        columns = [column for column in ids[row].tolist() if column >= 0]
        items: list[RecommendedItem] = [
            cast(RecommendedItem, {**snapshot.item(column), "score": score})
            for column, score in zip(columns, scores[row].tolist(), strict=False)
        ]
        if wish.explain:
            _add_reasons(snapshot, model, matrix[[row]], items)
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


def _add_reasons(snapshot: Snapshot, model: Any, history: Any, items: list[RecommendedItem]) -> None:
    for start in range(0, len(items), _EXPLAINED_AT_ONCE):
        some = items[start : start + _EXPLAINED_AT_ONCE]
        explanations = model.explain_all(history, [entry["item"] for entry in some])
        for entry, because in zip(some, _because(snapshot, explanations, _REASONS), strict=True):
            entry["because"] = because


def _because(snapshot: Snapshot, explanations: Sequence[Explanation], most: int | None) -> list[list[Because]]:
    """The reasons of each explanation: all of them, or the largest that are positive."""
    answer: list[list[Because]] = []
    for explanation in explanations:
        names, shares = explanation.items[:most], explanation.shares[:most].tolist()
        columns = snapshot.model.items_.positions(names).tolist()
        answer.append(
            [
                {"item": name, "title": snapshot.title(column), "share": share, "contribution": contribution}
                for name, column, share, contribution in zip(
                    names, columns, shares, explanation.contributions[:most].tolist(), strict=True
                )
                if most is None or contribution > 0
            ]
        )
    return answer


def _point(snapshot: Snapshot, dials: Dials, padded: list[int]) -> PathPoint:
    columns = [column for column in padded if column >= 0]
    count = len(columns)
    return {
        **told(dials),
        "popularity": sum(snapshot.popularity[column] for column in columns) / count if count else None,
        "tail_share": sum(not snapshot.is_head[column] for column in columns) / count if count else None,
        "items": [snapshot.ids[column] for column in columns],
    }
