"""Pieces that every page is made of."""

from collections.abc import Sequence

from relae.analysis.report._html import Markup, tag


def table(caption: str, heads: Sequence[Markup], rows: Sequence[Markup]) -> Markup:
    """Return a table that scrolls inside its box."""
    inner = tag("table", tag("caption", caption), tag("thead", tag("tr", *heads)), tag("tbody", *rows))
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def facts(rows: Sequence[tuple[str, object]]) -> Markup:
    """Return a list of names and what is to be said of each."""
    return tag("dl", *(part for name, value in rows for part in (tag("dt", name), tag("dd", value))), class_="facts")
