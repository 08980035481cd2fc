"""Histories for the command line: from an option, a file, saved users, or a table."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae.catalog import Catalog
from relae.cli._items import name_unknown, suggest, suggest_examples, suggest_similar_ids
from relae.cli._messages import render_filter
from relae.cli._parse import parse_names
from relae.data import Ids, Interactions
from relae.errors import DataError
from relae.linalg import Csr
from relae.recommender import HistoryRecommender, encode
from relae.store import Saved


@dataclass(frozen=True)
class UserHistories:
    """Histories on the columns of a model, their users, and the items that the model does not know."""

    matrix: Csr  # (users, items)
    users: Ids | None  # None for a history without a user
    unknown: int = 0
    unknown_items: Sequence[Any] = ()  # of a single history
    seen: Csr | None = None  # items outside the history that the users have seen : (users, items)
    dropped: Mapping[str, int] = field(default_factory=dict)  # number of users dropped from a table, by filter
    times: NDArray[np.int64] | None = None  # of the stored entries, or their places in a list; None if not known

    def part(self, start: int, stop: int) -> dict[str, Any]:
        """Return the histories of some users, as keywords of `recommend`."""
        first, last = self.matrix.indptr[start], self.matrix.indptr[stop]
        return {
            "histories": self.matrix[start:stop],
            "seen": None if self.seen is None else self.seen[start:stop],
            "times": None if self.times is None else self.times[first:last],
        }

    def describe_seen(self, column: int) -> str:
        """Return where the user of a single history has seen an item; an empty text if nowhere."""
        if column in self.matrix.indices:
            return "in the history"
        return "seen beside the history" if self.seen is not None and column in self.seen.indices else ""


def check_source(**options: Any) -> str:
    """Return the one option that specifies the history; raise if there is none, or more than one."""
    names = {name: f"--{name.replace('_', '-')}" for name in options}
    used = [name for name, value in options.items() if value not in (None, False, [])]
    if len(used) != 1:
        got = " and ".join(names[name] for name in used) or "nothing"
        raise DataError(f"whose history? Give one of {', '.join(names.values())}; got {got}")
    return used[0]


def read_ids(path: Path) -> Any:
    """Return the ids in a file: one per line, a JSON list, or a JSON object from ids to weights."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise DataError(f"{path} cannot be read: {reason}") from error
    if not text.lstrip().startswith(("[", "{")):
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        return json.loads(text)
    except ValueError as error:
        raise DataError(
            f"{path} begins like JSON and is none ({error}): give a list of ids, or an id per line"
        ) from error


def combine_ids(text: str | None, file: Path | None) -> list[str] | None:
    """Return the ids of an option and of its file together; None if neither is given."""
    if text is None and file is None:
        return None
    return [*(parse_names(text) or []), *(map(str, read_ids(file)) if file is not None else [])]


def encode_single(catalog: Catalog, history: Any) -> UserHistories:
    """Encode one history, a list of ids or a mapping from ids to weights; raise if all of its items are unknown."""
    encoded = encode(history, catalog.items)
    if not encoded.single:
        raise DataError("several histories at once come as a table: --histories TABLE")
    ids = list(history)
    unknown = [ids[position] for position in np.flatnonzero(catalog.items.positions(ids) < 0)]
    if ids and len(unknown) == len(ids):
        hint = "" if any(suggest(catalog, item) for item in unknown[:3]) else suggest_examples(catalog, str(ids[0]))
        raise DataError(f"the model knows no item of the history, {name_unknown(catalog, unknown)}{hint}")
    return UserHistories(encoded.matrix, None, encoded.unknown, unknown, times=encoded.times)


def select_users(saved: Saved, users: Sequence[str]) -> UserHistories:
    """Return the saved histories of some users."""
    known = require_histories(saved)
    users = list(dict.fromkeys(users))
    rows = known.users.positions(users)
    for user, row in zip(users, rows.tolist(), strict=True):
        if row >= 0:
            continue
        reason = None if known.dropped is None else known.dropped.why(user)
        if reason is not None:
            raise DataError(
                f"user {user!r} was dropped by {render_filter(reason)} before the fit: give a --history instead"
            )
        hint = suggest_similar_ids(user, known.users)
        raise DataError(f"user {user!r} is unknown to the model: it has {len(known.users):,}{hint}")
    selected = known.select_users(rows)
    return UserHistories(selected.matrix, selected.users, seen=selected.seen, times=selected.times)


def require_histories(saved: Saved) -> Interactions:
    """Return the histories of the training users; raise if they were not saved."""
    if saved.histories is None:
        raise DataError(
            f"{saved.path} was saved without the users' histories: give a --history, or fit it again with --histories"
        )
    return saved.histories


def encode_table(model: HistoryRecommender, data: Interactions) -> UserHistories:
    """Encode the histories of all users of a table."""
    encoded = encode(data, model.items_)
    dropped = {} if data.dropped is None else data.dropped.counts()
    return UserHistories(
        encoded.matrix, data.users, encoded.unknown, seen=encoded.seen, dropped=dropped, times=encoded.times
    )
