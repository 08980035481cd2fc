"""Find l2, dropout and ξ: one inverse for each (l2, dropout), and every ξ for the price of ranking."""

from relae.tuning._journal import Journal
from relae.tuning._result import Constraint, Point, Trial, Tuning
from relae.tuning._search import Auto, GridSearch, Search
from relae.tuning._tune import tune

__all__ = ["Auto", "Constraint", "GridSearch", "Journal", "Point", "Search", "Trial", "Tuning", "tune"]
