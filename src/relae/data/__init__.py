"""Interactions: tables of events and the sparse matrix they become."""

from relae.data._matrix import canonical_matrix
from relae.data.datasets import online_retail
from relae.data.ids import Ids
from relae.data.interactions import Interactions

__all__ = ["Ids", "Interactions", "canonical_matrix", "online_retail"]
