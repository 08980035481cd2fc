"""Interactions: tables of events and the sparse matrix they become; and the benchmarks of the field."""

from relae.data import datasets
from relae.data._lists import Lists, axis_of, read_lists, write_lists
from relae.data._matrix import canonical_matrix
from relae.data._seen import Dropped, Seen, pattern_of, without_cells
from relae.data._weights import Weighting, fading_weights
from relae.data.datasets import online_retail
from relae.data.features import Features, as_features
from relae.data.ids import Ids, decode_texts, encode_texts
from relae.data.interactions import Interactions, gini

__all__ = [
    "Dropped",
    "Features",
    "Ids",
    "Interactions",
    "Lists",
    "Seen",
    "Weighting",
    "as_features",
    "axis_of",
    "canonical_matrix",
    "datasets",
    "decode_texts",
    "encode_texts",
    "fading_weights",
    "gini",
    "online_retail",
    "pattern_of",
    "read_lists",
    "without_cells",
    "write_lists",
]
