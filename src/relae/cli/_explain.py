"""`relae explain`: what each item of a history adds to a score."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from relae._common.checks import check_whole
from relae._common.words import in_count
from relae.cli import _histories
from relae.cli._catalog import Catalog, in_signs, linear, opened, readable, standing
from relae.cli._console import errors, output, print_json, show_table, table
from relae.cli._histories import Asked
from relae.cli._recommend import because
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
    """Show why an item has its score, in the k items of the history that matter most."""
    check_whole("k", k)
    whose = _histories.one_source(**{"history": history, "history_file": history_file, "for": user})
    saved, model = opened(path, dials)
    catalog = Catalog(model)
    column = catalog.column(item)
    record = catalog.record(column)
    explaining = linear(model, "explain")
    asked = _asked(whose, saved, catalog, history, history_file, user)
    why = explaining.explain(asked.matrix, record["item"])
    had = asked.has_had(column)
    scored = {"item": record, "score": why.score, "seen": bool(had)}
    answer = {**scored, **standing(model), "because": because(catalog, why)}
    if as_json:
        print_json(answer)
        return
    if asked.strangers:
        unknown = catalog.named(asked.strangers)
        errors().print(f"unknown to the model, and ignored: {unknown}", style="yellow", markup=False, soft_wrap=True)
    _show(answer, k, had)


def _asked(
    whose: str,
    saved: Saved,
    catalog: Catalog,
    history: str | None,
    history_file: Path | None,
    user: str | None,
) -> Asked:
    if whose == "for":
        return _histories.of_users(saved, [user or ""])
    if whose == "history":
        return _histories.single(catalog, _histories.split_ids(history))
    assert history_file is not None
    return _histories.single(catalog, _histories.read_ids(history_file))


def _show(answer: dict[str, Any], k: int, had: str) -> None:
    console, record, reasons = output(), answer["item"], answer["because"]
    name = readable(record["title"]) or readable(record["item"])
    known = f"{in_count(record['popularity'], 'user')}, {record['group']}"
    about = f"  item {readable(record['item'])}, {known}, {in_signs(answer)}"
    console.print(Text.assemble((name, "bold"), (about, "dim")))
    if had:
        console.print(f"{had}, so that it is recommended only with --include-seen", style="yellow")
    console.print(f"score {answer['score']:.4f} =")
    shown = table(">adds", ">share", "item", "~title")
    largest = sorted(reasons, key=lambda reason: -abs(reason["contribution"]))[:k]
    kept = [reason for reason in reasons if any(reason is other for other in largest)]
    for reason in kept:
        style = "" if reason["contribution"] > 0 else "red"
        shown.add_row(
            Text(f"{reason['contribution']:+.4f}", style=style),
            Text(f"{reason['share']:.0%}", style=style),
            Text(readable(reason["item"])),
            Text(readable(reason["title"])),
        )
    rest = sum(reason["contribution"] for reason in reasons) - sum(reason["contribution"] for reason in kept)
    if len(reasons) > len(kept):
        shown.add_row(
            f"{rest:+.4f}", "", Text("…", style="dim"), Text(f"{len(reasons) - len(kept)} others", style="dim")
        )
    show_table(console, shown)
