"""`relae datasets`: list, download, export and measure the benchmark data sets."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relae._common.words import in_bytes
from relae.cli._console import error_console, make_table, output_console, print_json
from relae.cli._options import JsonOption

if TYPE_CHECKING:
    from rich.console import Console

    from relae.data import Statistics
    from relae.datasets import Comparison, Dataset, DatasetFile

app = typer.Typer(
    name="datasets",
    help="List, download and export the benchmark data sets, and compare them with the paper.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class TableFormat(StrEnum):
    """File formats of tables."""

    CSV = "csv"
    PARQUET = "parquet"


Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The name of a data set; `relae datasets list` shows all of them.")
]


@app.command("list")
def list_datasets(as_json: JsonOption = False) -> None:
    """List the data sets, and show which of them are on this machine."""
    from relae import datasets

    available = [datasets.get(name) for name in datasets.names()]
    if as_json:
        print_json([_summarize(dataset) for dataset in available])
        return
    shown = make_table("name", "paper", "here", ">users", ">items", ">interactions")
    for dataset in available:
        expected = dataset.expected
        counts = ["?"] * 3 if expected is None else [f"{n:,}" for n in vars(expected).values()]
        here = "embedded" if dataset.embedded else "[green]yes[/green]" if dataset.present else "[dim]missing[/dim]"
        shown.add_row(f"[bold]{dataset.name}[/bold]", "yes" if dataset.paper else "", here, *counts)
    console = output_console()
    console.print(shown)
    console.print("[dim]Counts are after each set's recipe. More: relae datasets info NAME[/dim]", soft_wrap=True)


@app.command()
def info(name: Name, as_json: JsonOption = False) -> None:
    """Show where a data set comes from, its recipe, licence, files and checksums."""
    from rich.markup import escape

    from relae import datasets

    dataset = datasets.get(name)
    if as_json:
        print_json(_describe(dataset))
        return
    console = output_console()
    rows = make_table("", "", header=False)
    rows.columns[0].style = "cyan"
    rows.columns[1].no_wrap = False
    rows.columns[1].overflow = "fold"
    rows.add_row("name", f"[bold]{dataset.name}[/bold] ({dataset.title})")
    rows.add_row("recipe", dataset.recipe)
    if dataset.expected is not None:
        expected = dataset.expected
        rows.add_row(
            "leaves", f"{expected.users:,} users × {expected.items:,} items, {expected.interactions:,} interactions"
        )
    if dataset.heldout is not None:
        rows.add_row("held out", f"{dataset.heldout:,} users for validation and as many for the test")
    if dataset.note:
        rows.add_row("note", dataset.note)
    rows.add_row("licence", dataset.licence)
    rows.add_row("cite", dataset.citation)
    rows.add_row("homepage", dataset.homepage)
    rows.add_row("folder", escape(str(dataset.folder())))
    rows.add_row("here", "comes with the package" if dataset.embedded else "yes" if dataset.present else "no")
    for file in dataset.files:
        rows.add_row("file", _describe_file(file))
    if not dataset.present:
        way = dataset.by_hand or f"relae datasets get {dataset.name}"
        rows.add_row("to get it", way)
    console.print(rows)


@app.command()
def get(
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Download the files even if they are already here.")] = False,
) -> None:
    """Download a data set and check it; an interrupted download is continued."""
    from rich.markup import escape

    from relae import datasets
    from relae.cli._progress import progress_bar

    dataset = datasets.get(name)
    with progress_bar(error_console()) as progress:
        dataset.download(progress, force)
    where = "comes with the package" if dataset.embedded else f"is in {escape(str(dataset.folder()))}"
    console = output_console()
    console.print(f"{dataset.title} {where}", soft_wrap=True)
    console.print(f"[dim]Licence: {dataset.licence}[/dim]", soft_wrap=True)


@app.command()
def export(
    name: Name,
    out: Annotated[
        Path, typer.Option(help="The folder to write: interactions.csv and, if the items have titles, items.csv.")
    ],
    kind: Annotated[TableFormat, typer.Option("--format", help="The format of the tables.")] = TableFormat.CSV,
) -> None:
    """Write a data set as tables, after its preprocessing: to look at, or to try the other commands on."""
    from relae import datasets
    from relae.cli._tables import write_tables

    dataset = datasets.get(name)
    with error_console().status(f"reading {dataset.title}"):
        data = dataset.load()
    for path, rows in write_tables(data, out, kind.value):
        output_console().print(f"{path}: {rows:,} rows", markup=False, soft_wrap=True)


@app.command()
def stats(name: Name, as_json: JsonOption = False) -> None:
    """Show statistics of a data set after its preprocessing, beside the paper's."""
    from relae import datasets

    dataset = datasets.get(name)
    with error_console().status(f"reading {dataset.title}"):
        statistics = dataset.load().statistics()
    comparisons = dataset.compare(statistics)
    if as_json:
        print_json(_describe_statistics(dataset, statistics, comparisons))
        return
    _show_stats(output_console(), dataset, comparisons)


def _show_stats(console: Console, dataset: Dataset, comparisons: list[Comparison]) -> None:
    in_paper = dataset.paper is not None
    shown = make_table(dataset.title, *([">paper"] if in_paper else []), ">ours", "")
    for row in comparisons:
        mark = {None: "", True: "[green]=[/green]", False: "[yellow]≠ differs[/yellow]"}[row.equal]
        shown.add_row(row.column, *([row.paper] if in_paper else []), row.ours, mark)
    console.print(shown)
    if dataset.note:
        console.print(dataset.note, style="dim")
    if not in_paper:
        console.print("not among the paper's data sets", style="dim")


def _describe_file(file: DatasetFile) -> str:
    parts = [file.name + ("" if file.size is None else f", {in_bytes(file.size)}")]
    parts.append(file.url or "to be fetched by hand")
    parts.append("no md5 known" if file.md5 is None else f"md5 {file.md5}")
    return "\n".join(parts)


def _summarize(dataset: Dataset) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "name": dataset.name,
        "title": dataset.title,
        "expected": None if dataset.expected is None else asdict(dataset.expected),
        "in_paper": dataset.paper is not None,
        "embedded": dataset.embedded,
        "here": dataset.present,
        "folder": str(dataset.folder()),
    }


def _describe(dataset: Dataset) -> dict[str, Any]:
    from dataclasses import asdict

    fields = ("recipe", "licence", "citation", "homepage", "note", "by_hand", "heldout")
    return {
        **_summarize(dataset),
        **{field: getattr(dataset, field) for field in fields},
        "paper": None if dataset.paper is None else asdict(dataset.paper),
        "files": [asdict(file) for file in dataset.files],
    }


def _describe_statistics(dataset: Dataset, statistics: Statistics, comparisons: list[Comparison]) -> dict[str, Any]:
    from dataclasses import asdict

    table = [{**asdict(row), "equal": row.equal} for row in comparisons]
    return {"name": dataset.name, "statistics": asdict(statistics), "table1": table, "note": dataset.note}
