"""`relae demo`: fit, evaluate and explain a model on the embedded data set."""

import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from relae._common.words import in_bytes
from relae.cli._console import error_console, output_console
from relae.cli._progress import progress_bar
from relae.data import Interactions
from relae.datasets import online_retail
from relae.evaluation import Evaluations, Split, evaluate, hold_out_users
from relae.models import RDLAE, LinearAutoencoder

_XIS = (0.0, 0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 1.0)
_K = 20
_METRICS = ("ndcg", "recall", "tail_recall", "tail_share")
_SIMILAR_TO = "22423"  # the regency cakestand, the shop's best-known product


def show_demo() -> None:
    """Load the data, fit and evaluate a model, recommend and explain, and show each step."""
    started = time.perf_counter()
    console = output_console()
    console.print(
        Panel.fit(
            "[bold]relae[/bold]  relaxed linear autoencoders: exact, fast, honest about the long tail",
            border_style="cyan",
        )
    )
    data = online_retail()
    _show_data(console, data)
    held_out = hold_out_users(data, share=0.1, rng=np.random.default_rng(7))
    model: LinearAutoencoder = RDLAE(dropout=0.3)
    fit_started = time.perf_counter()
    with progress_bar(error_console()) as progress:
        model.fit(held_out.train, progress=progress)
    _show_fit(console, model, held_out, time.perf_counter() - fit_started)

    results = evaluate(model, held_out, _METRICS, [_K], xis=_XIS)
    _show_trade_off(console, model, results)

    best = results.best(f"ndcg@{_K}").xi
    assert best is not None
    model = model.with_xi(best)
    for row in _pick_customers(held_out):
        _show_customer(console, model, data, held_out, row)
    _show_similar(console, model, data)
    console.print(
        f"\n[dim]Done in {time.perf_counter() - started:.1f} s. Your own data, from a table to a service:[/dim]\n"
        "  relae tune log.csv --user USER --item ITEM --out run\n"
        "  relae fit --from run --out model\n"
        "  relae serve model"
    )


def _print_heading(console: Console, text: str) -> None:
    console.print()
    console.rule(f"[bold]{text}", align="left", style="cyan")


def _show_data(console: Console, data: Interactions) -> None:
    _print_heading(console, "The data: a year of an online gift shop")
    facts = data.statistics()
    table = Table.grid(padding=(0, 2))
    table.add_row(
        f"[bold]{facts.users:,}[/bold] customers",
        f"[bold]{facts.items:,}[/bold] products",
        f"[bold]{facts.interactions:,}[/bold] purchases",
        f"density [bold]{facts.density:.2%}[/bold]",
        f"Gini [bold]{facts.gini:.2f}[/bold]",
    )
    console.print(table)
    console.print(
        "[dim]Online Retail, Daqing Chen (2015), UCI Machine Learning Repository, doi 10.24432/C5BW33, CC BY 4.0[/dim]"
    )


def _show_fit(console: Console, model: LinearAutoencoder, held_out: Split, seconds: float) -> None:
    _print_heading(console, "The fit: one inverse, exact")
    console.print(
        f"[bold]RDLAE[/bold] with l2 = {model.l2_:.0f} (a rule of thumb, not tuned), dropout = {model.dropout}, "
        f"on {held_out.train.n_users:,} customers; {len(held_out.users):,} others are held out.\n"
        f"{model.plan_.solver} solver, {in_bytes(model.plan_.chosen.added_bytes)}, [bold]{seconds:.1f} s[/bold]; "
        f"checked: ‖(G+Λ)Pv − v‖/‖v‖ = {model.residual_:.0e}"
    )


def _show_trade_off(console: Console, model: LinearAutoencoder, results: Evaluations) -> None:
    _print_heading(console, "The dial: accuracy and long tail over ξ, from that one fit")
    low, high = model.xi_interval_
    table = Table(box=None, padding=(0, 2), header_style="cyan")
    table.add_column("ξ", justify="right")
    for name in (f"ndcg@{_K}", f"recall@{_K}", f"tail recall@{_K}", "tail share of lists"):
        table.add_column(name, justify="right")
    table.add_column("")
    columns = [[result[f"{name}@{_K}"] for result in results] for name in _METRICS]
    for row, xi in enumerate(_XIS):
        cells = [
            f"[bold green]{values[row]:.4f}[/bold green]" if values[row] == max(values) else f"{values[row]:.4f}"
            for values in columns[:3]
        ]
        share = columns[3][row]
        remark = {0.0: "EDLAE: zero diagonal", 1.0: "DLAE: no constraint"}.get(xi, "")
        table.add_row(f"{xi:g}", *cells, f"{share:.1%}", f"[dim]{remark}[/dim]")
    console.print(table)
    console.print(
        f"[dim]Only ξ between {low:.2f} and {high:.2f} changes anything here. The tail is the 80% of products with the "
        "fewest buyers; customers are new to the model.[/dim]"
    )


def _pick_customers(held_out: Split) -> list[int]:
    """Return the rows of three held-out customers with histories of 12 to 30 products."""
    sizes = np.diff(held_out.histories.indptr)
    candidates = np.flatnonzero((sizes >= 12) & (sizes <= 30))
    return [int(row) for row in candidates[[len(candidates) // 4, len(candidates) // 2, 3 * len(candidates) // 4]]]


def _show_customer(console: Console, model: LinearAutoencoder, data: Interactions, held_out: Split, row: int) -> None:
    [customer] = held_out.users.take(np.array([row]))
    history = list(data.items.take(held_out.histories[[row]].indices))
    hidden = set(data.items.take(held_out.truth[[row]].indices))
    _print_heading(console, f"For customer {customer}, who is new to the model")
    bought = ", ".join(_format_title(data, item) for item in history[:4])
    console.print(f"bought {len(history)} products: {bought}, …", style="dim")
    ids, scores = model.recommend(history, k=5)
    table = Table(box=None, padding=(0, 2), header_style="cyan")
    table.add_column("", width=1)
    table.add_column("recommended", width=34, no_wrap=True)
    table.add_column("score", width=5, justify="right")
    table.add_column("because of", width=max(20, console.width - 58), no_wrap=True)
    for item, score in zip(ids, scores, strict=True):
        explanation = model.explain(history, item)
        reasons = [
            f"{_format_title(data, cause)} {share:.0%}"
            for cause, share in zip(explanation.items[:2], explanation.shares, strict=False)
        ]
        table.add_row(
            "[green]✓[/green]" if item in hidden else "", _format_title(data, item), f"{score:.2f}", ", ".join(reasons)
        )
    console.print(table)
    hits = sum(item in hidden for item in ids)
    console.print(f"[dim]✓ among the {len(hidden)} purchases that were kept hidden: {hits} of these[/dim]")


def _show_similar(console: Console, model: LinearAutoencoder, data: Interactions) -> None:
    _print_heading(console, f"Similar to {_format_title(data, _SIMILAR_TO)}")
    ids, scores = model.similar_items(_SIMILAR_TO, k=5)
    table = Table(box=None, padding=(0, 2), show_header=False)
    for item, score in zip(ids, scores, strict=True):
        table.add_row(
            _format_title(data, item),
            Text("█" * max(1, round(20 * float(score / scores[0]))), style="cyan"),
            f"{score:.2f}",
        )
    console.print(table)
    console.print("[dim]partial correlation: how two products go together once all others are accounted for[/dim]")


def _format_title(data: Interactions, item: Any) -> str:
    return " ".join((data.title(item) or str(item)).split()).capitalize()
