"""How good a ranking is: held-out users, and metrics with one value per user."""

from relae.evaluation.metrics import Summary, find_hits, ndcg, recall, summarize
from relae.evaluation.splits import HeldOut, head_items, hold_out_users

__all__ = ["HeldOut", "Summary", "find_hits", "head_items", "hold_out_users", "ndcg", "recall", "summarize"]
