"""The options of DATA on the command line: those of its table, and what is known of its items."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from relae._common.table_options import TableOptions, option, options_of
from relae.cli._parse import names
from relae.errors import DataError

if TYPE_CHECKING:  # at run time they would load NumPy before there is anything to do
    from relae.data import Interactions

# The options of a table of histories: columns, and what a row of it counts.
OF_HISTORIES = (
    *(name for name, option in options_of(TableOptions).items() if option.by_row),
    *("timestamp", "low_ratings", "half_life"),
)
LOW_RATINGS = ("seen", "ignored")
Overlap = Literal["refuse", "drop"]


@dataclass(frozen=True)
class Columns(TableOptions):
    """How to read a table, what its interactions weigh, and what is known of its items."""

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
    features: Path | None = field(
        default=None,
        metadata=option(
            Path,
            "A table with a row per item, its items in a column named as `item` says: the other columns are features"
            " for the linear models and contentknn, and items without users can be recommended by them.",
        ),
    )
    feature_columns: str | None = field(
        default=None,
        metadata=option(str, "Some columns of it, separated by commas; all that tell something if not given."),
    )
    separator: Sequence[str] = field(
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
        object.__setattr__(self, "separator", tuple(self.separator))
        if not 0 <= self.feature_weight < math.inf:
            raise DataError(f"--feature-weight must be a finite number of at least 0, got {self.feature_weight!r}")
        if self.low_ratings is not None and self.low_ratings not in LOW_RATINGS:
            raise DataError(f"--low-ratings is one of {', '.join(LOW_RATINGS)}, got {self.low_ratings!r}")
        if self.overlap not in get_args(Overlap):
            raise DataError(f"--overlap is one of {', '.join(get_args(Overlap))}, got {self.overlap!r}")
        useless = [] if self.features is not None else self.given("feature_columns", "separator", "feature_weight")
        if useless:
            raise DataError(f"{', '.join(useless)} is for --features FILE, which is not given: leave it out")

    def but(self, given: Mapping[str, Any]) -> Self:
        """Return these columns with others in the place of some."""
        return replace(self, **given)

    def given(self, *names: str) -> list[str]:
        """Return those of some options that are not what they are by default."""
        changed = [name for name in names if getattr(self, name) != Columns.__dataclass_fields__[name].default]
        return [f"--{name.replace('_', '-')}" for name in changed]

    def as_fitted(self) -> Self:
        """Return these columns for data that a saved model judges or is judged by; its weighting has to be said."""
        if self.weight is not None and self.weighting is None:
            raise DataError(
                f"--weight {self.weight} beside a model needs its --weighting: the one that the model was fitted with, "
                "linear, sqrt, log or binary"
            )
        return self

    def options(self) -> list[str]:
        """Return the words of a command line that give these columns, as far as they are not the default."""
        words: list[str] = []
        for name, declared in Columns.__dataclass_fields__.items():
            value = getattr(self, name)
            if value == declared.default:
                continue
            flag = name.replace("_", "-")
            if isinstance(value, bool):
                words.append(f"--{flag}" if value else f"--no-{flag}")
                continue
            for each in value if isinstance(value, tuple) else [value]:
                words += [f"--{flag}", str(each)]
        return words

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> Self:
        """Return the columns that a run has saved."""
        paths = {name: Path(saved[name]) for name in ("titles", "features") if saved.get(name) is not None}
        return cls(**{**saved, **paths})

    def applied(self, data: Interactions) -> Interactions:
        """Return interactions with the weights and the features that are asked for; without those that count 0."""
        if self.half_life is not None:
            data = data.weighted(half_life=self.half_life)
        if self.features is None:
            return data
        whole = data.with_features(
            self.features,
            item=self.item,
            columns=names(self.feature_columns),
            separators=dict(_separator(pair) for pair in self.separator),
        )
        return whole.replace(features=None) if self.feature_weight == 0 else whole  # the items stay

    def counted(self, data: Interactions) -> Interactions:
        """Return the same with features that count `feature_weight` in any fit, where they are rows √weight · Fᵀ."""
        whole = self.applied(data)
        if whole.features is None or self.feature_weight == 1:
            return whole
        import numpy as np

        from relae.data import Features

        weighted = Features(np.sqrt(self.feature_weight) * whole.features.matrix, whole.features.names)
        return whole.replace(features=weighted)


def _separator(text: str) -> tuple[str, str]:
    column, equals, separator = text.partition("=")
    if not (equals and column and separator):
        raise DataError(f"--separator takes COLUMN=TEXT, such as 'genres=|', got {text!r}")
    return column, separator


def shown_columns() -> dict[str, tuple[Any, ...]]:
    """Return the type, the help and the metavar, where there is one, of every option, in the words of the command line.

    The help says --min-item-count where it is declared with `min_item_count`.
    """
    return {
        name: (
            option.kind,
            re.sub(r"`(\w+)`", lambda other: f"--{other[1].replace('_', '-')}", option.help),
            *([] if option.metavar is None else [option.metavar]),
        )
        for name, option in options_of(Columns).items()
    }
