"""Commands for a first look, and for the results of the paper."""

from pathlib import Path
from typing import Annotated

import typer

from relae.cli._options import (
    DataArgument,
    LastOption,
    OptionValues,
    SeedOption,
    ShareOption,
    SplitOption,
    add_column_options,
)
from relae.cli._parse import drop_none, parse_minutes, parse_names, parse_numbers

TITLE = "A first look, and the paper"


def demo() -> None:
    """Fit, evaluate and explain a model on the data set that comes with the package, in under a minute."""
    from relae.cli._demo import show_demo

    show_demo()


def reproduce(
    table: Annotated[str, typer.Argument(help="table2 (strong generalization) or table3 (weak generalization).")],
    dataset: Annotated[str, typer.Option(help="A benchmark of the paper, such as gowalla.")],
    models: Annotated[
        str | None,
        typer.Option(
            help="The models of the table to run, separated by commas; by default all with a closed form. lightgcn, "
            "ltocf, hmlet, grmf, grmfnorm and multvae (table3) train for hours, and run only if they are named."
        ),
    ] = None,
    time_budget: Annotated[
        float | None,
        typer.Option(
            help="The time in minutes to train each model that is trained; run again with more time to continue."
        ),
    ] = None,
    tolerance: Annotated[float, typer.Option(help="The largest difference from the paper that is accepted.")] = 0.0001,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = Path("reproduced"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Ignore earlier results in that folder.")] = False,
) -> None:
    """Run the paper's models with the paper's parameters, and show its results beside ours.

    The exit code is 1 if a difference is larger than --tolerance. Results are saved after each model: if the command is
    interrupted, run it again to continue after the last finished model.
    """
    from relae.cli import _reproduce

    if not _reproduce.reproduce(table, dataset, parse_names(models), tolerance, out, fresh, parse_minutes(time_budget)):
        raise typer.Exit(1)


@add_column_options
def figures(
    data: DataArgument,
    columns: OptionValues,
    out: Annotated[Path, typer.Option(help="The folder for PNG, SVG and CSV files.")] = Path("figures"),
    split: SplitOption = None,
    share: ShareOption = None,
    last: LastOption = None,
    seed: SeedOption = None,
    l2: Annotated[
        float | None, typer.Option(help="The value of λ where it is fixed; by default chosen from the data.")
    ] = None,
    l2s: Annotated[str | None, typer.Option(help="The values of λ in Figure 4, separated by commas.")] = None,
    dropouts: Annotated[
        str | None, typer.Option(help="The values of dropout in Figure 5, separated by commas.")
    ] = None,
    xis: Annotated[str | None, typer.Option(help="The values of ξ in Figure 3, separated by commas.")] = None,
    only: Annotated[str | None, typer.Option(help="The figures to draw, such as 1,3; all by default.")] = None,
) -> None:
    """Draw the paper's figures for DATA: spectrum, components, and the effect of ξ, l2 and dropout on head and tail."""
    from relae.cli import _figures
    from relae.experiments import Columns, Division, divide_data

    division = Division(**drop_none(split=split, share=share, last=last, seed=seed))
    divided = divide_data(data, Columns(**columns), division)
    _figures.figures(
        divided.data,
        divided.valid,
        divided.title,
        out,
        l2=l2,
        l2s=parse_numbers(l2s, "--l2s"),
        dropouts=parse_numbers(dropouts, "--dropouts"),
        xis=parse_numbers(xis, "--xis"),
        only=parse_names(only),
        seed=seed or 0,
    )


COMMANDS = (demo, reproduce, figures)
