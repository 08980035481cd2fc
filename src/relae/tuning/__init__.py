"""Find parameters: l2, dropout and ξ with one inverse for each (l2, dropout), and those of any other model."""

from relae.tuning._box import BoxSearch
from relae.tuning._journal import Journal, read_trial
from relae.tuning._judge import Gap, Judge, gap
from relae.tuning._model import tune_model
from relae.tuning._model_result import ModelTrial, ModelTuning
from relae.tuning._result import Choice, Constraint, Point, Trial, Tuning, check_choice
from relae.tuning._search import Auto, GridSearch, Search
from relae.tuning._training import Epoch, Training, check_users
from relae.tuning._tune import planned, tune

__all__ = [
    "Auto",
    "BoxSearch",
    "Choice",
    "Constraint",
    "Epoch",
    "Gap",
    "GridSearch",
    "Journal",
    "Judge",
    "ModelTrial",
    "ModelTuning",
    "Point",
    "Search",
    "Training",
    "Trial",
    "Tuning",
    "check_choice",
    "check_users",
    "gap",
    "planned",
    "read_trial",
    "tune",
    "tune_model",
]
