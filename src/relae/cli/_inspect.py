"""`relae inspect`: show the contents of a model folder."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from relae._common.words import in_bytes
from relae.catalog import Catalog, Item
from relae.cli._console import error_console, make_facts, make_table, output_console, print_json, show_table
from relae.cli._items import clean_text
from relae.cli._model import describe_extensions, describe_fit, describe_users, open_with_dials
from relae.store import Saved

_POPULAR = 5


_FORMS = {
    "primal": "P itself, which serves fastest",
    "dual": "K⁻¹ and the training data",
    "local": "each item by its nearest ones only",
}


def inspect(path: Path, *, verify: bool, as_json: bool) -> None:
    """Show the model, the data it was fitted to, its arrays and its most popular items."""
    with error_console().status(f"checking {path}" if verify else f"opening {path}"):
        saved, model = open_with_dials(path, verify=verify)
    catalog = Catalog(model)
    popular = [catalog.record(column) for column in catalog.popular[:_POPULAR].tolist()]
    if as_json:
        held = {"holds_histories": model.holds_histories}
        history = {"changes": saved.history} if saved.info.get("history") else {}
        print_json({**saved.info, **history, **held, "size": saved.size, "verified": verify, "popular": popular})
        return
    _show(output_console(), saved, popular, verify)


def _show(console: Console, saved: Saved, popular: list[Item], verified: bool) -> None:
    model: Any = saved.model
    info = saved.info
    data, fitted, versions = info["data"], info["fitted"], info["versions"]
    rows = {
        "model": str(model),
        "data": f"{info['title'] or 'without a name'}: {data['users']:,} users × {data['items']:,} items, "
        f"{data['interactions']:,} interactions",
        "density": f"{data['density']:.3%}, Gini of popularity {data['gini']:.2f}",
        "titles": "yes" if data["titles"] else "no",
        "users": describe_users(saved),
    }
    if "xi" in model.dials:
        low, high = model.xi_interval_
        l2 = f"l2 {model.l2_:g}" + (" by a rule from the data" if model.l2 is None else "")
        rows |= {
            "fit": f"{fitted['solver']} solver, {fitted['dtype']}, {l2}, residual {model.residual_:.0e}",
            "ξ": f"{model.xi:g}; between {low:.3f} and {high:.3f} it changes recommendations",
            **describe_extensions(model),
            "form": f"{fitted['form']}: {_FORMS[fitted['form']]}",
        }
    else:
        rows |= describe_fit(model)
    rows |= {
        "created": info["created"],
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "on disk": f"{in_bytes(saved.size)} in {saved.path}",
        "checksums": "every one checked, all agree" if verified else "of the arrays not checked; --verify does",
    }
    console.print(make_facts(rows))
    console.print()
    arrays = make_table("array", "type", ">shape", ">bytes")
    for name, entry in info["arrays"].items():
        shape = " × ".join(f"{side:,}" for side in entry["shape"])
        arrays.add_row(name, np.dtype(entry["dtype"]).name, shape, f"{entry['bytes']:,}")
    console.print(arrays)
    console.print()
    _show_history(console, saved)
    items = make_table("most popular", "~title", ">users")
    for entry in popular:
        items.add_row(Text(clean_text(entry["item"])), Text(clean_text(entry["title"])), f"{entry['popularity']:,}")
    show_table(console, items)


def _show_history(console: Console, saved: Saved) -> None:
    """Show the changes since the fit, and how many versions can be gone back to."""
    if not saved.info.get("history"):
        return
    table = make_table("change", "when", ">rows", "digest of ids", ">residual", "digest of arrays")
    for line in saved.history:
        residual, arrays = line["residual"], line["arrays"]
        table.add_row(
            str(line["what"]),
            str(line["when"]),
            f"{line['rows']:,}",
            str(line["ids"])[:12],
            f"{residual['before']:.0e} → {residual['after']:.0e}",
            f"{str(arrays['before'])[:8]} → {str(arrays['after'])[:8]}",
        )
    show_table(console, table)
    console.print(f"earlier versions that are kept: {saved.earlier}")
    console.print()
