"""The paper's tables beside ours, cell by cell."""

from relae.reproduce._run import Cell, Experiment, Row, experiment

__all__ = ["Cell", "Experiment", "Row", "experiment"]
