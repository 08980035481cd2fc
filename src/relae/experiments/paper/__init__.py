"""The paper's tables beside ours, cell by cell."""

from relae.experiments.paper._experiment import Cell, PaperExperiment, Row, load_experiment
from relae.experiments.paper._order import introsort, popularity_order
from relae.experiments.paper._printed import MISPRINTS, TABLES, TRAINED, Misprint, parameters, printed
from relae.experiments.paper._reproduce import Reproduction, reproduce

__all__ = [
    "MISPRINTS",
    "TABLES",
    "TRAINED",
    "Cell",
    "Misprint",
    "PaperExperiment",
    "Reproduction",
    "Row",
    "introsort",
    "load_experiment",
    "parameters",
    "popularity_order",
    "printed",
    "reproduce",
]
