"""`relae update`, `forget`, `drop` and `rollback`: exact changes of a saved model, without a new fit."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.markup import escape

from relae import store
from relae._common.checks import check_whole
from relae._common.words import in_count
from relae.cli._console import error_console, make_facts, output_console, print_json
from relae.cli._histories import read_ids
from relae.cli._model import require
from relae.cli._progress import progress_bar
from relae.data import Interactions
from relae.errors import DataError
from relae.experiments import Columns, read_data
from relae.models import LinearAutoencoder
from relae.store import Saved

Changed = tuple[LinearAutoencoder, Interactions | None, Sequence[Any]]
"""A model after a change, the histories to keep with it, and the ids of who or what has changed."""


def update(
    path: Path,
    events: str,
    columns: Mapping[str, Any],
    *,
    data: str | None,
    keep: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Take later events of known and new users into a model."""

    def change(saved: Saved, model: LinearAutoencoder, known: Interactions | None, progress: Any) -> Changed:
        event_columns = Columns(**columns)
        if known is not None and event_columns.weight is not None and event_columns.weighting is None:
            event_columns = replace(event_columns, weighting=known.weighting)
        _, later = read_data(events, event_columns.check_weighting())
        updated = model.update(later, known, progress=progress)
        amounts = True if event_columns.weight is not None else None
        kept = None if saved.histories is None else saved.histories.joined(later, amounts=amounts)
        return updated, kept, later.users.values.tolist()

    _run("update", path, change, data=data, columns=columns, keep=keep, out=out, as_json=as_json)


def forget(
    path: Path,
    users: Sequence[str],
    file: Path | None,
    *,
    out: Path | None,
    as_json: bool,
) -> None:
    """Take users out of a model, and out of all that its folder holds."""
    ids = [*users, *(map(str, read_ids(file)) if file is not None else [])]
    if not ids:
        raise DataError("whom to forget? Give --user ID or --users FILE")

    def change(saved: Saved, model: LinearAutoencoder, known: Interactions | None, progress: Any) -> Changed:
        if known is None and not model.holds_histories:
            raise DataError(
                f"{saved.path} was saved without what its users had, which has to be taken from it: fit it again "
                "without them, or give their rows in Python: relae.load(…).forget(users, data)"
            )
        forgotten = model.forget(ids, known, progress=progress)
        return forgotten, None if saved.histories is None else saved.histories.without_users(ids), ids

    _run("forget", path, change, keep=0, out=out, as_json=as_json)


def drop(
    path: Path,
    items: Sequence[str],
    *,
    keep: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Take items out of a model."""

    def change(saved: Saved, model: LinearAutoencoder, known: Interactions | None, progress: Any) -> Changed:
        dropped = model.drop_items(items, known, progress=progress)
        return dropped, None if saved.histories is None else saved.histories.without_items(items), items

    _run("drop", path, change, keep=keep, out=out, as_json=as_json)


def rollback(path: Path, *, as_json: bool) -> None:
    """Go back to the version of a model before its last change."""
    store.open_model(path)
    store.roll_back(path)
    saved = store.open_model(path)
    if as_json:
        print_json({"path": str(path), "change": saved.history[-1], "earlier": saved.earlier})
        return
    output_console().print(make_facts({**_describe(saved), "earlier": _describe_earlier(saved)}))


def _run(
    what: str,
    path: Path,
    change: Callable[[Saved, LinearAutoencoder, Interactions | None, Any], Changed],
    *,
    keep: int,
    out: Path | None,
    as_json: bool,
    data: str | None = None,
    columns: Mapping[str, Any] | None = None,
) -> None:
    """Change a model, save it where it was or elsewhere, and show the certificate."""
    check_whole("keep", keep, 0)
    target_path, console = path if out is None else out, error_console()
    is_in_place = target_path.resolve() == path.resolve()
    started = time.perf_counter()
    store.open_model(path)  # before a folder is made
    with store.reserve(target_path) as target, nullcontext() if is_in_place else store.reserve(path):
        saved = store.open_model(path)
        model: LinearAutoencoder = require(saved.model, isinstance(saved.model, LinearAutoencoder), what)
        known = saved.histories
        if data is not None:
            with console.status(f"reading {data}"):
                _, known = read_data(data, Columns(**(columns or {})).check_weighting())
        with progress_bar(console) as progress:
            changed, kept, ids = change(saved, model, known, progress)
            certificate = store.Change(what, tuple(ids), model.residual_, changed.residual_)
            store.save(
                changed,
                target,
                histories=kept,
                title=saved.info["title"],
                progress=progress,
                change=certificate,
                keep=keep if is_in_place else 0,
            )
    seconds, after = time.perf_counter() - started, store.open_model(target_path)
    line = after.history[-1]
    if as_json:
        answer = {"path": str(target_path), "change": line, "salt": certificate.salt, "earlier": after.earlier}
        print_json({**answer, "seconds": seconds})
        return
    rows = {
        **_describe(after),
        "change": f"{in_count(line['rows'], 'item' if what == 'drop' else 'user')}, residual "
        f"{certificate.before:.0e} before and {certificate.after:.0e} after",
        "certificate": f"line {len(after.history)} of {after.path / 'history.jsonl'}; the digest of the ids has the "
        f"salt {certificate.salt}, which is kept nowhere else",
        "earlier": _describe_earlier(after),
        "time": f"{seconds:.1f} s",
    }
    output_console().print(make_facts(rows))
    if what == "forget" and not is_in_place:
        output_console().print(f"[yellow]{escape(str(path))} still holds these users: remove it[/yellow]")
    output_console().print("\n[dim]A running service takes it up with POST /v1/reload or SIGHUP.[/dim]")


def _describe(saved: Saved) -> dict[str, str]:
    data = saved.info["data"]
    return {
        "model": str(saved.model),
        "data": f"{data['users']:,} users × {data['items']:,} items, {data['interactions']:,} interactions",
        "saved in": str(saved.path),
    }


def _describe_earlier(saved: Saved) -> str:
    if not saved.earlier:
        return "no version is kept"
    return f"{in_count(saved.earlier, 'version')} kept: `relae rollback` goes back by one"
