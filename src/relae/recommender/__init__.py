"""The base of every recommender: parameters, a fit, histories in and ranked items out."""

from relae.recommender._base import HistoryRecommender, Recommender, SimpleRecommender
from relae.recommender._estimator import Estimator
from relae.recommender._histories import Histories, HistoriesLike, History, RawHistories, encode
from relae.recommender._parameters import Parameter, search_ranges
from relae.recommender._space import Range
from relae.recommender._state import State, number, shortened, text, whole

__all__ = [
    "Estimator",
    "Histories",
    "HistoriesLike",
    "History",
    "HistoryRecommender",
    "Parameter",
    "Range",
    "RawHistories",
    "Recommender",
    "SimpleRecommender",
    "State",
    "encode",
    "number",
    "search_ranges",
    "shortened",
    "text",
    "whole",
]
