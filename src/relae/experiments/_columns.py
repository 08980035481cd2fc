"""The columns of a table, the weights of its interactions, and the features of its items."""

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

# The options of a table of histories: columns, and what a row of it counts.
HISTORY_OPTIONS = (
    *(name for name, option in options_of(TableOptions).items() if option.by_row),
    *("timestamp", "low_ratings", "half_life"),
)
LOW_RATINGS = ("seen", "ignored")
Overlap = Literal["refuse", "drop"]


class ColumnKeywords(TableKeywords, total=False):
    """The types of `Columns`, for type checkers: keywords of `tune` and `compare`."""

    low_ratings: str | None
    half_life: float | None
    features: Any
    feature_columns: str | Sequence[str] | None
    separator: Sequence[str] | Mapping[str, str]
    feature_weight: float
    overlap: Overlap


@dataclass(frozen=True)
class Columns(TableOptions):
    """The columns of a table, the weights of its interactions, and the features of its items.

    The first parameters are those of `Interactions.read`; the help of each other one is beside it. In Python,
    `feature_columns` may also be a list, and `separator` a mapping such as `{"genres": "|"}`.
    """

    low_ratings: str | None = field(
        default=None,
        metadata=option(
            str,
            "What a lower rating tells: seen (the user has had the item, so that it is never recommended to that "
            "user, and is neither to be found nor a candidate where models are judged) or ignored. seen if not "
            "given; but where models are judged by a benchmark, it is ignored as in the published protocols.",
        ),
    )
    half_life: float | None = field(
        default=None,
        metadata=option(
            float,
            "After how long an interaction counts half, in the unit of `timestamp`; in microseconds if that has "
            "dates or any fraction.",
        ),
    )
    features: Any = field(
        default=None,
        metadata=option(
            Path,
            "A table with a row per item, its items in a column named as `item` says: the other columns are features"
            " for the linear models and contentknn, and items without users can be recommended by them.",
        ),
    )
    feature_columns: str | Sequence[str] | None = field(
        default=None,
        metadata=option(str, "Some columns of it, separated by commas; all that tell something if not given."),
    )
    separator: Sequence[str] | Mapping[str, str] = field(
        default=(),
        metadata=option(
            list[str],
            "What stands between several values in one of these columns, such as 'genres=|'; can be repeated.",
            metavar="COLUMN=TEXT",
        ),
    )
    feature_weight: float = field(
        default=1.0,
        metadata=option(
            float,
            "How much a feature counts beside a user; 1 if not given, 0 leaves features out. It is never tuned: try "
            "some.",
        ),
    )
    overlap: Overlap = field(
        default="refuse",
        metadata=option(
            str,
            "Of a folder with train.txt and test.txt: what becomes of interactions to find that the history of the "
            "same user has, refuse (if not given) or drop.",
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
        useless = [] if self.features is not None else self.changed("feature_columns", "separator", "feature_weight")
        if useless:
            named = Option("features", "FILE", python="features")
            raise DataError(Text.join(", ", useless), " is for ", named, ", which is not given: leave it out")

    def _check_choice(self, name: str, values: Sequence[str]) -> None:
        value = getattr(self, name)
        if value is not None and value not in values:
            raise DataError(Option(name), f" is one of {', '.join(values)}, got {value!r}")

    def changed(self, *names: str) -> list[Option]:
        """Return those of some options that do not have their default value."""
        return [Option(name) for name in self.changes() if name in names]

    def changes(self) -> dict[str, Any]:
        """Return the values of all options that do not have their default value."""
        defaults = {name: declared.default for name, declared in Columns.__dataclass_fields__.items()}
        return {name: value for name, value in vars(self).items() if not _is_equal(value, defaults[name])}

    def check_weighting(self) -> Self:
        """Return these columns for data beside a saved model, whose weighting must then be named."""
        if self.weight is not None and self.weighting is None:
            raise DataError(
                Option("weight", self.weight),
                " beside a model needs its ",
                Option("weighting"),
                ": the one that the model was fitted with, linear, sqrt, log or binary",
            )
        return self

    def record(self) -> dict[str, Any]:
        """Return the columns as JSON has them; a table in memory is None."""
        values = {name: None if name in self._in_memory() else value for name, value in vars(self).items()}
        return {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in values.items()}

    def check_paths(self) -> None:
        """Raise a DataError if a table is in memory, so that a folder cannot name it."""
        for name in self._in_memory():
            raise DataError(Option(name), " is in memory, and a run keeps only paths: write it to a file first")

    def _in_memory(self) -> list[str]:
        tables = {"titles": self.titles, "features": self.features}
        return [name for name, table in tables.items() if not isinstance(table, (str, os.PathLike, type(None)))]

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the columns of such a record."""
        paths = {name: Path(record[name]) for name in ("titles", "features") if record.get(name) is not None}
        return cls(**{**record, **paths})

    def apply(self, data: Interactions) -> Interactions:
        """Return interactions with the ages and features of these columns; items without interactions may join."""
        if self.half_life is not None:
            data = data.weighted(half_life=self.half_life)
        if self.features is None:
            return data
        chosen = self.feature_columns
        columns = [part.strip() for part in chosen.split(",") if part.strip()] if isinstance(chosen, str) else None
        separators = dict(_parse_separator(pair) for pair in self.separator)
        whole = data.with_features(self.features, item=self.item, columns=columns, separators=separators)
        return whole.replace(features=None) if self.feature_weight == 0 else whole  # the items stay

    def apply_weighted(self, data: Interactions) -> Interactions:
        """Return the same with features that count `feature_weight` in any fit, where they are rows √weight · Fᵀ."""
        whole = self.apply(data)
        if whole.features is None or self.feature_weight == 1:
            return whole
        weighted = Features(np.sqrt(self.feature_weight) * whole.features.matrix, whole.features.names)
        return whole.replace(features=weighted)


def _is_equal(value: Any, default: Any) -> bool:
    """Compare an option with its default, which a data frame never equals."""
    return value is default or (isinstance(value, (str, float, int, tuple)) and value == default)


def _parse_separator(text: str) -> tuple[str, str]:
    column, equals, separator = text.partition("=")
    if not (equals and column and separator):
        raise DataError(Option("separator"), f" takes COLUMN=TEXT, such as 'genres=|', got {text!r}")
    return column, separator
