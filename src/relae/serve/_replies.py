"""From a question to its answer, on one snapshot: all that is worked off the event loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
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
    SingleRecommendation,
    Suggestion,
)
from relae.serve._answers import (
    Dials as DialValues,
)
from relae.serve._problem import Problem
from relae.serve._questions import BatchQuestion, Dials, ExplainQuestion, PathQuestion, RecommendQuestion, Wish
from relae.serve._snapshot import Snapshot, Taste

_PATH_POINTS = 21  # ξ of a path if none are given
_REASONS = 3  # items of a history that a recommended item is because of
# A batch is worked off in turns of so much, so that its memory is bounded and other requests get theirs in between.
_TURN_HISTORIES, _TURN_ITEMS = 16, 5_000
_EXPLAINED_AT_ONCE = 100
_SUGGESTED = 3  # unknown ids of a history that are looked for; each costs a search


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
        k = min(wish.k, len(snapshot.ids))
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
    return {**result, "suggestions": _suggestions(snapshot, taste.unknown[:_SUGGESTED])}


def _suggestions(snapshot: Snapshot, unknown: Sequence[Id]) -> list[Suggestion]:
    """Return what may be meant by unknown ids, without those of which nothing is known."""
    meant = ((stranger, [snapshot.item(column) for column in snapshot.meant(stranger)]) for stranger in unknown)
    return [{"unknown": stranger, "items": items} for stranger, items in meant if items]


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
    [explanation] = model.explain_all(snapshot.matrix([taste]), [snapshot.ids[column]])
    [because] = _because(snapshot, [explanation], None)
    return {
        "item": snapshot.item(column),
        "score": explanation.score,
        "seen": taste.has_had(column),
        **snapshot.standing(question.dials),
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
    named = [explanation.items[:most] for explanation in explanations]
    columns = iter(snapshot.model.items_.positions(list(chain.from_iterable(named))).tolist())
    return [
        [
            {"item": name, "title": snapshot.title(column), "share": share, "contribution": contribution}
            for name, column, share, contribution in zip(
                names,
                columns,  # each list takes as many as it has names, which must come first for that
                explanation.shares[:most].tolist(),
                explanation.contributions[:most].tolist(),
                strict=False,
            )
            if most is None or contribution > 0
        ]
        for names, explanation in zip(named, explanations, strict=True)
    ]


def _point(snapshot: Snapshot, dials: DialValues, padded: list[int]) -> PathPoint:
    columns = [column for column in padded if column >= 0]
    count = len(columns)
    return {
        **dials,
        "popularity": sum(snapshot.popularity[column] for column in columns) / count if count else None,
        "tail_share": sum(not snapshot.is_head[column] for column in columns) / count if count else None,
        "items": [snapshot.ids[column] for column in columns],
    }
