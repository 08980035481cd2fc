"""The raw ids of one axis of a matrix, and where each of them is."""

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
# Below this many look-ups a bisection each is quicker than a dictionary of all ids.
_FEW = 256
_BLOCK = 1 << 20


class Ids:
    """The raw ids of users or items: the id of position p is `values[p]`.

    Ids are integers or strings, each at most once. Those made from a table are sorted; those given with a
    matrix keep the order of its rows or columns.

    Parameters
    ----------
    values
        Integers, or strings (UUIDs and UTF-8 bytes become strings), as a sequence or an array.

    Attributes
    ----------
    values : ndarray
        int64, or object with Python strings. Read-only.
    kind : {"int", "str"}
        What the ids are.
    """

    values: NDArray[Any]
    kind: Kind
    positional: bool = False
    """Whether they are the numbers of the rows or columns of a bare matrix, which say nothing of who or what it is."""

    def __init__(self, values: Iterable[Any]) -> None:
        array, self.kind = _checked(_sequence(values))
        self.values = array.view()  # a view, so that the caller's array stays writeable
        self.values.flags.writeable = False
        self._sorted = bool(np.all(self.values[1:] > self.values[:-1]))
        if not self._sorted:
            self._refuse_duplicates()

    @classmethod
    def range(cls, n: int) -> Ids:
        """Return the ids 0 to n-1, each its own position: those of a bare matrix."""
        ids = cls(np.arange(n, dtype=np.int64))
        ids.positional = True
        return ids

    @classmethod
    def decode(cls, array: NDArray[Any], count: int) -> Ids:
        """Return the ids that `encode` wrote; any other number of them than `count` is a DataError."""
        if array.dtype == np.uint8:
            return cls(_object_array(_split_texts(array, count)))
        if len(array) != count:
            raise DataError(f"there are {len(array):,} ids, and not {count:,}")
        return cls(array)

    def encode(self) -> NDArray[Any]:
        """Return one plain array to save: int64 ids as they are, strings as NUL-terminated UTF-8 (uint8)."""
        if self.kind == "int":
            return self.values
        return _joined_texts(self.values)

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
        """Return the first n ids as a message names them."""
        return ", ".join(repr(value) for value in self.take(np.arange(min(n, len(self)))))

    def positions(self, ids: Iterable[Any]) -> NDArray[np.int64]:
        """Find ids on this axis.

        The type is taken lightly: "260" finds the integer 260, and 260 finds the string "260". What cannot be
        an id here ("abc" among integers, None, 2.5, True) is unknown like any other stranger.

        Parameters
        ----------
        ids
            A sequence or array of raw ids.

        Returns
        -------
        ndarray of int64
            The position of each id, -1 where it is unknown; the shape of an array is kept.
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
        at = np.asarray(positions)
        if at.size == 0:
            return np.empty(at.shape, dtype=object)
        if at.dtype.kind not in "iu":
            raise TypeError(f"positions must be integers, got {at.dtype}")
        if at.min() < -1 or at.max() >= len(self):
            raise IndexError(f"positions must lie in [-1, {len(self)}), got {at.min()} to {at.max()}")
        taken = np.full(at.shape, None, dtype=object)
        known = at >= 0
        taken[known] = self.values[at[known]].astype(object)
        return taken

    def alike(self, value: Any, n: int = 3) -> list[Any]:
        """Return up to n ids that are like a value but for leading zeros, ".0" at the end, blanks or upper case.

        An id that was typed from memory, or went through a program that took it for a number, is found by them.
        """
        form = _plain_form(str(value))
        if self.kind == "int":
            position = self.positions([form])
            return list(self.take(position[position >= 0]))
        return [self.values[at] for at in islice(_positions_of(form, self._plain_forms), n)]

    def _find(self, ids: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
        """Look up a flat sequence, as an array if it is numeric."""
        if self.kind == "str":
            return self._find_strings([_as_string(value) for value in _listed(ids)])
        if isinstance(ids, np.ndarray) and ids.dtype.kind in "iuf":
            whole = _whole(ids)
            return np.where(whole, self._find_integers(np.where(whole, ids, 0).astype(np.int64)), -1)
        if (integers := _plain_integers(ids)) is not None:
            return self._find_integers(integers)
        parsed = [_as_integer(value) for value in _listed(ids)]
        known = np.array([value is not None for value in parsed], dtype=bool)
        positions = self._find_integers(np.array([value or 0 for value in parsed], dtype=np.int64))
        return np.where(known, positions, -1)

    def _find_integers(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        if len(self) == 0:
            return np.full(len(ids), -1, dtype=np.int64)
        first, last = int(self.values[0]), int(self.values[-1])
        if self._sorted and last - first == len(self) - 1:  # no gaps, so no search
            return np.where((ids >= first) & (ids <= last), ids - first, -1)
        at = np.searchsorted(self.values, ids, sorter=self._order)
        at = np.minimum(at, len(self) - 1)
        if self._order is not None:
            at = self._order[at]
        return np.where(self.values[at] == ids, at, -1)

    def _find_strings(self, ids: list[str | None]) -> NDArray[np.int64]:
        if self._sorted and len(ids) < _FEW and "_index" not in self.__dict__:
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
        """The positions in the order of their ids; None if that is the order they have."""
        return None if self._sorted else np.argsort(self.values, kind="stable")

    @cached_property
    def _plain_forms(self) -> list[str]:
        return [_plain_form(known) for known in self.values.tolist()]

    @cached_property
    def _index(self) -> dict[str | None, int]:
        return {value: position for position, value in enumerate(self.values)}

    def _refuse_duplicates(self) -> None:
        ordered = self.values[self._order]
        repeated = np.flatnonzero(ordered[1:] == ordered[:-1])
        if len(repeated):
            [twice] = ordered[repeated[:1]].tolist()
            raise DataError(f"ids must differ, but {twice!r} occurs more than once")


def encode_texts(texts: Iterable[str | None]) -> NDArray[np.uint8]:
    """Return texts as one plain array to save; what is missing is saved as empty."""
    return _joined_texts((text or "").replace("\0", " ").encode(errors="replace").decode() for text in texts)


def decode_texts(array: NDArray[np.uint8], count: int) -> NDArray[np.object_]:
    """Return the texts that `encode_texts` wrote, None where there is none; any other number of them is a DataError."""
    return _object_array([text or None for text in _split_texts(array, count)])


def _joined_texts(texts: Iterable[str]) -> NDArray[np.uint8]:
    return np.frombuffer("".join(f"{text}\0" for text in texts).encode(), dtype=np.uint8)


def _split_texts(array: NDArray[Any], count: int) -> list[str]:
    ends = 0
    for start in range(0, len(array), _BLOCK):  # before anything is copied: a damaged file may be larger than memory
        ends += int(np.count_nonzero(array[start : start + _BLOCK] == 0))
        if ends > count:
            break
    if ends != count or (len(array) and array[-1] != 0):
        raise DataError(f"there are {'more' if ends > count else 'fewer'} texts than {count:,}")
    return array.tobytes().decode().split("\0")[:-1]


def _sequence(values: Iterable[Any]) -> Sequence[Any] | NDArray[Any]:
    """Return lists and arrays untouched, a series as an array, any other iterable as a list."""
    if isinstance(values, (list, tuple, np.ndarray)):
        return values
    if hasattr(values, "__array__"):
        return np.asarray(values)
    return list(values)


def _listed(values: Sequence[Any] | NDArray[Any]) -> Sequence[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else values


def _object_array(values: Sequence[Any]) -> NDArray[np.object_]:
    # np.array would look into the values, and make a matrix of equally long lists.
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _plain_integers(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64] | None:
    """Return Python integers as an array; None if anything else is among them."""
    if isinstance(values, np.ndarray) or not set(map(type, values)) <= {int}:
        return None
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return None


def _whole(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which numbers are integers of 64 bits."""
    if numbers.dtype.kind == "f":
        # float(2**63) itself is one too many.
        return np.asarray((np.floor(numbers) == numbers) & (numbers >= -(2.0**63)) & (numbers < 2.0**63))
    if numbers.dtype.kind == "u":
        return np.asarray(numbers <= np.uint64(_INT64.max))
    return np.ones(numbers.shape, dtype=bool)


def _as_id(value: Any) -> int | str | None:
    """Return a value as the id it stands for, None if it cannot be one."""
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
    """Return an id without what is easily lost or added."""
    bare = text.strip().lower()
    whole = bare[: -len(decimals)] if (decimals := _decimals(bare)) else bare
    return whole.lstrip("0") or whole[-1:]


def _positions_of(text: str, texts: list[str]) -> Iterator[int]:
    """Yield the positions at which a text stands in a list."""
    at = -1
    with suppress(ValueError):
        while True:
            yield (at := texts.index(text, at + 1))


def _decimals(text: str) -> str:
    """Return the ".0" at the end of a whole number, nothing if there is none."""
    whole, point, rest = text.partition(".")
    return point + rest if point and whole.isdigit() and rest.strip("0") == "" else ""


def _as_string(value: Any) -> str | None:
    if type(value) is str:  # nearly always, and a million times
        return value
    id_ = _as_id(value)
    return None if id_ is None else str(id_)


def _as_integer(value: Any) -> int | None:
    id_ = _as_id(value)
    if isinstance(id_, str):
        id_ = _canonical_integer(id_)
    return id_ if id_ is not None and _INT64.min <= id_ <= _INT64.max else None


def _canonical_integer(text: str) -> int | None:
    """Read an integer written the one usual way: no leading zero, plus sign, space or underscore."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number) == text else None


def _checked(values: Sequence[Any] | NDArray[Any]) -> tuple[NDArray[Any], Kind]:
    """Return ids as an array of one kind, or say which of them cannot be an id."""
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise DataError(f"ids must have one dimension, got an array of shape {values.shape}")
        if values.dtype.kind in "iuf" and _whole(values).all():
            return values.astype(np.int64, copy=False), "int"
        if len(values) == 0:
            return values.astype(object), "str"
    listed = _listed(values)
    integers = _plain_integers(listed)
    return (_strings(listed), "str") if integers is None else (integers, "int")


def _strings(values: Sequence[Any]) -> NDArray[np.object_]:
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
    # Integers come this way if they are too large for 64 bits.
    texts = [str(value) for value in ids]
    for position, text in enumerate(texts):
        if "\0" in text or not is_unicode(text):
            raise DataError(f"ids must be valid text without NUL, got {text!r} at position {position}")
    return _object_array(texts)


def is_unicode(text: str) -> bool:
    """Return whether a string can be written as UTF-8, which a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
