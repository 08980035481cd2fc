"""A run of the search as one page: HTML with everything in it, to look at and to mail."""

from relae.analysis.report._data import (
    DataFacts,
    Difference,
    Figure,
    Fit,
    Item,
    Judged,
    Learning,
    Neighbours,
    Point,
    ReportData,
    Sample,
    Searched,
    Suggestion,
    Trial,
)
from relae.analysis.report._gather import data_facts, fit_facts, neighbours, samples
from relae.analysis.report._page import METRICS, render

__all__ = [
    "METRICS",
    "DataFacts",
    "Difference",
    "Figure",
    "Fit",
    "Item",
    "Judged",
    "Learning",
    "Neighbours",
    "Point",
    "ReportData",
    "Sample",
    "Searched",
    "Suggestion",
    "Trial",
    "data_facts",
    "fit_facts",
    "neighbours",
    "render",
    "samples",
]
