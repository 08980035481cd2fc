"""With a model."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from relae.cli._options import (
    FormatOption,
    Given,
    HistoryFileOption,
    HistoryOption,
    JsonOption,
    ModelArgument,
    OutOption,
    UserIdOption,
    UserIdsOption,
    takes_columns,
    takes_dials,
    takes_history_columns,
    takes_limits,
)
from relae.serve import Settings

TITLE = "With a model"
_HISTORY = "Whose history"
_ITEMS = "Which items"


class By(StrEnum):
    """Which weights come first."""

    WEIGHT = "weight"
    MAGNITUDE = "magnitude"


class Supports(StrEnum):
    """Which items explain an item in a compact model."""

    COSINE = "cosine"
    COUNT = "count"
    WEIGHTS = "weights"


@takes_history_columns
@takes_dials
def recommend(
    model: ModelArgument,
    history: HistoryOption = None,
    history_file: HistoryFileOption = None,
    users: UserIdsOption = None,
    all_users: Annotated[
        bool, typer.Option("--all-users", help="Every user whose history the model has kept.", rich_help_panel=_HISTORY)
    ] = False,
    histories: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="Every user of a table with a row per user and item.", rich_help_panel=_HISTORY
        ),
    ] = None,
    *,
    columns: Given,
    k: Annotated[int, typer.Option(help="Items for each history.")] = 10,
    dials: Given,
    allow: Annotated[
        str | None, typer.Option(help="Only these items, separated by commas.", rich_help_panel=_ITEMS)
    ] = None,
    allow_file: Annotated[
        Path | None, typer.Option(help="A file of such items, one per line.", rich_help_panel=_ITEMS)
    ] = None,
    deny: Annotated[
        str | None, typer.Option(help="Never these items, separated by commas.", rich_help_panel=_ITEMS)
    ] = None,
    deny_file: Annotated[
        Path | None, typer.Option(help="A file of such items, one per line.", rich_help_panel=_ITEMS)
    ] = None,
    include_seen: Annotated[
        bool,
        typer.Option(
            "--include-seen",
            help="Items of the history too, and what users have seen beside it.",
            rich_help_panel=_ITEMS,
        ),
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say because of which items of the history.")] = False,
    as_json: JsonOption = False,
    out: OutOption = None,
    row_format: FormatOption = None,
    with_titles: Annotated[
        bool, typer.Option("--with-titles", help="A column of titles too.", rich_help_panel="Where to")
    ] = False,
) -> None:
    """Recommend items to a history, to users by their ids, or to all users at once.

    A few lists are shown to read; --all-users, --histories, --out and --format write rows user, rank, item, score
    (CSV on stdout if nothing else is said), list after list, in little memory however many users there are.
    """
    from relae.cli import _recommend
    from relae.cli._histories import combine_ids

    request = _recommend.Request(
        history,
        history_file,
        users,
        all_users,
        histories,
        columns,
        k,
        dials,
        combine_ids(allow, allow_file),
        combine_ids(deny, deny_file),
        not include_seen,
        explain,
        with_titles,
        as_json,
        out,
        row_format,
    )
    _recommend.recommend(model, request)


def similar(
    model: ModelArgument,
    items: Annotated[list[str], typer.Argument(metavar="ITEM...", help="Ids of items.")],
    k: Annotated[int, typer.Option(help="Items for each of them.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Show what goes together with an item once all others are accounted for (partial correlation; ξ has no say)."""
    from relae.cli import _similar

    _similar.similar(model, items, k, as_json=as_json)


@takes_dials
def explain(
    model: ModelArgument,
    item: Annotated[str, typer.Option(metavar="ID", help="The item whose score is to be explained.")],
    dials: Given,
    history: HistoryOption = None,
    history_file: HistoryFileOption = None,
    user: UserIdOption = None,
    k: Annotated[int, typer.Option(help="Items of the history to show; --json has all.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Show what each item of a history adds to the score of an item: an exact sum."""
    from relae.cli import _explain

    _explain.explain(model, item, dials, history=history, history_file=history_file, user=user, k=k, as_json=as_json)


@takes_dials
def export(
    model: ModelArgument,
    dials: Given,
    out: OutOption = None,
    row_format: FormatOption = None,
    top: Annotated[int, typer.Option(help="Weights per item.")] = 100,
    by: Annotated[
        By, typer.Option(help="The largest first: by weight, or by magnitude, which keeps negative ones too.")
    ] = By.WEIGHT,
) -> None:
    """Write the item-to-item weights as rows item, rank, other, weight, to serve from a store of your own.

    The score of an item for a history is the sum of the weights towards it: score(other) = Σ weight(item → other)
    over the items of the history. Leave out the items of the history, and show the others by falling score.
    """
    from relae.cli import _export

    _export.export(model, dials, top=top, by=by, out=out, asked_format=row_format)


@takes_columns
def compact(
    model: ModelArgument,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The folder of the small model.")],
    columns: Given,
    per_item: Annotated[int, typer.Option(help="Items that explain an item, itself included.")] = 200,
    supports: Annotated[
        Supports, typer.Option(help="Which items: nearest by cosine or count of co-occurrence, or of largest weight.")
    ] = Supports.COSINE,
    data: Annotated[
        str | None, typer.Option(metavar="DATA", help="The data of the fit, if the model has not kept its histories.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="Judge both by the users of this data who are new, and show the loss."),
    ] = None,
    hide: Annotated[float, typer.Option(help="With --on: the share of each user's items to hide and find.")] = 0.2,
    seed: Annotated[int, typer.Option(help="With --on: of what is hidden.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Turn a model into a sparse one for cheap serving: each item is explained by a few others, and ξ stays free."""
    from relae.cli import _compact

    _compact.compact(
        model,
        out,
        per_item=per_item,
        supports=supports,
        data=data,
        on=on,
        columns=columns,
        hide=hide,
        seed=seed,
        as_json=as_json,
    )


def inspect(
    model: ModelArgument,
    verify: Annotated[bool, typer.Option("--verify", help="Read all of it, and check every checksum.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what is in a model folder: parameters, data, precision, arrays, and its most popular items."""
    from relae.cli import _inspect

    _inspect.inspect(model, verify=verify, as_json=as_json)


@takes_limits
def serve(
    model: ModelArgument,
    limits: Given,
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 lets other machines in.")] = Settings.host,
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = Settings.port,
    workers: Annotated[int, typer.Option(help="Processes that answer; they share the model.")] = Settings.workers,
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar="RELAE_API_KEY",
            help="What every request must show. Better in the environment, where other users do not see it.",
        ),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="An origin whose pages may ask, such as https://shop.example; repeatable."),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A name that it answers to, such as recommend.example, or * for all; repeatable. Without one, it "
            "answers over loopback only to local names.",
        ),
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Check every checksum whenever a model is opened.")] = False,
    in_memory: Annotated[
        bool, typer.Option("--in-memory", help="Read the model into each worker's memory instead of mapping its files.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No line per request on stderr.")] = False,
    threads: Annotated[
        int, typer.Option(help="Threads of each worker; more workers usually serve more.")
    ] = Settings.threads,
    client_seconds: Annotated[
        int, typer.Option(help="How long a client may take for headers, for a body, and to read the answer.")
    ] = Settings.client_seconds,
    wait_seconds: Annotated[
        int, typer.Option(help="How long a request may wait for the model before it is answered with 503.")
    ] = Settings.wait_seconds,
    hang_seconds: Annotated[
        int, typer.Option(help="A worker that takes longer than this for a part of an answer is replaced.")
    ] = Settings.hang_seconds,
    stop_seconds: Annotated[
        int, typer.Option(help="How long requests under way may take when the service is stopped.")
    ] = Settings.stop_seconds,
) -> None:
    """Serve a model over HTTP, with a page to try it on: http://127.0.0.1:8000 unless told otherwise.

    SIGHUP, or POST /v1/reload with the API key, swaps in a model that was fitted anew to the same folder.
    """
    from relae.cli import _serve

    _serve.serve(
        path=model,
        host=host,
        port=port,
        workers=workers,
        api_key=api_key,
        cors=tuple(cors or ()),
        allowed_hosts=tuple(allowed_host or ()),
        verify=verify,
        in_memory=in_memory,
        log=not quiet,
        threads=threads,
        client_seconds=client_seconds,
        wait_seconds=wait_seconds,
        hang_seconds=hang_seconds,
        stop_seconds=stop_seconds,
        **limits,
    )


COMMANDS = (recommend, similar, explain, export, compact, inspect, serve)
