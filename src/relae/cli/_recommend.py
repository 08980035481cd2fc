"""`relae recommend`: a few lists to read, or those of millions of users as rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from relae._common.progress import Progress, of_part
from relae._common.words import in_count
from relae.cli import _histories
from relae.cli._catalog import Catalog, in_signs, linear, opened, readable, standing
from relae.cli._columns import Columns
from relae.cli._console import errors, output, print_json, show_table, table
from relae.cli._data import read
from relae.cli._histories import Asked
from relae.cli._main import as_options
from relae.cli._progress import progress_bar
from relae.cli._rows import Schema, id_series, id_type, row_format, write_rows
from relae.errors import DataError
from relae.linalg import Csr
from relae.models import Explanation
from relae.store import Saved

_ROWS_AT_ONCE = 250_000
_REASONS = 3


@dataclass(frozen=True)
class Request:
    """What is asked for; exactly one of the first five says whose history."""

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
    whose = _check(request)
    saved, model = opened(path, request.dials)
    if request.explain:
        linear(model, "--explain")
    catalog = Catalog(model)
    request = replace(request, k=catalog.places(request.k, "--k"))
    allow, deny = catalog.columns(request.allow, "--allow"), catalog.columns(request.deny, "--deny")
    asked = _asked(whose, request, saved, catalog)
    if not request.exclude_seen:
        asked = replace(asked, seen=None)
    options = {"k": request.k, "exclude_seen": request.exclude_seen, "allow": allow, "deny": deny}
    console = errors()
    if request.as_rows:
        _warn(console, catalog, asked)
        _write(console, catalog, asked, request, options)
        return
    answers = [_answer(catalog, asked, row, request, options) for row in range(asked.matrix.shape[0])]
    if request.as_json:
        single = len(answers) == 1
        print_json(
            answers[0] | {"suggestions": catalog.suggestions(asked.strangers)} if single else {"results": answers}
        )
        return
    _warn(console, catalog, asked)
    shown = output()
    for place, answer in enumerate(answers):
        if place:
            shown.print()
        _show(shown, answer, request.explain)


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
    whose = _histories.one_source(**sources)
    if request.as_rows:
        row_format(request.out, request.row_format)
        for name, given in (("--json", request.as_json), ("--explain", request.explain)):
            if given:
                raise DataError(f"{name} is for lists on the screen: leave it out, or leave --out and --format out")
    elif request.titles:
        raise DataError("--with-titles is for rows, with --out or --format; lists on the screen have titles anyway")
    return whose


def _asked(whose: str, request: Request, saved: Saved, catalog: Catalog) -> Asked:
    if whose == "history":
        return _histories.single(catalog, _histories.split_ids(request.history))
    if whose == "history_file":
        assert request.history_file is not None
        return _histories.single(catalog, _histories.read_ids(request.history_file))
    if whose == "for":
        return _histories.of_users(saved, request.users or [])
    if whose == "all_users":
        known = _histories.kept(saved)
        return Asked(known.matrix, known.users, seen=known.seen)
    assert request.histories is not None
    with errors().status(f"reading {request.histories}"):
        columns = Columns().but(request.columns).as_fitted()
        return _histories.of_table(catalog.model, read(request.histories, columns)[1])


def _warn(console: Console, catalog: Catalog, asked: Asked) -> None:
    """Say what was ignored, and who gets popular items for want of a history."""
    if asked.unknown:
        total = asked.unknown + asked.matrix.nnz
        which = f": {catalog.named(asked.strangers)}" if asked.strangers else ""
        console.print(
            f"{asked.unknown:,} of {total:,} items in the histories are unknown to the model, and ignored{which}",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )
    for reason, count in asked.dropped.items():
        words = f"{in_count(count, 'user')} of the table dropped by {as_options(reason)}: no rows for them"
        console.print(words, style="yellow", markup=False, soft_wrap=True)
    empty = int(np.count_nonzero(np.diff(asked.matrix.indptr) == 0))
    if empty and asked.users is not None:
        console.print(f"{in_count(empty, 'user')} without a known item: for them the most popular ones", style="yellow")


# --- lists to read -----------------------------------------------------------------------------------------------


def _answer(catalog: Catalog, asked: Asked, row: int, request: Request, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return one list as the service answers it."""
    model, history = catalog.model, asked.matrix[[row]]
    ids, scores = model.recommend(history, seen=None if asked.seen is None else asked.seen[[row]], **options)
    columns = ids[0][ids[0] >= 0].tolist()
    reasons = _reasons(catalog, history, columns) if request.explain else [{} for _ in columns]
    return {
        "items": [
            catalog.record(column) | {"score": float(score)} | reason
            for column, score, reason in zip(columns, scores[0], reasons, strict=False)
        ],
        **standing(model),
        "k": request.k,
        "user": None if asked.users is None else asked.users.take(np.array([row]))[0],
        "known": int(history.nnz),
        "unknown": list(asked.strangers),
        "popular": history.nnz == 0,
    }


def _reasons(catalog: Catalog, history: Csr, columns: Sequence[int]) -> list[dict[str, Any]]:
    explained: list[Explanation] = linear(catalog.model, "--explain").explain_all(
        history, catalog.items.take(np.array(columns, np.int64))
    )
    return [{"because": because(catalog, why, positive=True)[:_REASONS]} for why in explained]


def because(catalog: Catalog, why: Explanation, *, positive: bool = False) -> list[dict[str, Any]]:
    """Return what each item of a history adds to a score, the largest first."""
    columns = catalog.items.positions(why.items).tolist()
    return [
        {
            "item": item,
            "title": None if catalog.titles is None else catalog.titles[column],
            "share": float(share),
            "contribution": float(contribution),
        }
        for item, column, share, contribution in zip(why.items, columns, why.shares, why.contributions, strict=True)
        if contribution > 0 or not positive
    ]


def _show(console: Console, answer: Mapping[str, Any], explain: bool) -> None:
    who = "" if answer["user"] is None else f" for {escape(readable(answer['user']))}"
    source = "the most popular items" if answer["popular"] else f"by {in_count(answer['known'], 'item')}"
    how = ", ".join(part for part in (source, in_signs(answer)) if part)
    console.print(f"[bold]{in_count(len(answer['items']), 'item')}{who}[/bold] [dim]({how})[/dim]")
    has_titles = any(entry["title"] for entry in answer["items"])
    columns = [">", "item", *(["~title"] if has_titles else []), ">score", ">users", "group"]
    shown = table(*columns, *(["~because of"] if explain else []))
    for place, entry in enumerate(answer["items"], 1):
        cells = [Text(readable(entry["item"]))]
        if has_titles:
            cells.append(Text(readable(entry["title"])))
        cells += [Text(f"{entry['score']:.3f}"), Text(f"{entry['popularity']:,}")]
        cells.append(Text(entry["group"], style="green" if entry["group"] == "tail" else ""))
        if explain:
            cells.append(Text("\n".join(_reason(reason) for reason in entry["because"]), style="dim"))
        shown.add_row(Text(str(place), style="dim"), *cells)
    show_table(console, shown)


def _reason(reason: Mapping[str, Any]) -> str:
    return f"{reason['share']:>3.0%} {readable(reason['title']) or readable(reason['item'])}"


# --- rows --------------------------------------------------------------------------------------------------------


def _write(console: Console, catalog: Catalog, asked: Asked, request: Request, options: Mapping[str, Any]) -> None:
    with progress_bar(console) as progress:
        quiet = request.out is None and output().is_terminal  # a bar among the rows helps nobody
        frames = rows(catalog, asked, options, request.titles, None if quiet else progress)
        schema = _schema(catalog, asked, request.titles)
        count = write_rows(frames, schema, request.out, row_format(request.out, request.row_format))
    if request.out is not None:
        console.print(
            f"{request.out}: {in_count(count, 'row')} for {in_count(asked.matrix.shape[0], 'user')}",
            markup=False,
            soft_wrap=True,
        )


def rows(
    catalog: Catalog, asked: Asked, options: Mapping[str, Any], titles: bool, progress: Progress | None
) -> Iterator[pl.DataFrame]:
    """Give the lists of all histories as frames of bounded size, in the order of the histories."""
    model, total, k = catalog.model, asked.matrix.shape[0], options["k"]
    users = None if asked.users is None else id_series(asked.users)
    items = id_series(catalog.items)
    names = _title_series(catalog) if titles else None
    step = max(1, _ROWS_AT_ONCE // max(k, 1))
    for start in range(0, total, step):
        stop = min(start + step, total)
        part = of_part(progress, start, stop, total)
        seen = None if asked.seen is None else asked.seen[start:stop]
        ids, scores = model.recommend(asked.matrix[start:stop], seen=seen, progress=part, **options)
        row, place = np.nonzero(ids >= 0)
        columns = ids[row, place]
        yield pl.DataFrame(
            {
                **({} if users is None else {"user": users.gather(row + start)}),
                "rank": (place + 1).astype(np.int32),
                "item": items.gather(columns),
                **({} if names is None else {"title": names.gather(columns)}),
                "score": scores[row, place],
            }
        )


def _schema(catalog: Catalog, asked: Asked, titles: bool) -> Schema:
    _, scores = catalog.model.recommend(asked.matrix[:0], k=1)  # of nobody, for their type
    return {
        **({} if asked.users is None else {"user": id_type(asked.users)}),
        "rank": pl.Int32,
        "item": id_type(catalog.items),
        **({"title": pl.String} if titles else {}),
        "score": pl.Float32 if scores.dtype == np.float32 else pl.Float64,
    }


def _title_series(catalog: Catalog) -> pl.Series:
    """Return the titles of all items as a column, null where there is none."""
    titles: NDArray[Any] | None = catalog.titles
    listed = [None] * len(catalog.items) if titles is None else titles.tolist()
    return pl.Series(listed, dtype=pl.String)
