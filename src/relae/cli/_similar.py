"""`relae similar`: show items with a high partial correlation, given all other items."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from relae.catalog import Catalog
from relae.cli._console import make_table, output_console, print_json, show_table
from relae.cli._items import clean_text, find_column, limit_k
from relae.cli._model import open_with_dials, require


def similar(path: Path, items: Sequence[str], k: int, *, as_json: bool) -> None:
    """Show the most similar items for each of `items`."""
    _, model = open_with_dials(path)
    catalog = Catalog(model)
    k = limit_k(catalog, k, "--k")
    columns = [find_column(catalog, item) for item in items]
    require(model, model.explains, "similar")
    answers = [{"item": catalog.record(column), "items": catalog.similar(column, k)} for column in columns]
    if as_json:
        print_json(answers[0] if len(answers) == 1 else {"results": answers})
        return
    console = output_console()
    for number, answer in enumerate(answers):
        if number:
            console.print()
        _show(console, answer)


def _show(console: Console, answer: Mapping[str, Any]) -> None:
    record = answer["item"]
    name = clean_text(record["title"]) or clean_text(record["item"])
    console.print(
        Text.assemble(("Similar to ", "bold"), (name, "bold"), (f"  ({record['popularity']:,} users)", "dim"))
    )
    shown = make_table("item", "~title", ">similarity", "", ">users", "group")
    best = max((entry["similarity"] for entry in answer["items"]), default=0.0)
    for entry in answer["items"]:
        bar = "█" * max(0, round(12 * entry["similarity"] / best)) if best > 0 else ""
        shown.add_row(
            Text(clean_text(entry["item"])),
            Text(clean_text(entry["title"])),
            f"{entry['similarity']:.3f}",
            Text(bar, style="cyan"),
            f"{entry['popularity']:,}",
            Text(entry["group"], style="green" if entry["group"] == "tail" else ""),
        )
    show_table(console, shown)
