"""`relae explain`: what each item of a history adds to a score."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from relae.cli import _histories
from relae.cli._catalog import Catalog, in_signs, linear, opened, readable, standing
from relae.cli._console import counted, errors, output, print_json, show_table, table
from relae.cli._histories import Asked
from relae.cli._recommend import because
from relae.recommender import HistoryRecommender
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
    if k < 1:
        raise ValueError(f"k must be a whole number of at least 1, got {k!r}")
    whose = _histories.one_source(**{"history": history, "history_file": history_file, "for": user})
    saved, model = opened(path, dials)
    catalog = Catalog(model)
    record = catalog.record(catalog.column(item))
    explaining = linear(model, "explain")
    asked = _asked(whose, saved, model, history, history_file, user)
    why = explaining.explain(asked.matrix, record["item"])
    answer = {"item": record, "score": why.score, **standing(model), "because": because(catalog, why)}
    if as_json:
        print_json(answer)
        return
    if asked.strangers:
        unknown = ", ".join(map(str, asked.strangers[:5]))
        errors().print(f"unknown to the model, and ignored: {unknown}", style="yellow", markup=False, soft_wrap=True)
    _show(answer, k)


def _asked(
    whose: str,
    saved: Saved,
    model: HistoryRecommender,
    history: str | None,
    history_file: Path | None,
    user: str | None,
) -> Asked:
    if whose == "for":
        return _histories.of_users(saved, [user or ""])
    if whose == "history":
        return _histories.single(model, _histories.split_ids(history))
    assert history_file is not None
    return _histories.single(model, _histories.read_ids(history_file))


def _show(answer: dict[str, Any], k: int) -> None:
    console, record, reasons = output(), answer["item"], answer["because"]
    name = readable(record["title"]) or readable(record["item"])
    known = f"{counted(record['popularity'], 'user')}, {record['group']}"
    about = f"  item {readable(record['item'])}, {known}, {in_signs(answer)}"
    console.print(Text.assemble((name, "bold"), (about, "dim")))
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
