"""`relae recommend`: show a few lists, or write the lists of many users as rows."""

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
from relae.catalog import IN_DEMAND, Catalog
from relae.cli import _histories
from relae.cli._console import error_console, make_table, output_console, print_json, show_table
from relae.cli._histories import UserHistories
from relae.cli._items import clean_text, find_columns, limit_k, name_unknown
from relae.cli._messages import render_filter
from relae.cli._model import format_dials, open_with_dials, require
from relae.cli._parse import parse_names
from relae.cli._progress import progress_bar
from relae.cli._rows import Schema, choose_format, get_id_type, make_id_series, write_rows
from relae.errors import DataError
from relae.experiments import Columns, read_data
from relae.models import dial_values
from relae.store import Saved

_ROWS_AT_ONCE = 250_000


@dataclass(frozen=True)
class Request:
    """The options of the command; exactly one of the first five specifies the histories."""

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
        """True if the lists are written as rows instead of shown."""
        return self.all_users or self.histories is not None or self.out is not None or self.row_format is not None


def recommend(path: Path, request: Request) -> None:
    """Show lists, or write them as rows."""
    source = _check_request(request)
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
    console = error_console()
    if request.as_rows:
        _warn(console, catalog, histories)
        _write_lists(console, catalog, histories, request, options)
        return
    lists = [_make_list(catalog, histories, row, request, options) for row in range(histories.matrix.shape[0])]
    if request.as_json:
        suggestions = {"suggestions": catalog.suggestions(histories.unknown_items)}
        print_json(lists[0] | suggestions if len(lists) == 1 else {"results": lists})
        return
    _warn(console, catalog, histories)
    screen = output_console()
    for number, recommendations in enumerate(lists):
        if number:
            screen.print()
        _show(screen, recommendations, request.explain)


def _check_request(request: Request) -> str:
    """Return the option that specifies the histories; raise if options contradict each other."""
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
        choose_format(request.out, request.row_format)
        for name, is_set in (("--json", request.as_json), ("--explain", request.explain)):
            if is_set:
                raise DataError(f"{name} is for lists on the screen: leave it out, or leave --out and --format out")
    elif request.titles:
        raise DataError("--with-titles is for rows, with --out or --format; lists on the screen have titles anyway")
    return source


def _read_histories(source: str, request: Request, saved: Saved, catalog: Catalog) -> UserHistories:
    if source == "history":
        return _histories.encode_single(catalog, parse_names(request.history))
    if source == "history_file":
        assert request.history_file is not None
        return _histories.encode_single(catalog, _histories.read_ids(request.history_file))
    if source == "for":
        return _histories.select_users(saved, request.users or [])
    if source == "all_users":
        known = _histories.require_histories(saved)
        return UserHistories(known.matrix, known.users, seen=known.seen, times=known.times)
    assert request.histories is not None
    with error_console().status(f"reading {request.histories}"):
        columns = Columns(**request.columns).check_weighting()
        return _histories.encode_table(catalog.model, read_data(request.histories, columns)[1])


def _warn(console: Console, catalog: Catalog, histories: UserHistories) -> None:
    """Print which items were ignored, which users were dropped, and how many users get the most popular items."""
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


# Lists


def _make_list(
    catalog: Catalog, histories: UserHistories, row: int, request: Request, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the list of one user, in the same form as a response of the service."""
    model, part = catalog.model, histories.part(row, row + 1)
    history = part["histories"]
    columns, scores = model.recommend(**part, **options)
    items = catalog.recommended(columns[0].tolist(), scores[0].tolist())
    if request.explain:
        catalog.add_reasons(items, history, model, part["times"])
    return {
        "items": items,
        **dial_values(model),
        "k": request.k,
        "user": None if histories.users is None else histories.users.take(np.array([row]))[0],
        "known": int(history.nnz),
        "unknown": list(histories.unknown_items),
        "popular": history.nnz == 0,
    }


def _show(console: Console, recommendations: Mapping[str, Any], explain: bool) -> None:
    who = "" if recommendations["user"] is None else f" for {escape(clean_text(recommendations['user']))}"
    source = (
        "the most popular items" if recommendations["popular"] else f"by {in_count(recommendations['known'], 'item')}"
    )
    how = ", ".join(part for part in (source, format_dials(recommendations)) if part)
    console.print(f"[bold]{in_count(len(recommendations['items']), 'item')}{who}[/bold] [dim]({how})[/dim]")
    has_titles = any(entry["title"] for entry in recommendations["items"])
    columns = [">", "item", *(["~title"] if has_titles else []), ">score", ">users", "group"]
    shown = make_table(*columns, *(["~because of"] if explain else []))
    for number, entry in enumerate(recommendations["items"], 1):
        cells = [Text(clean_text(entry["item"]))]
        if has_titles:
            cells.append(Text(clean_text(entry["title"])))
        cells += [Text(f"{entry['score']:.3f}"), Text(f"{entry['popularity']:,}")]
        cells.append(Text(entry["group"], style="green" if entry["group"] == "tail" else ""))
        if explain:
            reasons = [_format_reason(reason) for reason in entry["because"]]
            if entry.get("demand_share"):
                reasons.append(f"{entry['demand_share']:>3.0%} {IN_DEMAND}")
            cells.append(Text("\n".join(reasons), style="dim"))
        shown.add_row(Text(str(number), style="dim"), *cells)
    show_table(console, shown)


def _format_reason(reason: Mapping[str, Any]) -> str:
    return f"{reason['share']:>3.0%} {clean_text(reason['title']) or clean_text(reason['item'])}"


# Rows


def _write_lists(
    console: Console, catalog: Catalog, histories: UserHistories, request: Request, options: Mapping[str, Any]
) -> None:
    with progress_bar(console) as progress:
        quiet = request.out is None and output_console().is_terminal  # no bar between rows on the same terminal
        frames = make_frames(catalog, histories, options, request.titles, None if quiet else progress)
        schema = _make_schema(catalog, histories, request.titles)
        count = write_rows(frames, schema, request.out, choose_format(request.out, request.row_format))
    if request.out is not None:
        console.print(
            f"{request.out}: {in_count(count, 'row')} for {in_count(histories.matrix.shape[0], 'user')}",
            markup=False,
            soft_wrap=True,
        )


def make_frames(
    catalog: Catalog, histories: UserHistories, options: Mapping[str, Any], titles: bool, progress: Progress | None
) -> Iterator[pl.DataFrame]:
    """Yield the lists of all histories as frames of bounded size, in the order of the histories."""
    model, total, k = catalog.model, histories.matrix.shape[0], options["k"]
    users = None if histories.users is None else make_id_series(histories.users)
    items = make_id_series(catalog.items)
    names = pl.Series(catalog.titles, dtype=pl.String) if titles else None
    step = max(1, _ROWS_AT_ONCE // max(k, 1))
    for start in range(0, total, step):
        stop = min(start + step, total)
        part = of_part(progress, start, stop, total)
        ids, scores = model.recommend(**histories.part(start, stop), progress=part, **options)
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


def _make_schema(catalog: Catalog, histories: UserHistories, titles: bool) -> Schema:
    _, scores = catalog.model.recommend(histories.matrix[:0], k=1)  # no users: only the dtype is needed
    return {
        **({} if histories.users is None else {"user": get_id_type(histories.users)}),
        "rank": pl.Int32,
        "item": get_id_type(catalog.items),
        **({"title": pl.String} if titles else {}),
        "score": pl.Float32 if scores.dtype == np.float32 else pl.Float64,
    }
