"""`relae explain`: show what each item of a history adds to a score."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from rich.text import Text

from relae._common.checks import check_whole
from relae._common.words import in_count
from relae.catalog import IN_DEMAND, Catalog
from relae.cli import _histories
from relae.cli._console import error_console, make_table, output_console, print_json, show_table
from relae.cli._histories import UserHistories
from relae.cli._items import clean_text, find_column, name_unknown
from relae.cli._model import format_dials, open_with_dials, require
from relae.cli._parse import parse_names
from relae.models import dial_values
from relae.store import Saved


def explain(
    path: Path,
    item: str,
    dials: Mapping[str, float],
    *,
    history: str | None,
    history_file: Path | None,
    user: str | None,
    k: int,
    as_json: bool,
) -> None:
    """Show what the k most important items of a history add to the score of an item."""
    check_whole("k", k)
    source = _histories.check_source(**{"history": history, "history_file": history_file, "for": user})
    saved, model = open_with_dials(path, dials)
    catalog = Catalog(model)
    column = find_column(catalog, item)
    record = catalog.record(column)
    require(model, model.explains, "explain")
    histories = _read_history(source, saved, catalog, history, history_file, user)
    explanation = cast(Any, model).explain(histories.matrix, record["item"], times=histories.times)
    seen = histories.describe_seen(column)
    answer = {
        "item": record,
        "score": explanation.score,
        "seen": bool(seen),
        **dial_values(model),
        "demand": explanation.demand,
        "because": catalog.reasons([explanation])[0],
    }
    if as_json:
        print_json(answer)
        return
    if histories.unknown_items:
        unknown = name_unknown(catalog, histories.unknown_items)
        error_console().print(
            f"unknown to the model, and ignored: {unknown}", style="yellow", markup=False, soft_wrap=True
        )
    _show(answer, k, seen)


def _read_history(
    source: str,
    saved: Saved,
    catalog: Catalog,
    history: str | None,
    history_file: Path | None,
    user: str | None,
) -> UserHistories:
    if source == "for":
        return _histories.select_users(saved, [user or ""])
    if source == "history":
        return _histories.encode_single(catalog, parse_names(history))
    assert history_file is not None
    return _histories.encode_single(catalog, _histories.read_ids(history_file))


def _show(answer: dict[str, Any], k: int, seen: str) -> None:
    console, record, reasons = output_console(), answer["item"], answer["because"]
    name = clean_text(record["title"]) or clean_text(record["item"])
    known = f"{in_count(record['popularity'], 'user')}, {record['group']}"
    about = f"  item {clean_text(record['item'])}, {known}, {format_dials(answer)}"
    console.print(Text.assemble((name, "bold"), (about, "dim")))
    if seen:
        console.print(f"{seen}, so that it is recommended only with --include-seen", style="yellow")
    console.print(f"score {answer['score']:.4f} =")
    shown = make_table(">adds", ">share", "item", "~title")
    largest = sorted(reasons, key=lambda reason: -abs(reason["contribution"]))[:k]
    kept = [reason for reason in reasons if any(reason is other for other in largest)]
    for reason in kept:
        style = "" if reason["contribution"] > 0 else "red"
        shown.add_row(
            Text(f"{reason['contribution']:+.4f}", style=style),
            Text(f"{reason['share']:.0%}", style=style),
            Text(clean_text(reason["item"])),
            Text(clean_text(reason["title"])),
        )
    if answer["demand"]:
        share = answer["demand"] / (answer["demand"] + sum(max(reason["contribution"], 0.0) for reason in reasons))
        shown.add_row(f"{answer['demand']:+.4f}", f"{share:.0%}", "", Text(IN_DEMAND))
    rest = sum(reason["contribution"] for reason in reasons) - sum(reason["contribution"] for reason in kept)
    if len(reasons) > len(kept):
        shown.add_row(
            f"{rest:+.4f}", "", Text("…", style="dim"), Text(f"{len(reasons) - len(kept)} others", style="dim")
        )
    show_table(console, shown)
