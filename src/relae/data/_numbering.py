"""Number ids while they are read, before all ids and their common type are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from relae.data._assemble import positions_in
from relae.data._columns import read_integers
from relae.errors import DataError

if TYPE_CHECKING:
    import polars as pl

Codes = NDArray[np.int32]

# An integer from 0 up to here is its own code and needs no search; other integers and strings are numbered in the
# order of their appearance, from where the one before ends.
_OWN = 1 << 25
_STRINGS = 1 << 30
_MOST = _STRINGS - _OWN


class Numbering:
    """Codes for the ids of one axis, and in the end the rank of each code among the sorted ids.

    An integer and the string that is its usual form ("7", not "07") have one code. So it does not matter that the
    type of the column may be known only after its last row: it is a matter of how the ids are sorted and shown.
    """

    def __init__(self, name: str) -> None:
        import polars as pl

        self.name = name
        self._seen = np.zeros(0, dtype=bool)  # the integers that are their own codes
        self._integers = pl.Series(dtype=pl.Int64)
        self._strings = pl.Series(dtype=pl.String)
        self._are_strings = False
        self._numbers_in: str | None = None  # the first source with a column of numbers, and of strings
        self._strings_in: str | None = None

    def note(self, source: str, declared: pl.DataType, parsed: pl.DataType, *, text: bool) -> None:
        """Record the declared and the parsed type of a column in a source; in text files only the latter counts."""
        import polars as pl

        is_string = parsed == pl.String
        is_number = not text and declared.is_numeric()
        if is_number:
            self._numbers_in = self._numbers_in or source
        elif is_string:
            self._strings_in = self._strings_in or source
        self._are_strings |= is_string
        if self._numbers_in is not None and self._strings_in is not None:
            raise DataError(
                f"column {self.name!r} has numbers in {self._numbers_in} and strings in {self._strings_in}: "
                "cast it to one type in all files"
            )

    def encode(self, ids: pl.Series) -> Codes:
        """Return a code for each id, Int64 or String without gaps."""
        import polars as pl

        if ids.dtype == pl.Int64:
            return self._encode_integers(ids)
        integers, canonical = read_integers(ids)
        codes = np.empty(len(ids), dtype=np.int32)
        is_integer = canonical.to_numpy()
        codes[is_integer] = self._encode_integers(integers.filter(canonical))
        string_codes, self._strings = _search(self._strings, ids.filter(~canonical))
        codes[~is_integer] = string_codes + _STRINGS
        return codes

    def _encode_integers(self, ids: pl.Series) -> Codes:
        values = ids.to_numpy()
        own = (values >= 0) & (values < _OWN)
        all_own = bool(own.all())
        small = values if all_own else values[own]
        self._grow(int(small.max(initial=-1)) + 1)
        self._seen[small] = True
        if all_own:
            return small.astype(np.int32)
        codes = np.empty(len(values), dtype=np.int32)
        codes[own] = small
        integer_codes, self._integers = _search(self._integers, ids.filter(~own))
        codes[~own] = integer_codes + _OWN
        return codes

    def _grow(self, size: int) -> None:
        if size > len(self._seen):
            longer = np.zeros(max(size, min(2 * len(self._seen), _OWN)), dtype=bool)
            longer[: len(self._seen)] = self._seen
            self._seen = longer

    def finish(self) -> Ranking:
        """Return the sorted ids, of the type that they turned out to have, and the ranks of the codes."""
        import polars as pl

        own = np.flatnonzero(self._seen)
        kind = pl.String if self._are_strings else pl.Int64
        parts = [pl.Series(values=own, dtype=pl.Int64), self._integers, self._strings]
        ids = pl.concat([part.cast(kind) for part in parts])
        order = ids.arg_sort().to_numpy()
        ranks = np.empty(len(ids), dtype=np.int32)
        ranks[order] = np.arange(len(ids), dtype=np.int32)
        of_own = np.full(len(self._seen), -1, dtype=np.int32)
        of_own[own] = ranks[: len(own)]
        n_integers = len(own) + len(self._integers)
        return Ranking(ids.gather(order), of_own, ranks[len(own) : n_integers], ranks[n_integers:])


class Ranking:
    """The sorted ids of one axis, and the rank of each code."""

    def __init__(self, ids: pl.Series, own: Codes, integers: Codes, strings: Codes) -> None:
        self.ids = ids
        self._own, self._integers, self._strings = own, integers, strings

    def __len__(self) -> int:
        return len(self.ids)

    def ranks(self, codes: Codes) -> Codes:
        """Return the rank of each code."""
        if len(self._integers) + len(self._strings) == 0:
            return self._own[codes]
        ranks = np.empty(len(codes), dtype=np.int32)
        is_string = codes >= _STRINGS
        is_own = codes < _OWN
        is_other = ~(is_string | is_own)
        ranks[is_own] = self._own[codes[is_own]]
        ranks[is_other] = self._integers[codes[is_other] - _OWN]
        ranks[is_string] = self._strings[codes[is_string] - _STRINGS]
        return ranks


def _search(known: pl.Series, ids: pl.Series) -> tuple[NDArray[np.int64], pl.Series]:
    """Return the positions of ids among the known ones, and the known ones with those that were new at their end."""
    import polars as pl

    positions = positions_in(known, ids)
    new = positions.is_null()
    codes = positions.fill_null(-1).to_numpy(writable=True)
    if new.any():
        strangers = ids.filter(new)
        distinct = strangers.unique()
        codes[new.to_numpy()] = len(known) + positions_in(distinct, strangers).to_numpy()
        known = pl.concat([known, distinct], rechunk=True)
    if len(known) > _MOST:
        raise DataError(f"there are more than {_MOST:,} different ids, too many for one matrix: read fewer files")
    return codes, known
