"""`relae inspect`: what is in a model folder."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from relae._common.words import in_bytes
from relae.cli._catalog import Catalog, known_users, more_facts, opened, own_facts, readable
from relae.cli._console import errors, facts, output, print_json, show_table, table
from relae.models import LinearAutoencoder
from relae.recommender import HistoryRecommender
from relae.store import Saved

_POPULAR = 5


_FORMS = {
    "primal": "P itself, which serves fastest",
    "dual": "K⁻¹ and the training data",
    "local": "each item by its nearest ones only",
}


def inspect(path: Path, *, verify: bool, as_json: bool) -> None:
    """Show the model, the data it was fitted to, its arrays and its most popular items."""
    with errors().status(f"checking {path}" if verify else f"opening {path}"):
        saved, model = opened(path, verify=verify)
    catalog = Catalog(model)
    order = np.lexsort((np.arange(len(catalog.items)), -catalog.counts))
    popular = [catalog.record(int(column)) for column in order[:_POPULAR]]
    if as_json:
        held = {"holds_histories": model.holds_histories}
        print_json({**saved.info, **held, "size": saved.size, "verified": verify, "popular": popular})
        return
    _show(output(), saved, model, popular, verify)


def _show(
    console: Console, saved: Saved, model: HistoryRecommender, popular: list[dict[str, Any]], verified: bool
) -> None:
    info = saved.info
    data, fitted, versions = info["data"], info["fitted"], info["versions"]
    rows = {
        "model": str(model),
        "data": f"{info['title'] or 'without a name'}: {data['users']:,} users × {data['items']:,} items, "
        f"{data['interactions']:,} interactions",
        "density": f"{data['density']:.3%}, Gini of popularity {data['gini']:.2f}",
        "titles": "yes" if data["titles"] else "no",
        "users": known_users(saved),
    }
    if isinstance(model, LinearAutoencoder):
        low, high = model.xi_interval_
        l2 = f"l2 {model.l2_:g}" + (" by a rule from the data" if model.l2 is None else "")
        rows |= {
            "fit": f"{fitted['solver']} solver, {fitted['dtype']}, {l2}, residual {model.residual_:.0e}",
            "ξ": f"{model.xi:g}; between {low:.3f} and {high:.3f} it changes recommendations",
            **{name: text for name, text in more_facts(model).items() if text},
        }
        rows["form"] = f"{fitted['form']}: {_FORMS[fitted['form']]}"
    else:
        rows |= own_facts(model)
    rows |= {
        "created": info["created"],
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "on disk": f"{in_bytes(saved.size)} in {saved.path}",
        "checksums": "every one checked, all agree" if verified else "of the arrays not checked; --verify does",
    }
    console.print(facts(rows))
    console.print()
    arrays = table("array", "type", ">shape", ">bytes")
    for name, entry in info["arrays"].items():
        shape = " × ".join(f"{side:,}" for side in entry["shape"])
        arrays.add_row(name, np.dtype(entry["dtype"]).name, shape, f"{entry['bytes']:,}")
    console.print(arrays)
    console.print()
    items = table("most popular", "~title", ">users")
    for entry in popular:
        items.add_row(Text(readable(entry["item"])), Text(readable(entry["title"])), f"{entry['popularity']:,}")
    show_table(console, items)
