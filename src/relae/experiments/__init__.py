"""Experiments on a data set: read and divide it, search parameters, compare models, and keep the run in a folder."""

from relae.experiments._columns import HISTORY_OPTIONS, ColumnKeywords, Columns
from relae.experiments._compare import compare
from relae.experiments._comparison import Comparison, list_models
from relae.experiments._comparison_table import METRICS, ComparisonRow, ComparisonTable, LeftOut, holm
from relae.experiments._data import (
    SPLITS,
    DataSource,
    DividedData,
    Division,
    describe_low_ratings,
    divide_data,
    matrix_shape,
    read_data,
)
from relae.experiments._models import choose_model, parameter_defaults
from relae.experiments._run import CHOSEN, DEFAULTS, TEST_METRICS, ModelResult, Run, read_point
from relae.experiments._tune import judge_and_save, tune
from relae.experiments._wording import PYTHON, Wording
from relae.experiments._yardsticks import POPULARITY, TRENDING, list_yardsticks, make_yardsticks

__all__ = [
    "CHOSEN",
    "DEFAULTS",
    "HISTORY_OPTIONS",
    "METRICS",
    "POPULARITY",
    "PYTHON",
    "SPLITS",
    "TEST_METRICS",
    "TRENDING",
    "ColumnKeywords",
    "Columns",
    "Comparison",
    "ComparisonRow",
    "ComparisonTable",
    "DataSource",
    "DividedData",
    "Division",
    "LeftOut",
    "ModelResult",
    "Run",
    "Wording",
    "choose_model",
    "compare",
    "describe_low_ratings",
    "divide_data",
    "holm",
    "judge_and_save",
    "list_models",
    "list_yardsticks",
    "make_yardsticks",
    "matrix_shape",
    "parameter_defaults",
    "read_data",
    "read_point",
    "tune",
]
