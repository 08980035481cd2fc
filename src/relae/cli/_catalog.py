"""The items of a model as a person reads them: id, title, popularity, head or tail."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae.cli._console import errors
from relae.data import Ids
from relae.errors import DataError
from relae.evaluation import head_items
from relae.models import DIALS, FAMILY, LinearAutoencoder
from relae.ranking import check_k
from relae.recommender import HistoryRecommender
from relae.store import Saved, open_model

_FEW = 3
_MANY = 5  # unknown items that are named
_USUAL_K = 10  # if not given, and then nobody wonders where the rest is


class Catalog:
    """What is known of each item of a model."""

    def __init__(self, model: HistoryRecommender) -> None:
        self.model, self.items, self.titles, self.counts = model, model.items_, model.titles_, model.item_counts_

    @cached_property
    def head(self) -> NDArray[np.bool_]:
        """Which items are popular : (items,)."""
        return head_items(self.counts)

    def record(self, column: int) -> dict[str, Any]:
        """Return an item as JSON has it."""
        [item] = self.items.take(np.array([column]))
        return {
            "item": item,
            "title": None if self.titles is None else self.titles[column],
            "popularity": int(self.counts[column]),
            "group": "head" if self.head[column] else "tail",
        }

    def column(self, item: str) -> int:
        """Return the column of an item, or say which one may be meant."""
        [column] = self.items.positions([item])
        if column < 0:
            raise DataError(f"item {item!r} is unknown to the model{self.meant(item) or self.examples(item)}")
        return int(column)

    def columns(self, items: Sequence[str] | None, option: str) -> NDArray[np.int64] | None:
        """Return the columns of those items of an option that are known; a line on stderr names the others."""
        if items is None:
            return None
        found = self.items.positions(items)
        unknown = [item for item, column in zip(items, found.tolist(), strict=True) if column < 0]
        if option == "--allow" and len(unknown) == len(items):
            raise DataError(
                "--allow names no item that the model knows, so that there is nothing to recommend"
                f"{': ' if unknown else ''}{self.named(unknown)}"
            )
        if unknown:
            errors().print(
                f"{len(unknown):,} of {len(items):,} items of {option} are unknown to the model, and ignored: "
                f"{self.named(unknown)}",
                style="yellow",
                markup=False,
                soft_wrap=True,
            )
        return found[found >= 0]

    def places(self, k: int, option: str) -> int:
        """Return how long lists are: k, or all items where there are fewer, which a line on stderr tells."""
        if check_k(k) > max(len(self.items), _USUAL_K):
            errors().print(f"{option} {k:,} is cut to the {len(self.items):,} items that there are", style="yellow")
        return min(k, len(self.items))

    def named(self, unknown: Sequence[Any]) -> str:
        """Return some unknown items, each with what may be meant by it."""
        others = ", …" if len(unknown) > _MANY else ""
        return ", ".join(f"{readable(item)}{self.meant(str(item))}" for item in unknown[:_MANY]) + others

    def meant(self, text: str) -> str:
        """Return the items that may be meant by an unknown id as a hint, or nothing."""
        columns = self._columns_meant(text)
        return f" (did you mean {', '.join(map(self._with_title, columns))}?)" if columns else ""

    def suggestions(self, unknown: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the items that may be meant by the first few unknown ids, as the service answers them."""
        meant = ((stranger, self._columns_meant(str(stranger))) for stranger in unknown[:_FEW])
        return [
            {"unknown": stranger, "items": list(map(self.record, columns))} for stranger, columns in meant if columns
        ]

    def _columns_meant(self, text: str) -> list[int]:
        """Return the columns of items whose ids are like a text, or whose titles have its words."""
        found: list[int] = self.items.positions(self.items.alike(text)).tolist()
        words = text.lower().split()
        titles = [] if self.titles is None or not words else self.titles.tolist()
        by_title = [column for column, title in enumerate(titles) if title and _has_words(title.lower(), words)]
        found += sorted(by_title, key=lambda column: -self.counts[column])[: _FEW - len(found)]
        return list(dict.fromkeys(found))

    def _with_title(self, column: int) -> str:
        title = "" if self.titles is None else readable(self.titles[column])
        return f"{self.items.values[column]}{f' {title}' if title else ''}"

    def examples(self, text: str) -> str:
        """Return how many items there are, and some ids that look like `text`."""
        return f": it has {len(self.items):,} items{near(text, self.items)}"


def _has_words(title: str, words: Sequence[str]) -> bool:
    """Tell whether a title has all of some words: numbers as they are, others anywhere."""
    return all(word in (title.split() if word.isdigit() else title) for word in words)


def readable(text: Any) -> str:
    """Return a title or an id on one line, without anything that a terminal would obey; nothing if there is none."""
    if text is None:
        return ""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in str(text)).split())


def near(text: str, ids: Ids) -> str:
    """Return the ids that look like `text`, as a hint."""
    if alike := ids.alike(text):
        return f"; did you mean {', '.join(map(str, alike))}?"
    if ids.kind == "int" or len(ids) > 200_000:  # a number is like any other number
        return f", such as {', '.join(map(str, ids.values[:_FEW]))}"
    found = get_close_matches(text, ids.values.tolist(), n=_FEW) or ids.values[:_FEW].tolist()
    return f", such as {', '.join(found)}"


def opened(
    path: Path, dials: Mapping[str, float] | None = None, *, verify: bool = False
) -> tuple[Saved, HistoryRecommender]:
    """Open a model, and change its dials as asked."""
    saved = open_model(path, verify=verify)
    if not dials:
        return saved, saved.model
    named = ", ".join(f"--{name.replace('_', '-')}" for name in dials)
    return saved, linear(saved.model, named).with_dials(**dials)


def standing(model: HistoryRecommender) -> dict[str, float | None]:
    """Return the values of a model's dials, as the service answers them; None where it has none."""
    return {dial.name: getattr(model, dial.name) if dial.name in model.dials else None for dial in DIALS}


def in_signs(answer: Mapping[str, Any]) -> str:
    """Return the dials of an answer as a person reads them, such as "ξ = 0.4, α = 0.1"; ξ is there even if it is 0."""
    values = ((dial, answer[dial.name]) for dial in DIALS)
    return ", ".join(
        f"{dial.label} = {value:g}" for dial, value in values if value or (dial.name == "xi" and value is not None)
    )


def linear(model: HistoryRecommender, what: str) -> Any:
    """Return a linear autoencoder; any other model is an error that names what needs one."""
    if not isinstance(model, LinearAutoencoder):
        raise DataError(f"{what} needs a linear autoencoder such as RDLAE, and this model is a {type(model).__name__}")
    return model


def known_users(saved: Saved) -> str:
    """Say what a folder tells of the users of the fit."""
    if saved.info["data"]["histories"]:
        seen, dropped = saved.info["data"].get("seen", 0), saved.histories.dropped if saved.histories else None
        more = f"; {seen:,} pairs that they have seen beside these are never recommended" if seen else ""
        if dropped is not None:
            by_filter = (f"{count:,} by {reason}" for reason, count in dropped.counts().items())
            more += f"; dropped before the fit: {', '.join(by_filter)}"
        return f"by their ids, with their histories{more}"
    if saved.model.holds_histories:
        return "without their ids, but what each of them has is part of the model, for anyone to read"
    return "not kept: a history is all it takes"


def own_facts(model: HistoryRecommender) -> dict[str, str]:
    """Return what a model says of its fit, but for the data, which a folder tells more of."""
    return {name: text for name, text in model.facts().items() if name != "fitted to"}


def more_facts(model: LinearAutoencoder) -> dict[str, str]:
    """Return what a linear model has beyond the paper, in words: norms, and features; nothing where it has none."""
    beyond = (parameter for parameter in FAMILY if parameter.title)
    values = {each: getattr(model, f"{each.name}_" if each.kind == "fit" else each.name) for each in beyond}
    return {
        "norms": ", ".join(f"{each.title} {each.symbol} {value:g}" for each, value in values.items() if value),
        "features": _features(model),
    }


def _features(model: LinearAutoencoder) -> str:
    features = model.item_features_
    if features is None:
        return ""
    known = int(np.count_nonzero(np.diff(features.indptr)))
    return f"{features.shape[1]:,}, of {known:,} items; each counts {model.feature_weight_:g} beside a user"
