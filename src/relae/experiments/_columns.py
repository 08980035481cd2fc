"""Options of a table: its columns, the weights of its interactions, and the features of its items."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np

from relae._common.table_options import TableKeywords, TableOptions, option, options_of
from relae.data import Features, Interactions
from relae.errors import DataError, Option, Text

# The options that also apply to a table of histories: its columns, and the weight of a row.
HISTORY_OPTIONS = (
    *(name for name, option in options_of(TableOptions).items() if option.by_row),
    *("timestamp", "low_ratings"),
)
LOW_RATINGS = ("seen", "ignored")
Overlap = Literal["refuse", "drop"]


class ColumnKeywords(TableKeywords, total=False):
    """The types of `Columns`, for type checkers: keywords of `tune` and `compare`."""

    low_ratings: str | None
    features: Any
    feature_columns: str | Sequence[str] | None
    separator: Sequence[str] | Mapping[str, str]
    feature_weight: float
    overlap: Overlap
    ordered: bool


@dataclass(frozen=True)
class Columns(TableOptions):
    """Options of a table: its columns, the weights of its interactions, and the features of its items.

    `TableOptions` declares those of `Interactions.read`; the others are declared here, each with its help text. In
    Python, `feature_columns` may also be a list, and `separator` a mapping such as `{"genres": "|"}`.
    """

    low_ratings: str | None = field(
        default=None,
        metadata=option(
            str,
            "What a rating below `min_rating` means. seen: the user knows the item, so it is never recommended to "
            "that user, and an evaluation leaves it out for that user. ignored: as if the rating did not exist. seen "
            "if not given, but ignored where models are evaluated on a benchmark, as in the published protocols.",
        ),
    )
    features: Any = field(
        default=None,
        metadata=option(
            Path,
            "A table with a row per item; the column that `item` names has the ids. The other columns are features "
            "for the linear models and contentknn, which can then recommend items without users.",
        ),
    )
    feature_columns: str | Sequence[str] | None = field(
        default=None,
        metadata=option(str, "The columns of `features` to use, separated by commas; all useful ones if not given."),
    )
    separator: Sequence[str] | Mapping[str, str] = field(
        default=(),
        metadata=option(
            list[str],
            "The text between several values in a column of `features`, such as 'genres=|'; can be repeated.",
            metavar="COLUMN=TEXT",
        ),
    )
    feature_weight: float = field(
        default=1.0,
        metadata=option(
            float,
            "How much a feature counts compared with a user; 1 if not given, 0 leaves features out. It is not tuned: "
            "try several values.",
        ),
    )
    overlap: Overlap = field(
        default="refuse",
        metadata=option(
            str,
            "For a folder with train.txt and test.txt, what to do if a user has the same item in both: refuse the "
            "folder (if not given), or drop the item from the test.",
        ),
    )
    ordered: bool = field(
        default=False,
        metadata=option(
            bool,
            "For a folder with train.txt and test.txt: the items of each line are in the order of time, the latest "
            "last. Models can then use the order, and validation has the latest items of each user.",
        ),
    )

    def __post_init__(self) -> None:
        pairs = self.separator
        if isinstance(pairs, Mapping):
            pairs = [f"{column}={text}" for column, text in pairs.items()]
        object.__setattr__(self, "separator", tuple(pairs))
        if self.feature_columns is not None and not isinstance(self.feature_columns, str):
            object.__setattr__(self, "feature_columns", ",".join(self.feature_columns))
        if not 0 <= self.feature_weight < math.inf:
            raise DataError(
                Option("feature_weight"), f" must be a finite number of at least 0, got {self.feature_weight!r}"
            )
        self._check_choice("low_ratings", LOW_RATINGS)
        self._check_choice("overlap", get_args(Overlap))
        unused = [] if self.features is not None else self.changed("feature_columns", "separator", "feature_weight")
        if unused:
            features = Option("features", "FILE", python="features")
            raise DataError(Text.join(", ", unused), " is for ", features, ", which is not given: leave it out")

    def _check_choice(self, name: str, values: Sequence[str]) -> None:
        value = getattr(self, name)
        if value is not None and value not in values:
            raise DataError(Option(name), f" is one of {', '.join(values)}, got {value!r}")

    def changed(self, *names: str) -> list[Option]:
        """Return the options among `names` whose value is not the default."""
        return [Option(name) for name in self.changes() if name in names]

    def changes(self) -> dict[str, Any]:
        """Return the values of all options whose value is not the default."""
        defaults = {name: declared.default for name, declared in Columns.__dataclass_fields__.items()}
        return {name: value for name, value in vars(self).items() if not _is_equal(value, defaults[name])}

    def check_weighting(self) -> Self:
        """Return these columns for new data of a saved model; raise a DataError if `weight` has no `weighting`."""
        if self.weight is not None and self.weighting is None:
            raise DataError(
                Option("weight", self.weight),
                " beside a model needs its ",
                Option("weighting"),
                ": the one that the model was fitted with, linear, sqrt, log or binary",
            )
        return self

    def record(self) -> dict[str, Any]:
        """Return the options for JSON; a table in memory becomes None."""
        values = {name: None if name in self._in_memory() else value for name, value in vars(self).items()}
        return {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in values.items()}

    def check_paths(self) -> None:
        """Raise a DataError if a table is in memory, because a run folder can only record paths."""
        for name in self._in_memory():
            raise DataError(Option(name), " is in memory, and a run keeps only paths: write it to a file first")

    def _in_memory(self) -> list[str]:
        """Return the options whose value is a table in memory, not a path."""
        tables = {"titles": self.titles, "features": self.features}
        return [name for name, table in tables.items() if not isinstance(table, (str, os.PathLike, type(None)))]

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the options that `record` has written."""
        paths = {name: Path(record[name]) for name in ("titles", "features") if record.get(name) is not None}
        return cls(**{**record, **paths})

    def apply(self, data: Interactions) -> Interactions:
        """Return interactions with the features; items that only `features` has are added."""
        if self.features is None:
            return data
        names = self.feature_columns
        columns = [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else None
        separators = dict(_parse_separator(pair) for pair in self.separator)
        featured = data.with_features(self.features, item=self.item, columns=columns, separators=separators)
        # With a weight of 0 the features go, but the added items stay.
        return featured.replace(features=None) if self.feature_weight == 0 else featured

    def apply_weighted(self, data: Interactions) -> Interactions:
        """Return the same as `apply`, with the features F scaled to √feature_weight · F.

        So they count `feature_weight` in a fit, where the rows Fᵀ are appended to those of the users.
        """
        featured = self.apply(data)
        if featured.features is None or self.feature_weight == 1:
            return featured
        weighted = Features(np.sqrt(self.feature_weight) * featured.features.matrix, featured.features.names)
        return featured.replace(features=weighted)


def _is_equal(value: Any, default: Any) -> bool:
    """Return whether an option has its default value; a data frame, which cannot be compared, never has."""
    return value is default or (isinstance(value, (str, float, int, tuple)) and value == default)


def _parse_separator(text: str) -> tuple[str, str]:
    column, equals, separator = text.partition("=")
    if not (equals and column and separator):
        raise DataError(Option("separator"), f" takes COLUMN=TEXT, such as 'genres=|', got {text!r}")
    return column, separator
