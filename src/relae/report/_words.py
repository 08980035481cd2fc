"""Figures and names in words."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from relae.report._report import Searched

METRICS = {
    "ndcg": ("NDCG", "all hidden items, early ones count more"),
    "recall": ("Recall", "hidden items that are found"),
    "head_ndcg": ("NDCG, head", "items of the popular fifth"),
    "head_recall": ("Recall, head", "items of the popular fifth"),
    "tail_ndcg": ("NDCG, tail", "items of the other four fifths"),
    "tail_recall": ("Recall, tail", "items of the other four fifths"),
    "unbiased_ndcg": ("NDCG, unbiased", "rare items count more"),
    "unbiased_recall": ("Recall, unbiased", "rare items count more"),
    "coverage": ("Coverage", "of the catalog in any list"),
    "tail_share": ("Tail share", "of what is recommended"),
}


def metric(name: str) -> str:
    """Return a metric as a reader knows it: "tail_ndcg@100" is "NDCG@100, tail"."""
    base, at, k = name.partition("@")
    words, _, group = METRICS.get(base, (base, ""))[0].partition(", ")
    return f"{words}{at}{k}" + (f", {group}" if group else "")


def value(number: float) -> str:
    """Return a metric's value."""
    return f"{number:.4f}" if isfinite(number) else "–"


def signed(number: float) -> str:
    """Return a difference."""
    return f"{number:+.4f}".replace("-", "−") if isfinite(number) else "–"


def percent(share: float, decimals: int = 0) -> str:
    """Return a share as a percentage, with enough decimals not to be zero."""
    if not isfinite(share):
        return "–"
    if share and abs(share) < 0.5 * 10 ** -(decimals + 2):
        return f"{100 * share:.2g}%"
    return f"{100 * share:.{decimals}f}%"


def interval(low: float, high: float, before: str = "", between: str = " to ") -> str:
    """Return an interval; empty if it has no ends."""
    return f"{before}{value(low)}{between}{value(high)}" if isfinite(low) and isfinite(high) else ""


def gain(ours: float, theirs: float) -> str | None:
    """Return how much better ours is, in percent or as a factor; None where there is nothing to compare with."""
    if not (isfinite(ours) and isfinite(theirs)) or theirs <= 0:
        return None
    ratio = ours / theirs
    return f"{ratio:.1f}×" if ratio >= 2 else f"{100 * (ratio - 1):+.1f}%".replace("-", "−")


def number(number: float | None) -> str:
    """Return a parameter: as many digits as it has."""
    return "none" if number is None else f"{number:.6g}"


def parameter(parameter: object) -> str:
    """Return any parameter; None is one that is left to the data."""
    return number(parameter) if isinstance(parameter, float) else "by the data" if parameter is None else str(parameter)


def short(number: float) -> str:
    """Return a value of an axis."""
    return f"{number:,.6g}"


def nothing(number: float) -> str:
    """Return nothing, for an axis without values."""
    return ""


def time(values: Mapping[str, Any]) -> list[str]:
    """Return those parameters of time that change something, each in words."""
    parts = []
    if (half_life := values.get("half_life")) is not None:
        parts.append(f"a half-life of {_days(half_life)}")
    if fading := values.get("fading", 0.0):
        parts.append(f"a fading of {number(fading)}")
    if freshness := values.get("freshness", 0.0):
        parts.append(f"a freshness of {number(freshness)} by a demand that halves in {_days(values['fresh_days'])}")
    return parts


def _days(days: float) -> str:
    return "1 day" if days == 1 else f"{number(days)} days"


def listed(parts: Sequence[str]) -> str:
    """Return parts as a list in a sentence: "a", "a and b", "a, b and c"."""
    return ", ".join(parts[:-1]) + f" and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def setting(space: Sequence[Searched], values: Mapping[str, Any], but: Searched | None = None) -> str:
    """Return a configuration, without one parameter and without what changes nothing."""
    shown = [each for each in space if each != but and not each.is_time and values[each.name] != each.neutral]
    parts = [f"{each.symbol} {number(values[each.name])}" for each in shown]
    return ", ".join(parts + (time(values) if any(each.is_time for each in space) else []))


def odds(p_value: float) -> str:
    """Return a p-value."""
    return f"p\u00a0=\u00a0{p_value:.2g}" if p_value >= 0.001 else "p\u00a0<\u00a00.001"


def shorten(words: str, most: int = 90) -> str:
    """Return text that is not too long for a line or two."""
    flat = " ".join(words.split())
    return flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"
