"""`relae compact`: make a saved model smaller, and show how much accuracy it loses."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.markup import escape

from relae import store
from relae._common.words import in_bytes
from relae.cli._console import error_console, make_facts, output_console, print_json
from relae.cli._evaluate import describe_unknown_items, make_split
from relae.cli._model import open_with_dials, require
from relae.cli._progress import progress_bar
from relae.cli._wording import COMMAND_LINE
from relae.data import Interactions
from relae.errors import DataError
from relae.evaluation import Evaluations, evaluate
from relae.experiments import Columns, read_data
from relae.models import LinearAutoencoder
from relae.recommender import encode

_METRICS = ("ndcg", "recall", "tail_ndcg", "coverage")
_K = 100


def compact(
    path: Path,
    out: Path,
    *,
    per_item: int,
    supports: str,
    data: str | None,
    on: str | None,
    columns: Mapping[str, Any],
    hide: float,
    seed: int,
    as_json: bool,
) -> None:
    """Make the small model and save it; with `on`, evaluate both models on the users of that data."""
    saved, _ = open_with_dials(path)
    model: LinearAutoencoder = require(saved.model, isinstance(saved.model, LinearAutoencoder), "compact")
    if out.resolve() == path.resolve():
        raise DataError(f"{out} is the model itself: name another --out")
    console = error_console()
    table_columns = Columns(**columns).check_weighting()
    training = saved.histories
    with store.reserve(out) as target:
        if data is not None:
            with console.status(f"reading {data}"):
                _, training = read_data(data, table_columns)
        if training is None and not model.holds_histories:
            raise DataError(f"{path} was saved without its histories: name the data of its fit with --data")
        started = time.perf_counter()
        with progress_bar(console) as progress:
            small = model.compact(training, per_item=per_item, supports=supports, progress=progress)
            known, title = saved.histories, saved.info["title"]
            store.save(small, target, form="auto", histories=known, title=title, progress=progress)
        seconds = time.perf_counter() - started
    with progress_bar(console) as progress:
        evaluations, notes = None, list[str]()
        if on is not None:
            _, everyone = read_data(on, table_columns, judging=True)
            users, notes = _select_new_users(model, everyone, on, table_columns, per_item)
            ks = [min(_K, len(model.items_))]
            if users is not None:
                split = make_split(model, users, hide, seed)
                notes += describe_unknown_items(model, split, users)
                figures = [evaluate(each, split, _METRICS, ks, progress=progress) for each in (model, small)]
                evaluations = Evaluations(figures)
    sizes = saved.size, store.open_model(out).size
    if as_json:
        print_json(
            {
                "path": str(out),
                "per_item": per_item,
                "supports": supports,
                "bytes": {"before": sizes[0], "after": sizes[1]},
                "residual": small.residual_,
                "seconds": seconds,
                "judged": None if evaluations is None else [each.means for each in evaluations],
            }
        )
        for note in notes:
            console.print(note, soft_wrap=True)
        return
    rows = {
        "model": f"{small}, ξ stays free",
        "weights": f"{small.inverse_.mean_support:.1f} per item, solved to {small.residual_:.0e}",
        "saved in": f"{out}, {in_bytes(sizes[1])} instead of {in_bytes(sizes[0])}",
        "time": f"{seconds:.1f} s",
    }
    output_console().print(make_facts(rows))
    output_console().print()
    for note in notes:
        output_console().print(note, soft_wrap=True)
    if evaluations is not None:
        output_console().print(evaluations.grid([f"{name}@{ks[0]}" for name in _METRICS]))
        name = f"ndcg@{ks[0]}"
        difference = evaluations[1].compare(evaluations[0])[name]
        output_console().print(
            f"compact − {path}: {name} {difference.difference:+.4f} [{difference.low:+.4f}, {difference.high:+.4f}], "
            f"{evaluations[1][name] / evaluations[0][name] - 1:+.2%}",
            markup=False,
            soft_wrap=True,
        )
    elif on is None:
        output_console().print(
            "[dim]What it loses: relae compact … --on DATA, with users that are new to the model[/dim]"
        )


def _select_new_users(
    model: LinearAutoencoder, data: Interactions, source: str, columns: Columns, per_item: int
) -> tuple[Interactions | None, list[str]]:
    """Return the users of `data` that the model was not fitted to, or None if there are none; and notes to show.

    A model looks better than it is when it is evaluated on the users it was fitted to.
    """
    known = _find_known_users(model, data)
    if known is None:
        return data, [
            "[yellow]the model does not know the users of its fit: if some of these are among them, the figures are "
            "too good[/yellow]"
        ]
    count, n = int(np.count_nonzero(known)), data.n_users
    if count == n:
        exact = escape(COMMAND_LINE.call("evaluate", source, columns.changes()))
        return None, [
            f"[yellow]no figures: all {n:,} users of {escape(source)} are users of the fit, by whom a model looks "
            f"better than it is.[/yellow] Judge by users who are held out: `{exact}` judges the exact form, and with "
            f"--solver local --neighbours {per_item} the compact one."
        ]
    if not count:
        return data, []
    left_out = f"{count:,} of {n:,} users are users of the fit, and are not judged by"
    return data.select_users(~known), [f"[yellow]{left_out}[/yellow]"]


def _find_known_users(model: LinearAutoencoder, data: Interactions) -> NDArray[np.bool_] | None:
    """Return a mask of the users that a model was fitted to : (users,); None if the model does not know."""
    users = model.users_
    if users is not None and not users.positional:
        return users.positions(data.users.values) >= 0
    counts = np.bincount(encode(data, model.items_).matrix.indices, minlength=len(model.items_))
    if data.n_users == model.n_users_ and np.array_equal(counts, model.item_counts_):
        return np.ones(data.n_users, bool)
    return None
