"""The command line: parse, call, show. Results go to stdout, progress and errors to stderr."""

from pathlib import Path
from typing import Annotated

import typer

from relae.cli import _datasets
from relae.cli._options import (
    DataArgument,
    ItemOption,
    MinItemOption,
    MinRatingOption,
    MinUserOption,
    RatingOption,
    SeedOption,
    ShareOption,
    SplitOption,
    TimestampOption,
    TitlesOption,
    UserOption,
    WeightOption,
)

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


@app.command()
def tune(
    data: DataArgument,
    out: Annotated[Path, typer.Option(help="The folder of the run; an unfinished run in it goes on.")],
    user: UserOption = "user",
    item: ItemOption = "item",
    rating: RatingOption = None,
    min_rating: MinRatingOption = None,
    weight: WeightOption = None,
    timestamp: TimestampOption = None,
    titles: TitlesOption = None,
    min_user_count: MinUserOption = 0,
    min_item_count: MinItemOption = 0,
    split: SplitOption = "auto",
    share: ShareOption = 0.1,
    seed: SeedOption = 0,
    search: Annotated[
        str, typer.Option(help="auto (a budget of inversions) or grid (the paper's, 110 of them).")
    ] = "auto",
    budget: Annotated[int, typer.Option(help="Inversions of the search auto.")] = 16,
    objective: Annotated[str, typer.Option(help="What to maximize: a metric and a cut-off.")] = "ndcg@100",
    keep: Annotated[
        str | None, typer.Option(help="A metric to keep meanwhile, such as ndcg@100 with --objective tail_recall@100.")
    ] = None,
    loss: Annotated[float, typer.Option(help="The share of the best value of --keep that may be lost.")] = 0.01,
    time_budget: Annotated[
        float | None, typer.Option(help="Minutes after which no further inversion is started.")
    ] = None,
    solver: Annotated[str, typer.Option(help="auto, primal or dual.")] = "auto",
    test: Annotated[bool, typer.Option(help="Judge the chosen model, EASE and popularity by the test users.")] = True,
) -> None:
    """Find l2, dropout and ξ for DATA, for all six models at once, and show the trade-off with the long tail."""
    from relae.cli import _tune
    from relae.cli._data import Columns

    columns = Columns(user, item, rating, min_rating, weight, timestamp, titles, min_user_count, min_item_count)
    request = _tune.Request(data, columns, split, share, seed, search, budget, objective, keep, loss, solver)
    _tune.run(request, out, None if time_budget is None else 60 * time_budget, test)


@app.command()
def figures(
    data: DataArgument,
    out: Annotated[Path, typer.Option(help="The folder for PNG, SVG and CSV files.")] = Path("figures"),
    user: UserOption = "user",
    item: ItemOption = "item",
    rating: RatingOption = None,
    min_rating: MinRatingOption = None,
    weight: WeightOption = None,
    timestamp: TimestampOption = None,
    titles: TitlesOption = None,
    min_user_count: MinUserOption = 0,
    min_item_count: MinItemOption = 0,
    split: SplitOption = "auto",
    share: ShareOption = 0.1,
    seed: SeedOption = 0,
    l2: Annotated[float | None, typer.Option(help="λ where it is fixed; by the data if not given.")] = None,
    l2s: Annotated[str | None, typer.Option(help="The λ of Figure 4, separated by commas.")] = None,
    dropouts: Annotated[str | None, typer.Option(help="The dropouts of Figure 5, separated by commas.")] = None,
    xis: Annotated[str | None, typer.Option(help="The ξ of Figure 3, separated by commas.")] = None,
    only: Annotated[str | None, typer.Option(help="Some of the figures, such as 1,3; all if not given.")] = None,
) -> None:
    """Draw the paper's figures for DATA: spectrum, components, and what ξ, l2 and dropout do to head and tail."""
    from relae.cli import _figures
    from relae.cli._data import Columns, load

    columns = Columns(user, item, rating, min_rating, weight, timestamp, titles, min_user_count, min_item_count)
    divided = load(data, columns, split, share, seed)
    _figures.figures(
        divided.data,
        divided.valid,
        divided.title,
        out,
        l2=l2,
        l2s=_numbers(l2s, "--l2s"),
        dropouts=_numbers(dropouts, "--dropouts"),
        xis=_numbers(xis, "--xis"),
        only=None if only is None else [name.strip() for name in only.split(",") if name.strip()],
        seed=seed,
    )


def _numbers(text: str | None, option: str) -> list[float] | None:
    """Return numbers that are separated by commas."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ValueError(f"{option} takes numbers separated by commas, got {text!r}") from None


@app.command()
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run of `relae tune`.")],
    out: Annotated[Path | None, typer.Option(help="The file; RUN/report.html if not given.")] = None,
    samples: Annotated[int, typer.Option(help="Test users to show recommendations for; 0 shows nobody's history.")] = 5,
    user_ids: Annotated[bool, typer.Option("--user-ids", help="Call them by their ids, not by a number.")] = False,
) -> None:
    """Turn a run of `relae tune` into one HTML file to look at, print or mail: no network, light and dark."""
    from relae.cli import _report

    _report.make(run, out, samples=samples, user_ids=user_ids)


app.add_typer(_datasets.app, name="datasets")


def main() -> None:
    """Run the command line; an error of ours is one line and exit code 2."""
    import sys

    from relae.errors import RelaeError

    try:
        app()
    except (RelaeError, ValueError) as error:  # a value that cannot be, such as --loss 2
        print(f"relae: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("relae: interrupted", file=sys.stderr)
        sys.exit(130)
