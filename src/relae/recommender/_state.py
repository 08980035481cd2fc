"""The state of a fit in a form that can be saved."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from relae.data.ids import is_unicode
from relae.linalg import Blocks

_LARGEST = 1e300  # of any number in a record


class State(NamedTuple):
    """Facts that JSON can hold, and arrays by name."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any] | Blocks]


def number(facts: Mapping[str, Any], name: str, least: float = -_LARGEST, below: float = _LARGEST) -> float:
    """Return a fact that is a number of at least `least` and below `below`; anything else is a ValueError."""
    value = facts[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value < below:
        raise ValueError(f"{name} is {shortened(value)}, not a number of at least {least:g} and below {below:g}")
    return float(value)


def whole(facts: Mapping[str, Any], name: str, least: int = 0, below: int = 2**63) -> int:
    """Return a fact that is a whole number of at least `least` and below `below`; anything else is a ValueError."""
    value = facts[name]
    if type(value) is not int or not least <= value < below:
        raise ValueError(f"{name} is {shortened(value)}, not a whole number of at least {least:,} and below {below:,}")
    return value


def text(facts: Mapping[str, Any], name: str, *allowed: str) -> str:
    """Return a fact that is a text, one of those allowed if any are named; anything else is a ValueError."""
    value = facts[name]
    if not isinstance(value, str) or (allowed and value not in allowed) or not is_unicode(value):
        raise ValueError(f"{name} is {shortened(value)}, not {' or '.join(map(repr, allowed)) or 'a text'}")
    return value


def shortened(value: Any) -> str:
    """Return how a value is written, without the end of a long one."""
    if isinstance(value, (dict, list)):
        return f"a {type(value).__name__} of {len(value):,}"
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a very large number"  # a longer one cannot be written at all
    written = ascii(value)
    return written if len(written) <= 40 else f"{written[:40]}…"
