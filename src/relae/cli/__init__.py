"""The command line: parse, call, show. Results go to stdout, progress and errors to stderr."""

from typing import Annotated

import typer

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
