"""The items of a model as people see them: one record per item, reasons, and the search by words."""

from relae.catalog._items import Catalog
from relae.catalog._records import IN_DEMAND, Id, Item, Reason, RecommendedItem, SimilarItem, Suggestion
from relae.catalog._search import MAX_QUERY, MAX_WORDS, TitleIndex, fold

__all__ = [
    "IN_DEMAND",
    "MAX_QUERY",
    "MAX_WORDS",
    "Catalog",
    "Id",
    "Item",
    "Reason",
    "RecommendedItem",
    "SimilarItem",
    "Suggestion",
    "TitleIndex",
    "fold",
]
