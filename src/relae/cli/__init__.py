"""The command line: parse, call, show. Results go to stdout, progress and errors to stderr."""

from pathlib import Path
from typing import Annotated

import typer

from relae.cli import _datasets

app = typer.Typer(
    name="relae",
    help="Relaxed linear autoencoders: exact closed-form recommenders, honest about the long tail.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from relae import __version__

        typer.echo(f"relae {__version__}")
        raise typer.Exit


@app.callback()
def relae(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Relaxed linear autoencoders: exact closed-form recommenders, honest about the long tail."""


@app.command()
def demo() -> None:
    """Fit, judge and explain a model on the data set that comes with the package, in under a minute."""
    from relae.cli._demo import show_demo

    show_demo()


@app.command()
def reproduce(
    table: Annotated[str, typer.Argument(help="table2 (strong generalization) or table3 (weak).")],
    dataset: Annotated[str, typer.Option(help="A benchmark of the paper, such as gowalla.")],
    models: Annotated[
        str | None, typer.Option(help="Some of its models, separated by commas; all that can be run if not given.")
    ] = None,
    tolerance: Annotated[float, typer.Option(help="How far a cell may be off before the command fails.")] = 0.0001,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = Path("reproduced"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not go on from earlier results in that folder.")] = False,
) -> None:
    """Run the paper's models with its parameters, and show its figures beside ours; exit code 1 if one is off.

    Results are saved model by model: stopped and started again, it goes on after the last finished model.
    """
    from relae.cli import _reproduce

    chosen = None if models is None else [name.strip() for name in models.split(",") if name.strip()]
    if not _reproduce.reproduce(table, dataset, chosen, tolerance, out, fresh):
        raise typer.Exit(1)


app.add_typer(_datasets.app, name="datasets")


def main() -> None:
    """Run the command line; an error of ours is one line and exit code 2."""
    import sys

    from relae.errors import RelaeError

    try:
        app()
    except RelaeError as error:
        print(f"relae: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("relae: interrupted", file=sys.stderr)
        sys.exit(130)
