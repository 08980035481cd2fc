"""Parse values of options: lists separated by commas, and times."""

from typing import Any


def parse_names(text: str | None) -> list[str] | None:
    """Return the names in a list separated by commas; None for None."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def parse_numbers(text: str | None, option: str) -> list[float] | None:
    """Return the numbers in a list separated by commas; None for None."""
    try:
        return None if text is None else [float(part) for part in parse_names(text) or []]
    except ValueError:
        raise ValueError(f"{option} takes numbers separated by commas, got {text!r}") from None


def parse_whole_numbers(text: str | None, option: str) -> list[int] | None:
    """Return the whole numbers in a list separated by commas, at least one; None for None."""
    if text is None:
        return None
    try:
        values = [int(part) for part in parse_names(text) or []]
    except ValueError:
        values = []
    if not values:
        raise ValueError(f"{option} takes whole numbers separated by commas, got {text!r}")
    return values


def parse_minutes(minutes: float | None) -> float | None:
    """Return the --time-budget in seconds; None for None."""
    if minutes is not None and not minutes > 0:
        raise ValueError(f"--time-budget must be a number of minutes above 0, got {minutes:g}")
    return None if minutes is None else 60 * minutes


def drop_none(**options: Any) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}
