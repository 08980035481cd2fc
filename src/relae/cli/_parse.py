"""Values of options: lists that are separated by commas, times, and those that are given."""

from typing import Any


def names(text: str | None) -> list[str] | None:
    """Return names; None if nothing is given."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def numbers(text: str | None, option: str) -> list[float] | None:
    """Return numbers; None if nothing is given."""
    try:
        return None if text is None else [float(part) for part in names(text) or []]
    except ValueError:
        raise ValueError(f"{option} takes numbers separated by commas, got {text!r}") from None


def whole_numbers(text: str | None, option: str) -> list[int] | None:
    """Return whole numbers, at least one; None if nothing is given."""
    if text is None:
        return None
    try:
        values = [int(part) for part in names(text) or []]
    except ValueError:
        values = []
    if not values:
        raise ValueError(f"{option} takes whole numbers separated by commas, got {text!r}")
    return values


def seconds(minutes: float | None) -> float | None:
    """Return the seconds of --time-budget; None if it is not given."""
    if minutes is not None and not minutes > 0:
        raise ValueError(f"--time-budget must be a number of minutes above 0, got {minutes:g}")
    return None if minutes is None else 60 * minutes


def without_none(**options: Any) -> dict[str, Any]:
    """Return those of some options that are given."""
    return {name: value for name, value in options.items() if value is not None}
