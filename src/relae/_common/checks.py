"""Checks of arguments: each returns the value as a plain number, or raises a ParameterError."""

from collections.abc import Iterable
from math import inf
from numbers import Integral, Real
from typing import Any, NoReturn

from relae.errors import Option, ParameterError


def refuse(name: str, value: Any, allowed: str) -> NoReturn:
    """Raise the error of a parameter whose value is not allowed: `xi must lie in [0, 1], got 2`."""
    raise ParameterError(Option(name), f" must {allowed}, got {value!r}", field=name, value=value)


def check_whole(name: str, value: Any, least: int = 1, below: float = inf) -> int:
    """Return a whole number of at least `least` and below `below`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) < below:
        upper = f" and below {below:,}" if below < inf else ""
        refuse(name, value, f"be a whole number of at least {least}{upper}")
    return int(value)


def check_finite(name: str, value: Any, *, above_zero: bool = False) -> float:
    """Return a finite number of at least 0, or above 0."""
    if not is_number(value) or not 0 <= value < inf or (above_zero and value == 0):
        refuse(name, value, f"be a finite number {'above' if above_zero else 'of at least'} 0")
    return float(value)


def check_between(name: str, value: Any, low: float, high: float) -> float:
    """Return a number of at least `low` and at most `high`."""
    if not is_number(value) or not low <= value <= high:
        refuse(name, value, f"lie in [{low:g}, {high:g}]")
    return float(value)


def check_share(name: str, value: Any) -> float:
    """Return a number of at least 0 and below 1."""
    if not is_number(value) or not 0 <= value < 1:
        refuse(name, value, "lie in [0, 1)")
    return float(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise unless a value is one of some texts."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        *others, last = map(repr, choices)
        refuse(name, value, f"be {', '.join(others)} or {last}" if others else f"be {last}")


def is_number(value: Any) -> bool:
    """Return whether a value is a real number, of Python or NumPy, and not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)
