"""Evaluation of rankings: splits that do not leak, metrics with one value per user, results that can be compared."""

from relae.evaluation._evaluate import evaluate
from relae.evaluation.groups import groups_without, head_items, propensities
from relae.evaluation.leave_one_out import leave_one_out
from relae.evaluation.metrics import DEFAULT_METRICS, METRICS, Scorer
from relae.evaluation.paper import StrongLists, strong_lists
from relae.evaluation.result import Comparison, Difference, Estimate, Evaluation, Evaluations
from relae.evaluation.splits import (
    Split,
    end_at_zero,
    find_cut,
    follow,
    given_split,
    hold_out_items,
    hold_out_new_items,
    hold_out_users,
    leave_last_out,
    paper_splits,
    split_by_time,
)

__all__ = [
    "DEFAULT_METRICS",
    "METRICS",
    "Comparison",
    "Difference",
    "Estimate",
    "Evaluation",
    "Evaluations",
    "Scorer",
    "Split",
    "StrongLists",
    "end_at_zero",
    "evaluate",
    "find_cut",
    "follow",
    "given_split",
    "groups_without",
    "head_items",
    "hold_out_items",
    "hold_out_new_items",
    "hold_out_users",
    "leave_last_out",
    "leave_one_out",
    "paper_splits",
    "propensities",
    "split_by_time",
    "strong_lists",
]
