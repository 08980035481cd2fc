"""Records of items, as JSON has them on the command line and over HTTP."""

from typing import Literal, NotRequired, TypedDict

Id = int | str

IN_DEMAND = "in demand now"
"""The reason that the recent demand for an item is."""


class Item(TypedDict):
    """An item: its popularity is its number of users in the training data; the head is the most popular fifth."""

    item: Id
    title: str | None
    popularity: int
    group: Literal["head", "tail"]


class Reason(TypedDict):
    """The part of a score that an item of the history adds, and its share of all that is added."""

    item: Id
    title: str | None
    share: float
    contribution: float


class RecommendedItem(Item):
    """An item of a list; `because` is there only on request.

    With it comes the share of the score that the recent demand for the item adds, if it adds any.
    """

    score: float
    because: NotRequired[list[Reason]]
    demand_share: NotRequired[float]


class SimilarItem(Item):
    """An item, and its partial correlation with another one."""

    similarity: float


class Suggestion(TypedDict):
    """Items that may be meant by an id that the model does not know."""

    unknown: Id
    items: list[Item]
