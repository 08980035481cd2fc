"""The users whom a model knows by their ids, as arrays: what they have, what else they have seen, and who was dropped.

users                                                  the ids
histories_values, histories_columns, histories_starts  what they have; not there if the model has the same as `x`
histories_times                                        when, if that is known
seen_columns, seen_starts                              what they have seen beside it, if there is anything
dropped_users, dropped_reasons                         the ids of those whom filters dropped, and for each of them a
                                                       place in the record's list of filters
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, get_args

import numpy as np

from relae.data import Dropped, Ids, Interactions, Weighting
from relae.linalg import BYTES, INT64, Arrays, Expected, Layout, csr_from_parts, csr_layout, csr_parts
from relae.recommender import encode, shortened, text, whole

_OWN = "x"  # what the histories of the fit are called in a model that has them as they are


def user_arrays(histories: Interactions, items: Ids, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return users and their histories on the columns of a model, without the arrays that it has itself (`own`)."""
    encoded = encode(histories, items)
    parts = csr_parts("histories", encoded.matrix)
    arrays: dict[str, Any] = {"users": histories.users.encode()} | ({} if _has(own, parts) else parts)
    if encoded.times is not None:
        arrays["histories_times"] = encoded.times
    if encoded.seen is not None:
        seen = csr_parts("seen", encoded.seen)
        arrays |= {name: seen[name] for name in ("seen_columns", "seen_starts")}
    if histories.dropped is not None:
        arrays["dropped_users"] = histories.dropped.users.encode()
        arrays["dropped_reasons"] = histories.dropped.reasons
    return arrays


def user_facts(histories: Interactions | None, arrays: Mapping[str, Any], users_of_fit: Ids | None) -> dict[str, Any]:
    """Return what the record tells of these users, and whether they are those of the fit."""
    dropped = None if histories is None else histories.dropped
    return {
        "histories": histories is not None,
        "seen": len(arrays["seen_columns"]) if "seen_columns" in arrays else 0,
        "filters": [] if dropped is None else list(dropped.filters),
        **({} if histories is None else {"weighting": histories.weighting}),
        "user_ids": _where_user_ids_are(users_of_fit, histories),
    }


def _where_user_ids_are(users: Ids | None, histories: Interactions | None) -> str:
    """Return how a folder knows the users of the fit: by its histories, not at all, or because they had no ids.

    A folder without histories holds nothing by which a person could be told to be among the users.
    """
    if users is None:
        return "unknown"
    if users.positional:
        return "positions"
    if histories is None or len(histories.users) != len(users):
        return "unknown"
    same = histories.users is users or (histories.users.positions(users.values) >= 0).all()
    return "histories" if same else "unknown"


def users_of_fit(arrays: Arrays, facts: Mapping[str, Any], n_users: int) -> Ids | Callable[[], Ids] | None:
    """Return the ids of the users of the fit, or what decodes them; None if the folder does not tell who they were."""
    kept = facts.get("user_ids")
    if kept == "positions":
        return partial(Ids.range, n_users)
    if kept != "histories" or "users" not in arrays:
        return None
    return partial(Ids.decode, arrays["users"], _count(arrays))


def _count(arrays: Arrays) -> int:
    """Return how many users a folder has histories of."""
    return len(arrays["histories_starts" if "histories_starts" in arrays else f"{_OWN}_starts"]) - 1


def user_layout(names: Collection[str]) -> Layout:
    """Return what is expected of the arrays of users, where arrays of these names were saved."""
    if "users" not in names:
        return {}
    ids = Expected(INT64 + BYTES, ("",), may_be_empty=True)
    layout: dict[str, Expected] = {"users": ids}
    if "histories_starts" in names:
        layout |= csr_layout("histories", "known users")
    if "histories_times" in names:
        layout["histories_times"] = Expected(INT64, ("",), may_be_empty=True)
    if "seen_starts" in names:
        layout |= csr_layout("seen", "known users")
        del layout["seen_values"]
    if "dropped_users" in names:
        layout |= {"dropped_users": ids, "dropped_reasons": Expected(BYTES, ("dropped",), may_be_empty=True)}
    return layout


def check_user_facts(facts: Mapping[str, Any]) -> None:
    """Raise a ValueError or KeyError unless this is what `user_facts` tells; folders once had only the first of it."""
    if not isinstance(facts["histories"], bool):
        raise ValueError(f"histories is {shortened(facts['histories'])}, not true or false")
    whole({"seen": 0, **facts}, "seen")
    text({"user_ids": "unknown", **facts}, "user_ids", "histories", "positions", "unknown")
    text({"weighting": "linear", **facts}, "weighting", *get_args(Weighting))
    filters = facts.get("filters", [])
    if not isinstance(filters, list):
        raise ValueError(f"filters is {shortened(filters)}, not a list")
    for each in filters:
        text({"a filter": each}, "a filter")


def read_users(arrays: Arrays, facts: Mapping[str, Any], items: Ids) -> Interactions | None:
    """Return users with their histories, None if there are none; a ValueError or KeyError if the arrays are invalid."""
    if "users" not in arrays:
        return None
    name = "histories" if "histories_starts" in arrays else _OWN
    users = Ids.decode(arrays["users"], _count(arrays))
    shape = (len(users), len(items))
    seen = None
    if "seen_starts" in arrays:
        values = np.ones(len(arrays["seen_columns"]), np.uint8)
        seen = csr_from_parts("seen", {**arrays, "seen_values": values}, shape)
    dropped = None
    if "dropped_users" in arrays:
        reasons, filters = np.array(arrays["dropped_reasons"]), tuple(facts["filters"])
        if len(reasons) and not filters:
            raise ValueError(f"{len(reasons):,} users were dropped, and no filter is named")
        dropped = Dropped(Ids.decode(arrays["dropped_users"], len(reasons)), reasons, filters)
    matrix, times = csr_from_parts(name, arrays, shape), arrays.get("histories_times")
    if times is not None and len(times) != matrix.nnz:
        raise ValueError(f"histories_times has {len(times):,} times for {matrix.nnz:,} interactions")
    weighting = facts.get("weighting", "linear")
    return Interactions(matrix, users, items, times=times, seen=seen, dropped=dropped, weighting=weighting)


def _has(arrays: Mapping[str, Any], histories: Mapping[str, Any]) -> bool:
    """Return whether a model has these histories itself, so that they need not be there twice."""
    own = {name: name.replace("histories", _OWN) for name in histories}
    return all(own[name] in arrays and np.array_equal(arrays[own[name]], part) for name, part in histories.items())
