"""The command line: parse, call, show. Results go to stdout, progress and errors to stderr."""

from typing import Annotated

import typer

from relae.cli import _datasets
from relae.cli._main import run
from relae.cli.commands import GROUPS, paper_commands

_ABOUT = "Relaxed linear autoencoders: exact closed-form recommenders, honest about the long tail."

app = typer.Typer(
    name="relae",
    help=_ABOUT,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(requested: bool) -> None:
    if requested:
        from relae import __version__

        typer.echo(f"relae {__version__}")
        raise typer.Exit


@app.callback(help=_ABOUT)
def relae(  # noqa: D103
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error, as RELAE_DEBUG=1 does.")
    ] = False,
) -> None:
    pass


def _join_lines(text: str | None) -> str:
    """Return a docstring with one line per paragraph, so that a terminal of any width can wrap it."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in (text or "").split("\n\n"))


for _group in GROUPS:
    for _command in _group.COMMANDS:
        app.command(help=_join_lines(_command.__doc__), rich_help_panel=_group.TITLE)(_command)
app.add_typer(_datasets.app, name="datasets", rich_help_panel=paper_commands.TITLE)


def main() -> None:
    """Run the command line."""
    run(app)
