"""Open, check and describe a saved model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from relae.errors import DataError
from relae.models import DIALS, FAMILY
from relae.recommender import HistoryRecommender
from relae.store import Saved, open_model


def open_with_dials(
    path: Path, dials: Mapping[str, float] | None = None, *, verify: bool = False
) -> tuple[Saved, HistoryRecommender]:
    """Open a saved model; return it, and a copy with the specified dials."""
    saved = open_model(path, verify=verify)
    if not dials:
        return saved, saved.model
    names = ", ".join(f"--{name.replace('_', '-')}" for name in dials)
    return saved, require(saved.model, dials.keys() <= set(saved.model.dials), names).with_dials(**dials)


def require(model: HistoryRecommender, ability: bool, feature: str) -> Any:
    """Return the model if it has an ability; raise otherwise, naming the command or option that needs it."""
    if not ability:
        raise DataError(
            f"{feature} needs a linear autoencoder such as RDLAE, and this model is a {type(model).__name__}"
        )
    return model


def format_dials(answer: Mapping[str, Any]) -> str:
    """Return the dials of a result as text, such as "ξ = 0.4, α = 0.1"; what changes nothing is left out, except ξ."""
    values = {dial: answer[dial.name] for dial in DIALS if dial.name != "fresh_days" or answer["freshness"]}
    return ", ".join(
        f"{dial.label} = {value:g}"
        for dial, value in values.items()
        if value or (dial.name == "xi" and value is not None)
    )


def describe_users(saved: Saved) -> str:
    """Describe the data on its training users that a model folder contains."""
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


def describe_fit(model: HistoryRecommender) -> dict[str, str]:
    """Return the facts about the fit of a model, without its data, which is shown separately."""
    return {name: text for name, text in model.facts().items() if name != "fitted to"}


def describe_extensions(model: Any) -> dict[str, str]:
    """Describe the norms and features of a closed-form model, if it has any."""
    extensions = (parameter for parameter in FAMILY if parameter.title)
    values = {each: getattr(model, f"{each.name}_" if each.kind == "fit" else each.name) for each in extensions}
    norms = ", ".join(f"{each.title} {each.symbol} {value:g}" for each, value in values.items() if value)
    described = {"norms": norms, "features": _describe_features(model)}
    return {name: text for name, text in described.items() if text}


def _describe_features(model: Any) -> str:
    features = model.item_features_
    if features is None:
        return ""
    known = int(np.count_nonzero(np.diff(features.indptr)))
    return f"{features.shape[1]:,}, of {known:,} items; each counts {model.feature_weight_:g} beside a user"
