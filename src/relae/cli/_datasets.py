"""`relae datasets`: the benchmarks, what is known of them, their files and their figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from relae.data.datasets import Comparison, Dataset, DatasetFile
    from relae.data.interactions import Statistics

app = typer.Typer(
    name="datasets",
    help="The benchmarks: list them, get them, and compare them with the paper.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set; `relae datasets list` has them all.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_datasets(as_json: AsJson = False) -> None:
    """List the data sets, and which of them are here."""
    from relae.data import datasets

    found = [datasets.get(name) for name in datasets.names()]
    if as_json:
        _print_json([_summary(dataset) for dataset in found])
        return
    table = _table("name", "paper", "here")
    for name in ("users", "items", "interactions"):
        table.add_column(name, justify="right", no_wrap=True)
    for dataset in found:
        expected = dataset.expected
        counts = ["?"] * 3 if expected is None else [f"{n:,}" for n in vars(expected).values()]
        here = "embedded" if dataset.embedded else "[green]yes[/green]" if dataset.present else "[dim]missing[/dim]"
        table.add_row(f"[bold]{dataset.name}[/bold]", "yes" if dataset.paper else "", here, *counts)
    console = _console()
    console.print(table)
    console.print("[dim]Counts are after each set's recipe. More: relae datasets info NAME[/dim]", soft_wrap=True)


@app.command()
def info(name: Name, as_json: AsJson = False) -> None:
    """Show where a data set comes from, its recipe, licence, files and checksums."""
    from rich.markup import escape

    from relae.data import datasets

    dataset = datasets.get(name)
    if as_json:
        _print_json(_description(dataset))
        return
    console = _console()
    rows = _table("", "", header=False)
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
        rows.add_row("file", _file_in_words(file))
    if not dataset.present:
        way = dataset.by_hand or f"relae datasets get {dataset.name}"
        rows.add_row("to get it", way)
    console.print(rows)


@app.command()
def get(
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Fetch the files even if they are here.")] = False,
) -> None:
    """Download a data set, or go on with a download that was interrupted, and check it."""
    from rich.console import Console
    from rich.markup import escape

    from relae.cli._progress import progress_bar
    from relae.data import datasets

    dataset = datasets.get(name)
    with progress_bar(Console(stderr=True)) as progress:
        dataset.download(progress, force)
    where = "comes with the package" if dataset.embedded else f"is in {escape(str(dataset.folder()))}"
    console = _console()
    console.print(f"{dataset.title} {where}", soft_wrap=True)
    console.print(f"[dim]Licence: {dataset.licence}[/dim]", soft_wrap=True)


@app.command()
def stats(name: Name, as_json: AsJson = False) -> None:
    """Measure a data set after its recipe, and show the paper's figures beside ours."""
    from rich.console import Console

    from relae.data import datasets

    dataset = datasets.get(name)
    with Console(stderr=True).status(f"reading {dataset.title}"):
        found = dataset.load().statistics()
    comparisons = dataset.compare(found)
    if as_json:
        _print_json(_measured(dataset, found, comparisons))
        return
    _show_stats(_console(), dataset, comparisons)


def _show_stats(console: Console, dataset: Dataset, comparisons: list[Comparison]) -> None:
    in_paper = dataset.paper is not None
    table = _table(dataset.title)
    for column in ("paper", "ours") if in_paper else ("ours",):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("")
    for row in comparisons:
        mark = {None: "", True: "[green]=[/green]", False: "[yellow]≠ differs[/yellow]"}[row.equal]
        table.add_row(row.column, *([row.paper] if in_paper else []), row.ours, mark)
    console.print(table)
    if dataset.note:
        console.print(dataset.note, style="dim")
    if not in_paper:
        console.print("not among the paper's data sets", style="dim")


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    # A pipe has no width of its own: wide enough for the longest address.
    return console if console.is_terminal else Console(highlight=False, width=120)


def _table(*columns: str, header: bool = True) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan", show_header=header)
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _file_in_words(file: DatasetFile) -> str:
    from relae.data._download import size_in_words

    parts = [file.name + ("" if file.size is None else f", {size_in_words(file.size)}")]
    parts.append(file.url or "to be fetched by hand")
    parts.append("no md5 known" if file.md5 is None else f"md5 {file.md5}")
    return "\n".join(parts)


def _summary(dataset: Dataset) -> dict[str, Any]:
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


def _description(dataset: Dataset) -> dict[str, Any]:
    from dataclasses import asdict

    words = ("recipe", "licence", "citation", "homepage", "note", "by_hand", "heldout")
    return {
        **_summary(dataset),
        **{word: getattr(dataset, word) for word in words},
        "paper": None if dataset.paper is None else asdict(dataset.paper),
        "files": [asdict(file) for file in dataset.files],
    }


def _measured(dataset: Dataset, found: Statistics, comparisons: list[Comparison]) -> dict[str, Any]:
    from dataclasses import asdict

    table = [{**asdict(row), "equal": row.equal} for row in comparisons]
    return {"name": dataset.name, "statistics": asdict(found), "table1": table, "note": dataset.note}


def _print_json(value: Any) -> None:
    import json

    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
