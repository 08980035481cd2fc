"""The text format of LightGCN: one user per line, `user item item …`, all of them integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from relae._common.files import atomic_file
from relae.data._tables import FilePath, existing_file
from relae.data.ids import Ids
from relae.errors import DataError

# Indices of a sparse matrix have 32 bits; so no more than ten digits.
_LARGEST = np.iinfo(np.int32).max - 1
_DIGITS = 10
_FEW = 1_000  # positions, of which any number may be unused

_NEWLINE, _ZERO, _NINE = ord("\n"), ord("0"), ord("9")


@dataclass(frozen=True)
class Lists:
    """The pairs in a file of lines `user item item …`, in their order.

    Attributes
    ----------
    users, items : ndarray of int64
        The pairs.
    owners : ndarray of int64
        The users of all lines, with items or without.
    """

    users: NDArray[np.int64]  # (pairs,)
    items: NDArray[np.int64]  # (pairs,)
    owners: NDArray[np.int64]  # (lines that are not blank,)


def axis_of(*numbers: NDArray[np.int64]) -> int | Ids:
    """Return the length of an axis whose positions are these numbers; or ids, if they are too far apart for that.

    Numbers of which more than half do not occur, up to a thousand and more, are names: of films at IMDb, or of users.
    """
    distinct = np.unique(np.concatenate(numbers))
    length = int(distinct[-1]) + 1 if len(distinct) else 0
    return Ids(distinct) if length > _FEW and 2 * len(distinct) < length else length


def places_from_end(users: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each pair among those of its user, counted back from the last, which is 0 : (pairs,)."""
    order = np.argsort(users, kind="stable")
    sorted_users = users[order]
    ends = np.searchsorted(sorted_users, sorted_users, side="right")
    steps = np.empty(len(users), np.int64)
    steps[order] = np.arange(len(users)) - ends + 1
    return steps


def read_lists(path: FilePath) -> Lists:
    """Return the pairs of a file with a line `user item item …` per user, in the order they have there.

    Raises
    ------
    DataError
        If a line has anything but integers, or a number is too large; with the file and the line.
    """
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


def write_lists(path: FilePath, lists: Lists) -> None:
    """Write a line `user item item …` per user, in the order of `lists.owners`; all of the file or nothing.

    Parameters
    ----------
    path
        The file; an earlier one of that name is replaced at the end.
    lists
        The pairs, of which those of one user keep their order. A user without items has a line of its own.

    Raises
    ------
    DataError
        If a pair has a user who is not among the owners, or the file cannot be written.
    """
    owners, lines = _lines_of(lists)
    order = np.argsort(lines, kind="stable")
    items, ends = lists.items[order], np.cumsum(np.bincount(lines, minlength=len(owners)))
    with atomic_file(path) as part, part.open("w", encoding="ascii", newline="\n") as stream:
        start = 0
        for owner, end in zip(owners.tolist(), ends.tolist(), strict=True):
            stream.write(" ".join(map(str, [owner, *items[start:end].tolist()])) + "\n")
            start = end


def _lines_of(lists: Lists) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct owners in their order, and for each pair the place of its user among them."""
    _, first = np.unique(lists.owners, return_index=True)
    owners = lists.owners[np.sort(first)]
    by_number = np.argsort(owners)
    positions = np.searchsorted(owners, lists.users, sorter=by_number)
    unknown = np.ones(len(positions), dtype=bool)
    inside = positions < len(owners)
    lines = np.zeros(len(positions), dtype=np.int64)
    lines[inside] = by_number[positions[inside]]
    unknown[inside] = owners[lines[inside]] != lists.users[inside]
    if unknown.any():
        raise DataError(f"the user {lists.users[unknown.argmax()]} has an item but is not among the owners: add it")
    return owners, lines


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
