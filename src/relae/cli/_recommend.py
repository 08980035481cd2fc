"""`relae recommend`: show a few lists, or write those of millions of users as rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from relae._common.progress import Progress, of_part
from relae._common.words import in_count
from relae.catalog import Catalog
from relae.cli import _histories
from relae.cli._console import errors, output, print_json, show_table, table
from relae.cli._histories import UserHistories
from relae.cli._items import find_columns, limit_k, name_unknown, readable
from relae.cli._messages import render_filter
from relae.cli._model import open_with_dials, require, show_dials
from relae.cli._progress import progress_bar
from relae.cli._rows import Schema, id_series, id_type, row_format, write_rows
from relae.errors import DataError
from relae.experiments import Columns, read_data
from relae.models import dial_values
from relae.store import Saved

_ROWS_AT_ONCE = 250_000


@dataclass(frozen=True)
class Request:
    """The options of the command; exactly one of the first five says whose history."""

    history: str | None = None
    history_file: Path | None = None
    users: Sequence[str] | None = None
    all_users: bool = False
    histories: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)  # of `histories`
    k: int = 10
    dials: Mapping[str, float] = field(default_factory=dict)
    allow: Sequence[str] | None = None
    deny: Sequence[str] | None = None
    exclude_seen: bool = True
    explain: bool = False
    titles: bool = False
    as_json: bool = False
    out: Path | None = None
    row_format: str | None = None

    @property
    def as_rows(self) -> bool:
        """Whether rows are to be written, rather than lists shown."""
        return self.all_users or self.histories is not None or self.out is not None or self.row_format is not None


def recommend(path: Path, request: Request) -> None:
    """Show lists, or write them as rows."""
    source = _check(request)
    saved, model = open_with_dials(path, request.dials)
    if request.explain:
        require(model, model.explains, "--explain")
    catalog = Catalog(model)
    request = replace(request, k=limit_k(catalog, request.k, "--k"))
    allow, deny = (find_columns(catalog, getattr(request, name), f"--{name}") for name in ("allow", "deny"))
    histories = _read_histories(source, request, saved, catalog)
    if not request.exclude_seen:
        histories = replace(histories, seen=None)
    options = {"k": request.k, "exclude_seen": request.exclude_seen, "allow": allow, "deny": deny}
    console = errors()
    if request.as_rows:
        _warn(console, catalog, histories)
        _write(console, catalog, histories, request, options)
        return
    answers = [_answer(catalog, histories, row, request, options) for row in range(histories.matrix.shape[0])]
    if request.as_json:
        suggestions = {"suggestions": catalog.suggestions(histories.unknown_items)}
        print_json(answers[0] | suggestions if len(answers) == 1 else {"results": answers})
        return
    _warn(console, catalog, histories)
    screen = output()
    for number, answer in enumerate(answers):
        if number:
            screen.print()
        _show(screen, answer, request.explain)


def _check(request: Request) -> str:
    """Return which option says whose history; options that do not go together are an error."""
    sources = {
        "history": request.history,
        "history_file": request.history_file,
        "for": request.users,
        "all_users": request.all_users,
        "histories": request.histories,
    }
    if request.columns and request.histories is None:
        [(name, value), *_] = request.columns.items()
        hint = f"; a user by id is --for {value}" if name == "user" else ""
        raise DataError(f"--{name.replace('_', '-')} names a column of --histories TABLE, which is not given{hint}")
    source = _histories.check_source(**sources)
    if request.as_rows:
        row_format(request.out, request.row_format)
        for name, used in (("--json", request.as_json), ("--explain", request.explain)):
            if used:
                raise DataError(f"{name} is for lists on the screen: leave it out, or leave --out and --format out")
    elif request.titles:
        raise DataError("--with-titles is for rows, with --out or --format; lists on the screen have titles anyway")
    return source


def _read_histories(source: str, request: Request, saved: Saved, catalog: Catalog) -> UserHistories:
    if source == "history":
        return _histories.encode_single(catalog, _histories.split_ids(request.history))
    if source == "history_file":
        assert request.history_file is not None
        return _histories.encode_single(catalog, _histories.read_ids(request.history_file))
    if source == "for":
        return _histories.select_users(saved, request.users or [])
    if source == "all_users":
        known = _histories.saved_histories(saved)
        return UserHistories(known.matrix, known.users, seen=known.seen)
    assert request.histories is not None
    with errors().status(f"reading {request.histories}"):
        columns = Columns(**request.columns).check_weighting()
        return _histories.encode_table(catalog.model, read_data(request.histories, columns)[1])


def _warn(console: Console, catalog: Catalog, histories: UserHistories) -> None:
    """Say what was ignored, and how many users get popular items because they have no history."""
    if histories.unknown:
        total = histories.unknown + histories.matrix.nnz
        which = f": {name_unknown(catalog, histories.unknown_items)}" if histories.unknown_items else ""
        console.print(
            f"{histories.unknown:,} of {total:,} items in the histories are unknown to the model, and ignored{which}",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )
    for reason, count in histories.dropped.items():
        words = f"{in_count(count, 'user')} of the table dropped by {render_filter(reason)}: no rows for them"
        console.print(words, style="yellow", markup=False, soft_wrap=True)
    empty = int(np.count_nonzero(np.diff(histories.matrix.indptr) == 0))
    if empty and histories.users is not None:
        console.print(f"{in_count(empty, 'user')} without a known item: for them the most popular ones", style="yellow")


# --- lists to read -----------------------------------------------------------------------------------------------


def _answer(
    catalog: Catalog, histories: UserHistories, row: int, request: Request, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return one list in the form of the service's answers."""
    model, history = catalog.model, histories.matrix[[row]]
    seen = None if histories.seen is None else histories.seen[[row]]
    columns, scores = model.recommend(history, seen=seen, **options)
    items = catalog.recommended(columns[0].tolist(), scores[0].tolist())
    if request.explain:
        catalog.add_reasons(items, history, model)
    return {
        "items": items,
        **dial_values(model),
        "k": request.k,
        "user": None if histories.users is None else histories.users.take(np.array([row]))[0],
        "known": int(history.nnz),
        "unknown": list(histories.unknown_items),
        "popular": history.nnz == 0,
    }


def _show(console: Console, answer: Mapping[str, Any], explain: bool) -> None:
    who = "" if answer["user"] is None else f" for {escape(readable(answer['user']))}"
    source = "the most popular items" if answer["popular"] else f"by {in_count(answer['known'], 'item')}"
    how = ", ".join(part for part in (source, show_dials(answer)) if part)
    console.print(f"[bold]{in_count(len(answer['items']), 'item')}{who}[/bold] [dim]({how})[/dim]")
    has_titles = any(entry["title"] for entry in answer["items"])
    columns = [">", "item", *(["~title"] if has_titles else []), ">score", ">users", "group"]
    shown = table(*columns, *(["~because of"] if explain else []))
    for number, entry in enumerate(answer["items"], 1):
        cells = [Text(readable(entry["item"]))]
        if has_titles:
            cells.append(Text(readable(entry["title"])))
        cells += [Text(f"{entry['score']:.3f}"), Text(f"{entry['popularity']:,}")]
        cells.append(Text(entry["group"], style="green" if entry["group"] == "tail" else ""))
        if explain:
            cells.append(Text("\n".join(_reason(reason) for reason in entry["because"]), style="dim"))
        shown.add_row(Text(str(number), style="dim"), *cells)
    show_table(console, shown)


def _reason(reason: Mapping[str, Any]) -> str:
    return f"{reason['share']:>3.0%} {readable(reason['title']) or readable(reason['item'])}"


# --- rows --------------------------------------------------------------------------------------------------------


def _write(
    console: Console, catalog: Catalog, histories: UserHistories, request: Request, options: Mapping[str, Any]
) -> None:
    with progress_bar(console) as progress:
        quiet = request.out is None and output().is_terminal  # a bar among the rows helps nobody
        frames = rows(catalog, histories, options, request.titles, None if quiet else progress)
        schema = _schema(catalog, histories, request.titles)
        count = write_rows(frames, schema, request.out, row_format(request.out, request.row_format))
    if request.out is not None:
        console.print(
            f"{request.out}: {in_count(count, 'row')} for {in_count(histories.matrix.shape[0], 'user')}",
            markup=False,
            soft_wrap=True,
        )


def rows(
    catalog: Catalog, histories: UserHistories, options: Mapping[str, Any], titles: bool, progress: Progress | None
) -> Iterator[pl.DataFrame]:
    """Yield the lists of all histories as frames of bounded size, in the order of the histories."""
    model, total, k = catalog.model, histories.matrix.shape[0], options["k"]
    users = None if histories.users is None else id_series(histories.users)
    items = id_series(catalog.items)
    names = pl.Series(catalog.titles, dtype=pl.String) if titles else None
    step = max(1, _ROWS_AT_ONCE // max(k, 1))
    for start in range(0, total, step):
        stop = min(start + step, total)
        part = of_part(progress, start, stop, total)
        seen = None if histories.seen is None else histories.seen[start:stop]
        ids, scores = model.recommend(histories.matrix[start:stop], seen=seen, progress=part, **options)
        row, rank = np.nonzero(ids >= 0)
        columns = ids[row, rank]
        yield pl.DataFrame(
            {
                **({} if users is None else {"user": users.gather(row + start)}),
                "rank": (rank + 1).astype(np.int32),
                "item": items.gather(columns),
                **({} if names is None else {"title": names.gather(columns)}),
                "score": scores[row, rank],
            }
        )


def _schema(catalog: Catalog, histories: UserHistories, titles: bool) -> Schema:
    _, scores = catalog.model.recommend(histories.matrix[:0], k=1)  # of nobody, for their type
    return {
        **({} if histories.users is None else {"user": id_type(histories.users)}),
        "rank": pl.Int32,
        "item": id_type(catalog.items),
        **({"title": pl.String} if titles else {}),
        "score": pl.Float32 if scores.dtype == np.float32 else pl.Float64,
    }
