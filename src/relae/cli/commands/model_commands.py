"""Commands that work on a saved model."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from relae.cli._options import (
    FormatOption,
    HistoryFileOption,
    HistoryOption,
    JsonOption,
    ModelArgument,
    OptionValues,
    OutOption,
    UserIdOption,
    UserIdsOption,
    add_column_options,
    add_dial_options,
    add_history_column_options,
    add_limit_options,
)
from relae.serve import Settings

TITLE = "With a model"
_HISTORY = "History"
_ITEMS = "Items"


KeepOption = Annotated[int, typer.Option(help="The number of earlier versions to keep in the folder.")]
ChangedOption = Annotated[
    Path | None,
    typer.Option(metavar="MODEL", help="Save the result in this folder instead, and leave the model as it is."),
]


class By(StrEnum):
    """Orders of weights."""

    WEIGHT = "weight"
    MAGNITUDE = "magnitude"


class Supports(StrEnum):
    """Rules to select the items that explain an item in a compact model."""

    COSINE = "cosine"
    COUNT = "count"
    WEIGHTS = "weights"


@add_history_column_options
@add_dial_options
def recommend(
    model: ModelArgument,
    history: HistoryOption = None,
    history_file: HistoryFileOption = None,
    users: UserIdsOption = None,
    all_users: Annotated[
        bool,
        typer.Option(
            "--all-users",
            help="Recommend to all users whose histories are saved with the model.",
            rich_help_panel=_HISTORY,
        ),
    ] = False,
    histories: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Recommend to all users of a table, which has one row per user and item.",
            rich_help_panel=_HISTORY,
        ),
    ] = None,
    *,
    columns: OptionValues,
    k: Annotated[int, typer.Option(help="The number of items to recommend.")] = 10,
    dials: OptionValues,
    allow: Annotated[
        str | None, typer.Option(help="Recommend only these items, separated by commas.", rich_help_panel=_ITEMS)
    ] = None,
    allow_file: Annotated[
        Path | None, typer.Option(help="A file with the items of --allow, one per line.", rich_help_panel=_ITEMS)
    ] = None,
    deny: Annotated[
        str | None, typer.Option(help="Never recommend these items, separated by commas.", rich_help_panel=_ITEMS)
    ] = None,
    deny_file: Annotated[
        Path | None, typer.Option(help="A file with the items of --deny, one per line.", rich_help_panel=_ITEMS)
    ] = None,
    include_seen: Annotated[
        bool,
        typer.Option(
            "--include-seen",
            help="Also recommend items of the history, and other items that the user has seen.",
            rich_help_panel=_ITEMS,
        ),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show which items of the history are the reason for each recommendation.")
    ] = False,
    as_json: JsonOption = False,
    out: OutOption = None,
    row_format: FormatOption = None,
    with_titles: Annotated[
        bool, typer.Option("--with-titles", help="Add a column of titles to the rows.", rich_help_panel="Output")
    ] = False,
) -> None:
    """Recommend items for a history, for users by their ids, or for all users at once.

    Lists are shown in the terminal. With --all-users, --histories, --out or --format, they are written as rows with the
    columns user, rank, item and score instead: by default as CSV to stdout. This needs little memory, even for very
    many users.
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
    items: Annotated[list[str], typer.Argument(metavar="ITEM...", help="The ids of the items.")],
    k: Annotated[int, typer.Option(help="The number of similar items to show for each item.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Show the items most similar to an item, by partial correlation given all other items; ξ has no effect."""
    from relae.cli import _similar

    _similar.similar(model, items, k, as_json=as_json)


@add_dial_options
def explain(
    model: ModelArgument,
    item: Annotated[str, typer.Option(metavar="ID", help="The item whose score to explain.")],
    dials: OptionValues,
    history: HistoryOption = None,
    history_file: HistoryFileOption = None,
    user: UserIdOption = None,
    k: Annotated[int, typer.Option(help="The number of items of the history to show; --json prints all.")] = 20,
    users: Annotated[
        int,
        typer.Option(
            "--users",
            metavar="N",
            help="Also show the N users of the fit without whom the score would change most, and by how much.",
        ),
    ] = 0,
    counterfactual: Annotated[
        int,
        typer.Option(
            "--counterfactual",
            metavar="N",
            help="Also show the smallest set of items of the history without which the item would not be among the "
            "first N.",
        ),
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Show how much each item of a history adds to the score of an item; the parts sum exactly to the score."""
    from relae.cli import _explain

    _explain.explain(
        model,
        item,
        dials,
        history=history,
        history_file=history_file,
        user=user,
        k=k,
        users=users,
        first=counterfactual,
        as_json=as_json,
    )


@add_dial_options
def export(
    model: ModelArgument,
    dials: OptionValues,
    out: OutOption = None,
    row_format: FormatOption = None,
    top: Annotated[int, typer.Option(help="The number of weights per item.")] = 100,
    by: Annotated[
        By,
        typer.Option(
            help="Keep the weights that are largest by value (weight), or by absolute value (magnitude), which keeps "
            "negative ones too."
        ),
    ] = By.WEIGHT,
) -> None:
    """Write the item-to-item weights as rows item, rank, other, weight, to serve them from your own database.

    The score of an item for a history is the sum of the weights to it: score(other) = Σ weight(item → other)
    over the items of the history. To recommend, drop the items of the history and sort the others by score.
    """
    from relae.cli import _export

    _export.export(model, dials, top=top, by=by, out=out, requested_format=row_format)


@add_column_options
def compact(
    model: ModelArgument,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The folder to save the small model in.")],
    columns: OptionValues,
    per_item: Annotated[int, typer.Option(help="The number of items that explain an item, including itself.")] = 200,
    supports: Annotated[
        Supports,
        typer.Option(
            help="How to select these items: by the cosine or the count of co-occurrence, or by the largest weights."
        ),
    ] = Supports.COSINE,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="The data that the model was fitted to; needed if its histories were not saved."
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Evaluate both models on the users of this data that are new to them, and show the loss in accuracy.",
        ),
    ] = None,
    hide: Annotated[float, typer.Option(help="With --on: the share of each user's items to hide and predict.")] = 0.2,
    seed: Annotated[int, typer.Option(help="With --on: the random seed for the hidden items.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Make a smaller, sparse model for cheap serving: each item is explained by a few others. ξ can still change."""
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


@add_column_options
def update(
    model: ModelArgument,
    events: Annotated[
        str, typer.Argument(metavar="EVENTS", help="A table of what users did since the fit, with the columns of it.")
    ],
    columns: OptionValues,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="The data that the model was fitted to; needed for known users if its histories were not saved.",
        ),
    ] = None,
    keep: KeepOption = 1,
    out: ChangedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take later events into a model without a new fit: of known users, new users and new items.

    The result is the model that a fit to all of the data would give, with the same l2. It is refused where a fit would
    cost less.
    """
    from relae.cli import _living

    _living.update(model, events, columns, data=data, keep=keep, out=out, as_json=as_json)


def forget(
    model: ModelArgument,
    user: Annotated[
        list[str] | None, typer.Option("--user", metavar="ID", help="A user to forget; can be repeated.")
    ] = None,
    users: Annotated[
        Path | None,
        typer.Option("--users", metavar="FILE", help="A file with the users to forget: an id per line, or JSON."),
    ] = None,
    out: ChangedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take users out of a model without a new fit, as if they had never been there.

    Nothing of them is left in the folder: earlier versions of the model are removed too.
    """
    from relae.cli import _living

    _living.forget(model, user or [], users, out=out, as_json=as_json)


def drop(
    model: ModelArgument,
    item: Annotated[list[str], typer.Option("--item", metavar="ID", help="An item to drop; can be repeated.")],
    keep: KeepOption = 1,
    out: ChangedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take items out of a model without a new fit, as if they had never been there."""
    from relae.cli import _living

    _living.drop(model, item, keep=keep, out=out, as_json=as_json)


def rollback(model: ModelArgument, as_json: JsonOption = False) -> None:
    """Go back to the version of a model before its last update or drop."""
    from relae.cli import _living

    _living.rollback(model, as_json=as_json)


def inspect(
    model: ModelArgument,
    verify: Annotated[bool, typer.Option("--verify", help="Read all files, and check every checksum.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the contents of a model folder: parameters, data, precision, arrays, and the most popular items."""
    from relae.cli import _inspect

    _inspect.inspect(model, verify=verify, as_json=as_json)


@add_limit_options
def serve(
    model: ModelArgument,
    limits: OptionValues,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 accepts requests from other machines.")
    ] = Settings.host,
    port: Annotated[int, typer.Option(help="The port to listen on; 0 chooses a free one.")] = Settings.port,
    workers: Annotated[
        int, typer.Option(help="The number of worker processes; they share the model in memory.")
    ] = Settings.workers,
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar="RELAE_API_KEY",
            help="The key that every request must send. Set it in the environment, where other users cannot see it.",
        ),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="An origin whose pages may send requests, such as https://shop.example; can be repeated.",
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A host name to accept in requests, such as recommend.example, or * for all; can be repeated. Without "
            "this option, a service on a loopback address accepts only local names.",
        ),
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Check every checksum each time a model is opened.")] = False,
    in_memory: Annotated[
        bool, typer.Option("--in-memory", help="Read the model into each worker's memory instead of mapping its files.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not log requests to stderr.")] = False,
    threads: Annotated[
        int, typer.Option(help="The number of threads of each worker; more workers usually help more.")
    ] = Settings.threads,
    client_seconds: Annotated[
        int,
        typer.Option(
            help="The most seconds a client may take to send headers, to send a body, and to read the response."
        ),
    ] = Settings.client_seconds,
    wait_seconds: Annotated[
        int, typer.Option(help="The most seconds a request may wait for the model; then the response is 503.")
    ] = Settings.wait_seconds,
    hang_seconds: Annotated[
        int, typer.Option(help="The most seconds a worker may take for a part of a response; then it is replaced.")
    ] = Settings.hang_seconds,
    stop_seconds: Annotated[
        int, typer.Option(help="The most seconds to finish running requests when the service is stopped.")
    ] = Settings.stop_seconds,
) -> None:
    """Serve a model over HTTP, with a web page to try it; by default at http://127.0.0.1:8000.

    After a new fit to the same folder, SIGHUP or POST /v1/reload (with the API key) loads the new model.
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


COMMANDS = (recommend, similar, explain, export, compact, update, forget, drop, rollback, inspect, serve)
