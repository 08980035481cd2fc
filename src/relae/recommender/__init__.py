"""The base of every recommender: parameters, a fit, histories in and ranked items out."""

from relae.recommender._base import HistoryRecommender, Recommender, SimpleRecommender
from relae.recommender._estimator import Estimator
from relae.recommender._histories import Histories, HistoriesLike, History, RawHistories, encode
from relae.recommender._parameters import Parameter, search_ranges
from relae.recommender._sequences import SequenceRecommender, latest_ranks, weighted, without_faded
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
    "SequenceRecommender",
    "SimpleRecommender",
    "State",
    "encode",
    "latest_ranks",
    "number",
    "search_ranges",
    "shortened",
    "text",
    "weighted",
    "whole",
    "without_faded",
]
