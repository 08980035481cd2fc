"""The options by which the rows of a table become interactions: each of them declared once.

They are here, and not in `relae.data` where they are public, so that the command line can show them without NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, cast, get_args

from relae.errors import DataError, Option

Weighting = Literal["linear", "sqrt", "log", "binary"]


@dataclass(frozen=True)
class TableOption:
    """The declaration of an option of a table: what an interface shows of it.

    Attributes
    ----------
    kind
        The type of its value where it is given as text: str, float, int, Path, or a list of these.
    help : str
        A sentence or two; names of other options are in backticks.
    by_row : bool
        Whether it is applied to each row alone, so that the files of a table can be read apart.
    metavar : str or None
        What its value is called, where that is not its type.
    """

    kind: Any
    help: str
    by_row: bool = False
    metavar: str | None = None


def option(kind: Any, help: str, *, by_row: bool = False, metavar: str | None = None) -> dict[str, TableOption]:
    """Return the metadata of a field that is an option; see `TableOption`."""
    return {"option": TableOption(kind, help, by_row, metavar)}


def options_of(declaration: type[TableOptions]) -> dict[str, TableOption]:
    """Return the options that a dataclass declares, by name."""
    return {each.name: each.metadata["option"] for each in fields(declaration)}


class TableKeywords(TypedDict, total=False):
    """The types of `TableOptions`, for type checkers: keywords of `Interactions.from_frame` and `Interactions.read`."""

    user: str
    item: str
    rating: str | None
    min_rating: float | None
    weight: str | None
    weighting: Weighting | None
    timestamp: str | None
    titles: Any
    min_user_count: int
    min_item_count: int
    k_core: int


@dataclass(frozen=True)
class TableOptions:
    """Options for turning the rows of a table into interactions: keywords of `Interactions.from_frame` and `read`.

    The filters work in this order: ratings, merging of duplicates, zero weights, `min_item_count`, `min_user_count`,
    `k_core`. Counts are of different items per user and different users per item.

    Parameters
    ----------
    user, item
        The columns of the ids: integers or strings. Whole floats count as integers; categories, UUIDs and UTF-8 bytes
        as strings, and so do integers beyond 64 bits with sign.
    rating, min_rating
        A column of ratings, and the lowest that counts: rows below it are no interactions, but the items in them have
        been `seen` by their users. A pair with a high and a low rating is an interaction. Of a row below it only the
        ids and the time are looked at.
    weight
        A column of numbers that are not negative: plays, pieces, ratings. The amount of a pair is the sum of its rows.
        A sum of zero says that nothing happened: it is no interaction, and the item has not been seen. Without the
        column every amount is 1, however often a pair occurs.
    weighting
        What an amount a counts: "linear" a, "sqrt" √a, "log" log₂(1 + a), "binary" 1. None: the one that finds most in
        a quick trial on the data, which a `WeightingWarning` names with its figures; "log" where there are too few
        users to try.
    timestamp
        A column of times, for `times`, of which a pair that occurs several times has the last. Whole numbers stay what
        they are; if one has a fraction, all are multiplied by a million, which makes microseconds of seconds. Dates and
        times, also as ISO text, become microseconds since 1970 UTC. Rows below `min_rating` need a time too: it tells
        from when on a split by time may know of them.
    titles
        The titles of the items: a mapping from ids, or a table (or the path of one) with the columns `item`, or the
        same name as here, and `title`.
    min_user_count, min_item_count
        Drop items, then users, with fewer interactions: each once. Where users are dropped, items may have fewer in the
        end, which a warning tells; `k_core` repeats.
    k_core
        Drop items and users with fewer than this many until none is left to drop.
    """

    user: str = field(default="user", metadata=option(str, "The column of users; user by default.", by_row=True))
    item: str = field(default="item", metadata=option(str, "The column of items; item by default.", by_row=True))
    rating: str | None = field(default=None, metadata=option(str, "The column of ratings.", by_row=True))
    min_rating: float | None = field(
        default=None, metadata=option(float, "The lowest rating that counts.", by_row=True)
    )
    weight: str | None = field(
        default=None,
        metadata=option(
            str, "The column of amounts, such as plays, pieces or ratings; by default each amount is 1.", by_row=True
        ),
    )
    weighting: Weighting | None = field(
        default=None,
        metadata=option(
            str,
            "How to turn an amount a of `weight` into a value: linear (a), sqrt (√a), log (log₂(1 + a)) or binary (1);"
            " by default a quick trial on the data chooses.",
            by_row=True,
        ),
    )
    timestamp: str | None = field(
        default=None, metadata=option(str, "The column of times: with it, models are judged by time and can use it.")
    )
    titles: Any = field(default=None, metadata=option(Path, "A table with the columns item and title."))
    min_user_count: int = field(
        default=0, metadata=option(int, "Drop users with fewer items, in one pass after `min_item_count`.")
    )
    min_item_count: int = field(
        default=0,
        metadata=option(
            int, "Drop items with fewer users, in one pass; `min_user_count` may then leave some items with fewer."
        ),
    )
    k_core: int = field(
        default=0,
        metadata=option(
            int, "Drop items and users with fewer interactions than this, again and again until all have enough."
        ),
    )

    @classmethod
    def checked(cls, **keywords: Unpack[TableKeywords]) -> TableOptions:
        """Return the options of some keywords, after a check of them.

        Raises
        ------
        TypeError
            If there is no such option.
        DataError
            If one option needs another, or has a value that cannot be.
        """
        known = options_of(TableOptions)
        for name in keywords:
            if name not in known:
                near = get_close_matches(name, known, n=1, cutoff=0.5)
                meant = f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(known)}"
                raise TypeError(f"a table has no option {name!r}: {meant}")
        options = TableOptions(**keywords)
        options._check()
        return options

    def keywords(self, *, by_row: bool = False) -> TableKeywords:
        """Return the options of a table as keywords; `by_row` asks for those alone that are applied to each row."""
        names = [name for name, option in options_of(TableOptions).items() if option.by_row or not by_row]
        return cast(TableKeywords, {name: getattr(self, name) for name in names})

    def _check(self) -> None:
        if self.user == self.item:
            raise DataError(Option("user"), " and ", Option("item"), f" both name the column {self.user!r}")
        if self.weighting is not None:
            check_weighting(self.weighting)
            if self.weight is None:
                raise DataError(
                    Option("weighting", self.weighting),
                    " needs the column of the amounts: set ",
                    Option("weight", ...),
                )
        if self.min_rating is not None and self.rating is None:
            raise DataError(
                Option("min_rating", self.min_rating), " needs the column of the ratings: set ", Option("rating", ...)
            )
        if self.rating is not None and self.min_rating is None:
            raise DataError(
                Option("rating", self.rating),
                " needs a threshold: set ",
                Option("min_rating", ...),
                ", or ",
                Option("weight", self.rating),
                " for matrix values that are sums of ratings",
            )

    @property
    def roles(self) -> dict[str, str]:
        """The columns to load."""
        columns = ("user", "item", "weight", "rating", "timestamp")
        named = {role: getattr(self, role) for role in columns}
        return {role: name for role, name in named.items() if name is not None}

    def filter_option(self, name: str) -> Option:
        """Return a filter as messages name it; 4.0 is 4 there."""
        return Option.of_number(name, getattr(self, name))


def check_weighting(weighting: str) -> None:
    """Raise if there is no such weighting."""
    if weighting not in get_args(Weighting):
        raise DataError(
            Option("weighting"),
            f" must be one of {', '.join(map(repr, get_args(Weighting)))}, got {weighting!r}",
            field="weighting",
            value=weighting,
        )
