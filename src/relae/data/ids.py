"""The raw ids of the rows or columns of a matrix, and the position of each id."""

from __future__ import annotations

import uuid
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relae.errors import DataError

Kind = Literal["int", "str"]

_INT64 = np.iinfo(np.int64)
# For fewer look-ups than this, a binary search for each is faster than a dictionary of all ids.
_MIN_DICTIONARY_LOOKUPS = 256
_BLOCK = 1 << 20  # bytes to look through at a time


class Ids:
    """The raw ids of users or items: `values[p]` is the id at position p.

    Ids are all integers or all strings, and no id occurs twice. Ids from a table are sorted; ids given with a matrix
    keep the order of its rows or columns.

    Parameters
    ----------
    values
        Integers, or strings (UUIDs and UTF-8 bytes become strings), as a sequence or an array.

    Attributes
    ----------
    values : ndarray
        Array of int64, or of Python strings (dtype object). Read-only.
    kind : {"int", "str"}
        The type of all ids.
    """

    values: NDArray[Any]
    kind: Kind
    positional: bool = False
    """True if the ids are only row or column numbers, because the matrix came without ids."""

    def __init__(self, values: Iterable[Any]) -> None:
        array, self.kind = _check_ids(_sequence(values))
        self.values = array.view()  # a view, so that the caller's array stays writeable
        self.values.flags.writeable = False
        self._sorted = bool(np.all(self.values[1:] > self.values[:-1]))
        if not self._sorted:
            self._refuse_duplicates()

    @classmethod
    def range(cls, n: int) -> Ids:
        """Return the ids 0 to n-1, each equal to its position, for a matrix without ids."""
        ids = cls(np.arange(n, dtype=np.int64))
        ids.positional = True
        return ids

    @classmethod
    def decode(cls, array: NDArray[Any], count: int) -> Ids:
        """Return the ids that `encode` wrote; raise a DataError if their number is not `count`."""
        if array.dtype == np.uint8:
            return cls(_object_array(_split_texts(array, count)))
        if len(array) != count:
            raise DataError(f"there are {len(array):,} ids, and not {count:,}")
        return cls(array)

    def encode(self) -> NDArray[Any]:
        """Return one array to save: integers as int64, strings as NUL-terminated UTF-8 bytes (uint8)."""
        if self.kind == "int":
            return self.values
        return _join_texts(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ids):
            return NotImplemented
        return self.kind == other.kind and np.array_equal(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Ids({len(self):,} {self.kind}: {self.examples()}{', …' if len(self) > 3 else ''})"

    def examples(self, n: int = 3) -> str:
        """Return the first n ids as text for a message."""
        return ", ".join(repr(value) for value in self.take(np.arange(min(n, len(self)))))

    def positions(self, ids: Iterable[Any]) -> NDArray[np.int64]:
        """Return the position of each id, -1 if it is unknown.

        The type need not match: "260" finds the integer 260, and 260 finds the string "260". A value that cannot be an
        id here ("abc" among integers, None, 2.5, True) is unknown too, and no error.

        Parameters
        ----------
        ids
            A sequence or array of raw ids.

        Returns
        -------
        ndarray of int64
            The positions, in the shape of `ids` if that is an array.
        """
        if isinstance(ids, (str, bytes)):
            raise TypeError(f"positions takes a sequence of ids, got the single {ids!r}: put it in a list")
        sequence = _sequence(ids)
        if isinstance(sequence, np.ndarray):
            return self._find(sequence.ravel()).reshape(sequence.shape)
        return self._find(sequence)

    def take(self, positions: Any) -> NDArray[np.object_]:
        """Return the raw ids at these positions as Python objects, None where the position is -1.

        Parameters
        ----------
        positions
            Integers from -1 to `len(self) - 1`, of any shape.

        Returns
        -------
        ndarray of object
            Python integers or strings, of the same shape.
        """
        positions = np.asarray(positions)
        if positions.size == 0:
            return np.empty(positions.shape, dtype=object)
        if positions.dtype.kind not in "iu":
            raise TypeError(f"positions must be integers, got {positions.dtype}")
        low, high = positions.min(), positions.max()
        if low < -1 or high >= len(self):
            raise IndexError(f"positions must lie in [-1, {len(self)}), got {low} to {high}")
        ids = np.full(positions.shape, None, dtype=object)
        known = positions >= 0
        ids[known] = self.values[positions[known]].astype(object)
        return ids

    def alike(self, value: Any, n: int = 3) -> list[Any]:
        """Return up to n ids that differ from a value only in leading zeros, ".0" at the end, blanks or upper case.

        They help with an id that was typed from memory, or that another program has treated as a number.
        """
        form = _plain_form(str(value))
        if self.kind == "int":
            position = self.positions([form])
            return list(self.take(position[position >= 0]))
        return [self.values[at] for at in islice(_positions_of(form, self._plain_forms), n)]

    def _find(self, ids: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
        """Return the positions of a flat sequence of ids; numbers are looked up as one array."""
        if self.kind == "str":
            return self._find_strings([_as_string(value) for value in _as_list(ids)])
        if isinstance(ids, np.ndarray) and ids.dtype.kind in "iuf":
            valid = _is_int64(ids)
            return np.where(valid, self._find_integers(np.where(valid, ids, 0).astype(np.int64)), -1)
        if (integers := _plain_integers(ids)) is not None:
            return self._find_integers(integers)
        parsed = [_as_integer(value) for value in _as_list(ids)]
        known = np.array([value is not None for value in parsed], dtype=bool)
        positions = self._find_integers(np.array([value or 0 for value in parsed], dtype=np.int64))
        return np.where(known, positions, -1)

    def _find_integers(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        if len(self) == 0:
            return np.full(len(ids), -1, dtype=np.int64)
        first, last = int(self.values[0]), int(self.values[-1])
        if self._sorted and last - first == len(self) - 1:  # consecutive integers need no search
            return np.where((ids >= first) & (ids <= last), ids - first, -1)
        at = np.searchsorted(self.values, ids, sorter=self._order)
        at = np.minimum(at, len(self) - 1)
        if self._order is not None:
            at = self._order[at]
        return np.where(self.values[at] == ids, at, -1)

    def _find_strings(self, ids: list[str | None]) -> NDArray[np.int64]:
        if self._sorted and len(ids) < _MIN_DICTIONARY_LOOKUPS and "_index" not in self.__dict__:
            return np.array([self._bisect(value) for value in ids], dtype=np.int64)
        index = self._index
        return np.array([index.get(value, -1) for value in ids], dtype=np.int64)

    def _bisect(self, id_: str | None) -> int:
        if id_ is None:
            return -1
        at = bisect_left(self.values, id_)
        return at if at < len(self) and self.values[at] == id_ else -1

    @cached_property
    def _order(self) -> NDArray[np.int64] | None:
        """The positions sorted by id; None if the ids are sorted already."""
        return None if self._sorted else np.argsort(self.values, kind="stable")

    @cached_property
    def _plain_forms(self) -> list[str]:
        """The ids in the form that `alike` compares."""
        return [_plain_form(id_) for id_ in self.values.tolist()]

    @cached_property
    def _index(self) -> dict[str | None, int]:
        """From id to position."""
        return {value: position for position, value in enumerate(self.values)}

    def _refuse_duplicates(self) -> None:
        ordered = self.values[self._order]
        repeated = np.flatnonzero(ordered[1:] == ordered[:-1])
        if len(repeated):
            [twice] = ordered[repeated[:1]].tolist()
            raise DataError(f"ids must differ, but {twice!r} occurs more than once")


def encode_texts(texts: Iterable[str | None]) -> NDArray[np.uint8]:
    """Return texts as one array to save, NUL-terminated UTF-8 bytes; None becomes an empty text."""
    return _join_texts((text or "").replace("\0", " ").encode(errors="replace").decode() for text in texts)


def decode_texts(array: NDArray[np.uint8], count: int) -> NDArray[np.object_]:
    """Return the texts that `encode_texts` wrote, None for an empty one; raise a DataError if there are not `count`."""
    return _object_array([text or None for text in _split_texts(array, count)])


def _join_texts(texts: Iterable[str]) -> NDArray[np.uint8]:
    return np.frombuffer("".join(f"{text}\0" for text in texts).encode(), dtype=np.uint8)


def _split_texts(array: NDArray[Any], count: int) -> list[str]:
    ends = 0
    for start in range(0, len(array), _BLOCK):  # count before copying: a damaged file may be larger than memory
        ends += int(np.count_nonzero(array[start : start + _BLOCK] == 0))
        if ends > count:
            break
    if ends != count or (len(array) and array[-1] != 0):
        raise DataError(f"there are {'more' if ends > count else 'fewer'} texts than {count:,}")
    return array.tobytes().decode().split("\0")[:-1]


def _sequence(values: Iterable[Any]) -> Sequence[Any] | NDArray[Any]:
    """Return lists, tuples and arrays as they are, a series as an array, any other iterable as a list."""
    if isinstance(values, (list, tuple, np.ndarray)):
        return values
    if hasattr(values, "__array__"):
        return np.asarray(values)
    return list(values)


def _as_list(values: Sequence[Any] | NDArray[Any]) -> Sequence[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else values


def _object_array(values: Sequence[Any]) -> NDArray[np.object_]:
    # np.array would look into the values: it makes a matrix from lists of equal length.
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _plain_integers(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64] | None:
    """Return Python integers as an array; None if there is any other type, or one does not fit into int64."""
    if isinstance(values, np.ndarray) or not set(map(type, values)) <= {int}:
        return None
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return None


def _is_int64(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Return for each number whether it is an integer that int64 can hold."""
    if numbers.dtype.kind == "f":
        # 2.0**63 itself is too large by one.
        return np.asarray((np.floor(numbers) == numbers) & (numbers >= -(2.0**63)) & (numbers < 2.0**63))
    if numbers.dtype.kind == "u":
        return np.asarray(numbers <= np.uint64(_INT64.max))
    return np.ones(numbers.shape, dtype=bool)


def _as_id(value: Any) -> int | str | None:
    """Return a value as an integer or string id; None if it cannot be an id."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return int(value) if float(value).is_integer() else None
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return None


def _plain_form(text: str) -> str:
    """Return an id in lower case, without blanks around it, leading zeros and a final ".0"."""
    bare = text.strip().lower()
    whole = bare[: -len(decimals)] if (decimals := _decimals(bare)) else bare
    return whole.lstrip("0") or whole[-1:]


def _positions_of(text: str, texts: list[str]) -> Iterator[int]:
    """Yield the positions of a text in a list."""
    position = -1
    with suppress(ValueError):  # raised by `index` after the last one
        while True:
            yield (position := texts.index(text, position + 1))


def _decimals(text: str) -> str:
    """Return the "." with its zeros at the end of a whole number; an empty text if there is none."""
    whole, point, rest = text.partition(".")
    return point + rest if point and whole.isdigit() and rest.strip("0") == "" else ""


def _as_string(value: Any) -> str | None:
    if type(value) is str:  # the usual case, checked first because this runs once per id
        return value
    id_ = _as_id(value)
    return None if id_ is None else str(id_)


def _as_integer(value: Any) -> int | None:
    id_ = _as_id(value)
    if isinstance(id_, str):
        id_ = _canonical_integer(id_)
    return id_ if id_ is not None and _INT64.min <= id_ <= _INT64.max else None


def _canonical_integer(text: str) -> int | None:
    """Return the integer that a text is; None if it has a leading zero, plus sign, space or underscore."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number) == text else None


def _check_ids(values: Sequence[Any] | NDArray[Any]) -> tuple[NDArray[Any], Kind]:
    """Return ids as an array and their kind; raise a DataError that names a value which cannot be an id."""
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise DataError(f"ids must have one dimension, got an array of shape {values.shape}")
        if values.dtype.kind in "iuf" and _is_int64(values).all():
            return values.astype(np.int64, copy=False), "int"
        if len(values) == 0:
            return values.astype(object), "str"
    ids = _as_list(values)
    integers = _plain_integers(ids)
    return (_check_strings(ids), "str") if integers is None else (integers, "int")


def _check_strings(values: Sequence[Any]) -> NDArray[np.object_]:
    """Return ids as an array of strings; raise a DataError if one cannot be an id or if integers are among strings."""
    ids = [_as_id(value) for value in values]
    kinds = {type(value) for value in ids}
    if type(None) in kinds:
        position = ids.index(None)
        raise DataError(f"ids must be integers or strings, got {values[position]!r} at position {position}")
    if kinds == {int, str}:
        odd = next(position for position, value in enumerate(ids) if type(value) is not type(ids[0]))
        raise DataError(
            f"ids must be all integers or all strings, got {values[0]!r} and {values[odd]!r} (position {odd})"
        )
    # Integers get here only if one of them is too large for 64 bits.
    texts = [str(value) for value in ids]
    for position, text in enumerate(texts):
        if "\0" in text or not is_unicode(text):
            raise DataError(f"ids must be valid text without NUL, got {text!r} at position {position}")
    return _object_array(texts)


def is_unicode(text: str) -> bool:
    """Return whether a string can be encoded as UTF-8; a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
