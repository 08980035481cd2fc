"""The text format of LightGCN: one user per line, `user item item …`, all of them integers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from relae.data._tables import existing_file
from relae.errors import DataError

# Indices of a sparse matrix have 32 bits; so no more than ten digits.
_LARGEST = np.iinfo(np.int32).max - 1
_DIGITS = 10

_NEWLINE, _ZERO, _NINE = ord("\n"), ord("0"), ord("9")


@dataclass(frozen=True)
class Lists:
    """What such a file says, in its order: the pairs, and the users of all lines, with items or without."""

    users: NDArray[np.int64]  # (pairs,)
    items: NDArray[np.int64]  # (pairs,)
    owners: NDArray[np.int64]  # (lines that are not blank,)


def read_lists(path: str | os.PathLike[str]) -> Lists:
    """Return the pairs of a file in the order they have there."""
    file = existing_file(path)
    content = np.fromfile(file, dtype=np.uint8)
    starts, ends = _tokens(content, str(file))
    if len(starts) == 0:
        raise DataError(f"{file} is empty: it needs a line `user item item …` per user")
    lines = np.searchsorted(np.flatnonzero(content == _NEWLINE), starts) + 1
    numbers = _numbers(content, starts, ends, str(file))
    first = np.diff(lines, prepend=0) > 0  # the user of its line
    owners = numbers[first]
    return Lists(owners[np.cumsum(first) - 1][~first], numbers[~first], owners)


def _tokens(content: NDArray[np.uint8], source: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each run of digits begins and ends; anything but digits and white space is an error."""
    is_digit = (content >= _ZERO) & (content <= _NINE)
    is_space = (content == ord(" ")) | ((content >= ord("\t")) & (content <= ord("\r")))
    strange = ~(is_digit | is_space)
    if strange.any():
        _fail(content, int(strange.argmax()), source, "is not made of non-negative integers")
    edges = np.flatnonzero(np.diff(is_digit, prepend=False, append=False))
    return edges[::2], edges[1::2]


def _numbers(
    content: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    source: str,
) -> NDArray[np.int64]:
    """Return the runs of digits as numbers: one pass over all of them per digit."""
    lengths = ends - starts
    numbers = np.zeros(len(starts), dtype=np.int64)
    for digit in range(min(int(lengths.max()), _DIGITS)):
        longer = lengths > digit
        at = starts[longer] + digit
        numbers[longer] = numbers[longer] * 10 + (content[at] - _ZERO)
    large = (lengths > _DIGITS) | (numbers > _LARGEST)
    if large.any():
        _fail(content, int(starts[large.argmax()]), source, f"has a number above {_LARGEST:,}")
    return numbers


def _fail(content: NDArray[np.uint8], at: int, source: str, problem: str) -> NoReturn:
    """Raise for the line around a byte."""
    before = content[:at].tobytes()
    number = before.count(b"\n") + 1
    start = before.rfind(b"\n") + 1
    line = content[start:].tobytes().split(b"\n", 1)[0]
    shown = line[:80].decode(errors="replace") + ("…" if len(line) > 80 else "")
    raise DataError(f"{source}, line {number:,} {problem}: {shown!r}. A line is `user item item …`")
