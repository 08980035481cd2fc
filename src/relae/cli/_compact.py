"""`relae compact`: a saved model made small, and what that costs."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relae import store
from relae.cli._catalog import linear, opened
from relae.cli._console import errors, facts, output, print_json
from relae.cli._data import Columns, read
from relae.cli._evaluate import acquaintances, judged_by, strangers
from relae.cli._progress import progress_bar
from relae.errors import DataError
from relae.evaluation import Evaluations, evaluate
from relae.models import LinearAutoencoder
from relae.solvers import DualInverse, LocalInverse, gigabytes, without_new_items

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
    """Make the small model, save it, and judge both by the users of some data if asked to."""
    saved, found = opened(path)
    model: LinearAutoencoder = linear(found, "compact")
    if out.resolve() == path.resolve():
        raise DataError(f"{out} is the model itself: name another --out")
    store.check_place(out)
    console = errors()
    chosen = Columns().but(columns)
    training = saved.histories
    if data is not None:
        with console.status(f"reading {data}"):
            _, training = read(data, chosen)
    if training is None and not isinstance(without_new_items(model.inverse_), DualInverse):
        raise DataError(f"{path} was saved without its histories: name the data of its fit with --data")
    started = time.perf_counter()
    with progress_bar(console) as progress:
        small = model.compact(training, per_item=per_item, supports=supports, progress=progress)
        store.save(small, out, form="auto", histories=saved.histories, title=saved.info["title"], progress=progress)
        seconds = time.perf_counter() - started
        judged, notes = None, []
        if on is not None:
            _, users = read(on, chosen)
            split = judged_by(model, users, hide, seed)
            notes = strangers(model, split, users) + acquaintances(saved, split)
            ks = [min(_K, len(model.items_))]
            judged = Evaluations([evaluate(each, split, _METRICS, ks, progress=progress) for each in (model, small)])
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
                "judged": None if judged is None else [each.means for each in judged],
            }
        )
        return
    weights = without_new_items(small.inverse_)
    assert isinstance(weights, LocalInverse)
    rows = {
        "model": f"{small}, ξ stays free",
        "weights": f"{weights.columns.nnz / len(small.items_):.1f} per item, solved to {small.residual_:.0e}",
        "saved in": f"{out}, {gigabytes(sizes[1])} instead of {gigabytes(sizes[0])}",
        "time": f"{seconds:.1f} s",
    }
    output().print(facts(rows))
    if judged is not None:
        output().print()
        for note in notes:
            output().print(note)
        output().print(judged.grid([f"{name}@{ks[0]}" for name in _METRICS]))
        name = f"ndcg@{ks[0]}"
        difference = judged[1].compare(judged[0])[name]
        output().print(
            f"compact − {path}: {name} {difference.difference:+.4f} [{difference.low:+.4f}, {difference.high:+.4f}], "
            f"{judged[1][name] / judged[0][name] - 1:+.2%}",
            markup=False,
            soft_wrap=True,
        )
    else:
        output().print("\n[dim]What it loses: relae compact … --on DATA, with users that are new to the model[/dim]")
