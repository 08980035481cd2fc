"""`relae similar`: what goes together once all other items are accounted for."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from relae.cli._catalog import Catalog, linear, opened, readable
from relae.cli._console import output, print_json, show_table, table


def similar(path: Path, items: Sequence[str], k: int, *, as_json: bool) -> None:
    """Show the items most similar to each of some."""
    _, model = opened(path)
    catalog = Catalog(model)
    k = catalog.places(k, "--k")
    columns = [catalog.column(item) for item in items]
    answers = [_answer(catalog, linear(model, "similar"), column, k) for column in columns]
    if as_json:
        print_json(answers[0] if len(answers) == 1 else {"results": answers})
        return
    console = output()
    for place, answer in enumerate(answers):
        if place:
            console.print()
        _show(console, answer)


def _answer(catalog: Catalog, model: Any, column: int, k: int) -> dict[str, Any]:
    """Return the neighbours of one item as the service answers them."""
    record = catalog.record(column)
    ids, scores = model.similar_items(record["item"], k)
    known = [(item, float(score)) for item, score in zip(ids, scores, strict=True) if item is not None]
    columns = catalog.items.positions([item for item, _ in known]).tolist()
    found = [catalog.record(at) | {"similarity": score} for at, (_, score) in zip(columns, known, strict=True)]
    return {"item": record, "items": found}


def _show(console: Console, answer: Mapping[str, Any]) -> None:
    record = answer["item"]
    name = readable(record["title"]) or readable(record["item"])
    console.print(
        Text.assemble(("Similar to ", "bold"), (name, "bold"), (f"  ({record['popularity']:,} users)", "dim"))
    )
    shown = table("item", "~title", ">similarity", "", ">users", "group")
    best = max((entry["similarity"] for entry in answer["items"]), default=0.0)
    for entry in answer["items"]:
        bar = "█" * max(0, round(12 * entry["similarity"] / best)) if best > 0 else ""
        shown.add_row(
            Text(readable(entry["item"])),
            Text(readable(entry["title"])),
            f"{entry['similarity']:.3f}",
            Text(bar, style="cyan"),
            f"{entry['popularity']:,}",
            Text(entry["group"], style="green" if entry["group"] == "tail" else ""),
        )
    show_table(console, shown)
