"""Interactions: tables of events and the sparse matrix they become."""

from relae._common.table_options import TableKeywords, TableOption, TableOptions, Weighting, option, options_of
from relae.data._assemble import positions_in
from relae.data._demand import FRESH_DAYS, Demand
from relae.data._join import has_amounts, joined_ids, joined_items, joined_titles
from relae.data._lists import Lists, axis_of, read_lists, write_lists
from relae.data._matrix import MatrixLike, SparseMatrix, canonical_matrix, entries_of_rows
from relae.data._scan import has_tables
from relae.data._seen import Dropped, Seen, pattern_of, without_cells
from relae.data._statistics import Spread, Statistics, gini
from relae.data._weights import fading_weights
from relae.data.features import Features, as_features
from relae.data.ids import Ids, decode_texts, encode_texts
from relae.data.interactions import Interactions, InteractionsLike, as_interactions

__all__ = [
    "FRESH_DAYS",
    "Demand",
    "Dropped",
    "Features",
    "Ids",
    "Interactions",
    "InteractionsLike",
    "Lists",
    "MatrixLike",
    "Seen",
    "SparseMatrix",
    "Spread",
    "Statistics",
    "TableKeywords",
    "TableOption",
    "TableOptions",
    "Weighting",
    "as_features",
    "as_interactions",
    "axis_of",
    "canonical_matrix",
    "decode_texts",
    "encode_texts",
    "entries_of_rows",
    "fading_weights",
    "gini",
    "has_amounts",
    "has_tables",
    "joined_ids",
    "joined_items",
    "joined_titles",
    "option",
    "options_of",
    "pattern_of",
    "positions_in",
    "read_lists",
    "without_cells",
    "write_lists",
]
