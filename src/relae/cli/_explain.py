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
from relae.errors import DataError
from relae.models import Counterfactual, LinearAutoencoder, dial_values
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
    users: int,
    first: int,
    as_json: bool,
) -> None:
    """Show what the k most important items of a history add to the score of an item, and whom and what it rests on."""
    check_whole("k", k)
    check_whole("users", users, 0)
    check_whole("counterfactual", first, 0)
    source = _histories.check_source(**{"history": history, "history_file": history_file, "for": user})
    saved, model = open_with_dials(path, dials)
    catalog = Catalog(model)
    column = find_column(catalog, item)
    record = catalog.record(column)
    require(model, model.explains, "explain")
    histories = _read_history(source, saved, catalog, history, history_file, user)
    seen = histories.describe_seen(column)
    asked_for = {"counterfactual": True, "k": first, "seen": histories.seen} if first and not seen else {}
    explanation = cast(Any, model).explain(histories.matrix, record["item"], times=histories.times, **asked_for)
    answer = {
        "item": record,
        "score": explanation.score,
        "seen": bool(seen),
        **dial_values(model),
        "demand": explanation.demand,
        "because": catalog.reasons([explanation])[0],
    }
    if explanation.counterfactual is not None:
        answer["counterfactual"] = _describe_set(explanation.counterfactual, catalog)
    if users:
        answer["users"] = _find_users(saved, model, histories, record["item"], users)
    if as_json:
        print_json(answer)
        return
    if histories.unknown_items:
        unknown = name_unknown(catalog, histories.unknown_items)
        error_console().print(
            f"unknown to the model, and ignored: {unknown}", style="yellow", markup=False, soft_wrap=True
        )
    _show(answer, k, seen)


def _describe_set(counterfactual: Counterfactual, catalog: Catalog) -> dict[str, Any]:
    """Return the smallest set of items as a part of the answer."""
    columns = None if counterfactual.items is None else catalog.items.positions(counterfactual.items).tolist()
    return {
        "first": counterfactual.k,
        "rank": counterfactual.rank,
        "without": None if columns is None else [catalog.record(column) for column in columns],
        "exact": counterfactual.exact,
    }


def _find_users(saved: Saved, model: Any, histories: UserHistories, item: Any, count: int) -> dict[str, Any]:
    """Return the users of the fit that the score rests on, by their ids where the folder has them."""
    require(model, isinstance(model, LinearAutoencoder), "--users")
    if saved.histories is None and not model.holds_histories:
        raise DataError(f"{saved.path} was saved without what its users had: fit it again with --histories")
    influence = model.influence(histories.matrix, item, saved.histories, k=count, times=histories.times)
    changes = [
        {"user": user, "change": float(change)} for user, change in zip(influence.users, influence.changes, strict=True)
    ]
    return {"changes": changes, "complete": influence.complete, "ids": saved.histories is not None}


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
    if "counterfactual" in answer:
        console.print(_say_set(answer["counterfactual"]), markup=False, soft_wrap=True)
    if "users" in answer:
        _show_users(console, answer["users"])


def _say_set(answer: dict[str, Any]) -> str:
    """Return what a place in the list rests on, in a sentence."""
    first, without = answer["first"], answer["without"]
    if without is None:
        return f"\nnumber {answer['rank']}: it would be among the first {first} without any of the items"
    if not without:
        return f"\nnumber {answer['rank']}: it is not among the first {first}"
    names = ", ".join(clean_text(record["title"]) or clean_text(record["item"]) for record in without)
    kind = "no smaller set does it" if answer["exact"] else "grown item by item; there may be a smaller one"
    return f"\nnumber {answer['rank']}, and not among the first {first} without {names} ({kind})"


def _show_users(console: Any, answer: dict[str, Any]) -> None:
    table = make_table("user" if answer["ids"] else "row of a user", ">without this user")
    for each in answer["changes"]:
        table.add_row(Text(clean_text(each["user"])), f"{each['change']:+.6f}")
    console.print()
    show_table(console, table)
    if not answer["complete"]:
        console.print("each change is exact; which users are shown was chosen by an estimate", style="dim")
