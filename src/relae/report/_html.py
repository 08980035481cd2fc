"""HTML that cannot be broken by what is put into it: text is escaped unless it was made here."""

from collections.abc import Sequence
from html import escape
from typing import Any
from unicodedata import category


class Markup(str):
    """HTML that is already whole and safe."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Return anything as escaped text, without what no page can hold: lone surrogates and control characters."""
    if isinstance(value, Markup):
        return value
    whole = str(value).encode("utf-8", "replace").decode("utf-8")
    kept = "".join(" " if category(letter) == "Cc" and letter != "\n" else letter for letter in whole)
    return Markup(escape(kept, quote=True))


def join(*parts: object) -> Markup:
    """Return parts one after the other, escaped where they have to be; None is nothing."""
    return Markup("".join(text(part) for part in parts if part is not None))


def tag(name: str, /, *children: object, **attributes: Any) -> Markup:
    """Return an element: `tag("p", "a < b", class_="note")`.

    A trailing underscore of an attribute's name is dropped, others become hyphens; None leaves an attribute out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = join(*children)
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    if not inner and name in _SHORT:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{inner}</{name}>")


_VOID = frozenset({"meta", "br", "hr"})
_SHORT = frozenset({"path", "line", "circle", "rect"})  # of SVG, where an element may close itself


def table(caption: str, heads: Sequence[Markup], rows: Sequence[Markup]) -> Markup:
    """Return a table that scrolls inside its box."""
    inner = tag("table", tag("caption", caption), tag("thead", tag("tr", *heads)), tag("tbody", *rows))
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def header(*names: str) -> list[Markup]:
    """Return the cells of a table's head."""
    return [tag("th", name, scope="col") for name in names]


def facts(rows: Sequence[tuple[str, object]]) -> Markup:
    """Return a list of names and values."""
    return tag("dl", *(part for name, value in rows for part in (tag("dt", name), tag("dd", value))), class_="facts")
