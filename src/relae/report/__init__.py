"""A search as one page: HTML with everything in it, to look at and to mail."""

from relae.report._facts import DataFacts, FitFacts, describe_data, describe_fit
from relae.report._page import render
from relae.report._report import Report, Searched
from relae.report._samples import Neighbours, Pick, Sample, find_neighbours, make_samples
from relae.report._write import SAMPLES, make_report, write_report

__all__ = [
    "SAMPLES",
    "DataFacts",
    "FitFacts",
    "Neighbours",
    "Pick",
    "Report",
    "Sample",
    "Searched",
    "describe_data",
    "describe_fit",
    "find_neighbours",
    "make_report",
    "make_samples",
    "render",
    "write_report",
]
