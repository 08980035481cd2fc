"""The paper, its data, and a first look."""

from pathlib import Path
from typing import Annotated

import typer

from relae.cli._options import DataArgument, Given, SeedOption, ShareOption, SplitOption, takes_columns
from relae.cli._parse import names, numbers, seconds, without_none

TITLE = "A first look, and the paper"


def demo() -> None:
    """Fit, judge and explain a model on the data set that comes with the package, in under a minute."""
    from relae.cli._demo import show_demo

    show_demo()


def reproduce(
    table: Annotated[str, typer.Argument(help="table2 (strong generalization) or table3 (weak).")],
    dataset: Annotated[str, typer.Option(help="A benchmark of the paper, such as gowalla.")],
    models: Annotated[
        str | None,
        typer.Option(
            help="Some of its models, separated by commas; all with a closed form if not given. lightgcn, ltocf, "
            "hmlet, grmf, grmfnorm and multvae (table3) are trained for hours, and only when named."
        ),
    ] = None,
    time_budget: Annotated[
        float | None, typer.Option(help="Minutes of training for each model that is trained; more goes on from less.")
    ] = None,
    tolerance: Annotated[float, typer.Option(help="How far a cell may be off before the command fails.")] = 0.0001,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = Path("reproduced"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not go on from earlier results in that folder.")] = False,
) -> None:
    """Run the paper's models with its parameters, and show its figures beside ours; exit code 1 if one is off.

    Results are saved model by model: stopped and started again, it goes on after the last finished model.
    """
    from relae.cli import _reproduce

    if not _reproduce.reproduce(table, dataset, names(models), tolerance, out, fresh, seconds(time_budget)):
        raise typer.Exit(1)


@takes_columns
def figures(
    data: DataArgument,
    columns: Given,
    out: Annotated[Path, typer.Option(help="The folder for PNG, SVG and CSV files.")] = Path("figures"),
    split: SplitOption = None,
    share: ShareOption = None,
    seed: SeedOption = None,
    l2: Annotated[float | None, typer.Option(help="λ where it is fixed; by the data if not given.")] = None,
    l2s: Annotated[str | None, typer.Option(help="The λ of Figure 4, separated by commas.")] = None,
    dropouts: Annotated[str | None, typer.Option(help="The dropouts of Figure 5, separated by commas.")] = None,
    xis: Annotated[str | None, typer.Option(help="The ξ of Figure 3, separated by commas.")] = None,
    only: Annotated[str | None, typer.Option(help="Some of the figures, such as 1,3; all if not given.")] = None,
) -> None:
    """Draw the paper's figures for DATA: spectrum, components, and what ξ, l2 and dropout do to head and tail."""
    from relae.cli import _figures
    from relae.experiments import Columns, Division, divide_data

    division = Division(**without_none(split=split, share=share, seed=seed))
    divided = divide_data(data, Columns(**columns), division)
    _figures.figures(
        divided.data,
        divided.valid,
        divided.title,
        out,
        l2=l2,
        l2s=numbers(l2s, "--l2s"),
        dropouts=numbers(dropouts, "--dropouts"),
        xis=numbers(xis, "--xis"),
        only=names(only),
        seed=seed or 0,
    )


COMMANDS = (demo, reproduce, figures)
