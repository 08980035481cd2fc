"""Find the parameters of a model by validation users: one fit for each setting, and every dial from the same fit."""

from relae.tuning._box import BoxSearch
from relae.tuning._family import (
    BASES,
    MEMBERS,
    describe,
    ends,
    linear_model,
    linear_space,
    paper_grid,
    searched_names,
    symbol,
)
from relae.tuning._journal import Journal, read_journal
from relae.tuning._judge import Gap, Judge, gap
from relae.tuning._result import Choice, Tuning, check_choice, with_epochs
from relae.tuning._search import Auto, Axis, GridSearch, Search, Space
from relae.tuning._training import Epoch, Training, check_users
from relae.tuning._trial import Constraint, Point, Trial
from relae.tuning._tune import tune

__all__ = [
    "BASES",
    "MEMBERS",
    "Auto",
    "Axis",
    "BoxSearch",
    "Choice",
    "Constraint",
    "Epoch",
    "Gap",
    "GridSearch",
    "Journal",
    "Judge",
    "Point",
    "Search",
    "Space",
    "Training",
    "Trial",
    "Tuning",
    "check_choice",
    "check_users",
    "describe",
    "ends",
    "gap",
    "linear_model",
    "linear_space",
    "paper_grid",
    "read_journal",
    "searched_names",
    "symbol",
    "tune",
    "with_epochs",
]
