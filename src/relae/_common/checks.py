"""Checks of arguments: each returns the value as a plain number, or raises a ValueError that names the parameter."""

from math import inf
from numbers import Integral, Real
from typing import Any


def check_whole(name: str, value: Any, least: int = 1, below: float = inf) -> int:
    """Return a whole number of at least `least` and below `below`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) < below:
        upper = f" and below {below:,}" if below < inf else ""
        raise ValueError(f"{name} must be a whole number of at least {least}{upper}, got {value!r}")
    return int(value)


def check_finite(name: str, value: Any, *, above_zero: bool = False) -> float:
    """Return a finite number of at least 0, or above 0."""
    if not is_number(value) or not 0 <= value < inf or (above_zero and value == 0):
        raise ValueError(f"{name} must be a finite number {'above' if above_zero else 'of at least'} 0, got {value!r}")
    return float(value)


def check_between(name: str, value: Any, low: float, high: float) -> float:
    """Return a number of at least `low` and at most `high`."""
    if not is_number(value) or not low <= value <= high:
        raise ValueError(f"{name} must lie in [{low:g}, {high:g}], got {value!r}")
    return float(value)


def check_share(name: str, value: Any) -> float:
    """Return a number of at least 0 and below 1."""
    if not is_number(value) or not 0 <= value < 1:
        raise ValueError(f"{name} must lie in [0, 1), got {value!r}")
    return float(value)


def is_number(value: Any) -> bool:
    """Whether a value is a real number, of Python or NumPy, and not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)
