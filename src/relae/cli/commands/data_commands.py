"""Commands that work on data: plan, tune, fit, evaluate, compare and report."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from relae.cli._options import (
    DATA_HELP,
    DataArgument,
    DtypeOption,
    FromOption,
    JsonOption,
    LastOption,
    OptionValues,
    SeedOption,
    ShareOption,
    SolverOption,
    SplitOption,
    add_column_options,
    add_model_options,
)
from relae.cli._parse import drop_none, parse_minutes, parse_names, parse_numbers, parse_whole_numbers

TITLE = "From data to a model"


class Choice(StrEnum):
    """Rules to choose a configuration from a search."""

    BEST = "best"
    TAIL = "tail"


class Form(StrEnum):
    """Forms in which the inverse is saved."""

    AUTO = "auto"
    PRIMAL = "primal"
    DUAL = "dual"
    FITTED = "fitted"


FormOption = Annotated[
    Form,
    typer.Option(help="The form in which to save the inverse: auto serves fastest; dual and fitted may be smaller."),
]
HistoriesOption = Annotated[
    bool,
    typer.Option(
        help="Save the users' histories with the model, so that users can be named by id. Anyone who has the folder "
        "can then read them. gfcf and the dual form always contain the histories, but without the ids of the users."
    ),
]


@add_column_options
def plan(
    data: DataArgument,
    columns: OptionValues,
    solver: SolverOption = "auto",
    dtype: DtypeOption = "float32",
    neighbours: Annotated[
        int,
        typer.Option(
            min=1, help="For --solver local: the number of nearest items that explain an item, including itself."
        ),
    ] = 200,
    form: FormOption = Form.AUTO,
    histories: HistoriesOption = True,
    as_json: JsonOption = False,
) -> None:
    """Show the cost of a fit to DATA on this machine: solver, memory, time and disk.

    The exit code is 2 if there is not enough memory."""
    from relae.cli import _plan

    _plan.plan(
        data,
        columns,
        solver=solver,
        dtype=dtype,
        neighbours=neighbours,
        form=form,
        histories=histories,
        as_json=as_json,
    )


@add_column_options
@add_model_options
def tune(
    data: DataArgument,
    out: Annotated[Path, typer.Option(help="The folder of the run; an unfinished run in it is continued.")],
    columns: OptionValues,
    parameters: OptionValues,
    split: SplitOption = None,
    share: ShareOption = None,
    last: LastOption = None,
    seed: SeedOption = None,
    search: Annotated[
        str, typer.Option(help="auto (limited by --budget) or grid (the paper's grid: 110 inversions; 1,210 for dan).")
    ] = "auto",
    budget: Annotated[
        int | None,
        typer.Option(
            help="For --search auto: the number of inversions (default 16), or of fits if the model is not linear "
            "(default 8)."
        ),
    ] = None,
    objective: Annotated[str, typer.Option(help="The metric to maximize, with its cut-off.")] = "ndcg@100",
    keep: Annotated[
        str | None,
        typer.Option(
            help="A second metric to keep near its best value, such as ndcg@100 with --objective tail_recall@100."
        ),
    ] = None,
    loss: Annotated[float, typer.Option(help="The share of the best value of --keep that may be lost.")] = 0.01,
    time_budget: Annotated[
        float | None, typer.Option(help="The time in minutes after which no new inversion or fit is started.")
    ] = None,
    choose: Annotated[
        Choice,
        typer.Option(
            help="tail: the best result on the long tail within one standard error of the best --objective, or the "
            "default parameters if nothing is measurably better. best: the best --objective."
        ),
    ] = Choice.TAIL,
    solver: SolverOption = "auto",
    test: Annotated[bool, typer.Option(help="Evaluate the chosen model and its baselines on the test users.")] = True,
) -> None:
    """Search l2, dropout and ξ for DATA, for all six models at once, and show the trade-off with the long tail.

    With --model dan, search the norms of users and items as well. With another --model, search the parameters of that
    model. Parameters on the command line stay fixed. --feature-weight is never searched.
    """
    from relae.cli import _tune

    division = drop_none(split=split, share=share, last=last, seed=seed)
    options = {"search": search, "budget": budget, "objective": objective, "keep": keep, "loss": loss}
    options |= {"choose": choose.value, "solver": solver, "time_budget": parse_minutes(time_budget)}
    _tune.tune(data, out, parameters, options | division | columns, test)


@add_column_options
@add_model_options
def fit(
    out: Annotated[
        Path,
        typer.Option(
            metavar="MODEL", help="The folder to save the model in; a model that is already there is replaced."
        ),
    ],
    columns: OptionValues,
    parameters: OptionValues,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=DATA_HELP, show_default=False)] = None,
    run: FromOption = None,
    form: FormOption = Form.AUTO,
    histories: HistoriesOption = True,
    solver: SolverOption = "auto",
    dtype: DtypeOption = "float32",
    time_budget: Annotated[
        float | None,
        typer.Option(help="For models that are trained: the time in minutes after which no new epoch is started."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Fit on the Dask cluster at this address, such as tcp://10.0.0.5:8786. DATA may then be a pattern of "
            "Parquet files, which only the workers read; all rows of a user must be in the same file.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fit a model to all of DATA, check it, and save it as a folder to serve from.

    Without parameters, a rule chooses them from the data. To search better ones, run `relae tune`, then
    `relae fit --from RUN`. A model that is trained in epochs writes a checkpoint, MODEL.training, beside the folder: if
    the command is interrupted, run it again to continue. Such a model is validated on a tenth of DATA, which it is not
    trained on; --set validation_share=0 trains on all of DATA.
    """
    from relae.cli import _fit

    _fit.fit(
        data,
        columns,
        parameters,
        out,
        run=run,
        form=form,
        histories=histories,
        solver=solver,
        dtype=dtype,
        time_budget=parse_minutes(time_budget),
        scheduler=scheduler,
        as_json=as_json,
    )


@add_column_options
@add_model_options
def evaluate(
    columns: OptionValues,
    parameters: OptionValues,
    source: Annotated[
        str | None,
        typer.Argument(metavar="DATA|MODEL", help="The data to fit to and evaluate on; or, with --on, a saved model."),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Evaluate the saved MODEL on all users of this data; the model must accept new users.",
        ),
    ] = None,
    run: FromOption = None,
    split: SplitOption = None,
    share: ShareOption = None,
    last: LastOption = None,
    seed: SeedOption = None,
    hide: Annotated[
        float | None,
        typer.Option(
            help="With --on: the share of each user's items to hide and predict; 0.2 by default.",
            rich_help_panel="Validation and test",
        ),
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(help="The metrics, separated by commas, such as ndcg,recall,tail_ndcg,coverage.")
    ] = None,
    k: Annotated[str | None, typer.Option(help="The cut-offs, separated by commas; 20,100 by default.")] = None,
    xis: Annotated[
        str | None, typer.Option(help="Evaluate these values of ξ, separated by commas, all from one fit.")
    ] = None,
    solver: SolverOption = "auto",
    dtype: DtypeOption = "float32",
    out: Annotated[Path | None, typer.Option(help="Also write the results to this .json, .csv or .md file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a model: fit it to a part of DATA and test it on the rest, or test a saved MODEL on --on DATA.

    With --split new-items, the model is tested on items that it knows only by their --features, beside three baselines:
    nearest neighbours by features, popularity, and random lists.
    """
    from relae.cli import _evaluate

    evaluate_options = _evaluate.EvaluateOptions(
        parse_names(metrics), parse_whole_numbers(k, "--k"), parse_numbers(xis, "--xis"), as_json, out
    )
    if on is None:
        division = drop_none(split=split, share=share, last=last, seed=seed)
        _evaluate.evaluate_data(
            source,
            columns,
            parameters,
            evaluate_options,
            run=run,
            division=division,
            hide=hide,
            solver=solver,
            dtype=dtype,
        )
    else:
        options = {name.replace("_", "-"): value for name, value in parameters.items()}
        refused = {"from": run, "split": split, "share": share, "last": last, **options}
        _evaluate.evaluate_model(source, on, columns, evaluate_options, hide=hide, seed=seed, refused=refused)


@add_column_options
def compare(
    data: DataArgument,
    columns: OptionValues,
    models: Annotated[
        str,
        typer.Option(
            help="all, or some models separated by commas, such as rdlae,ease,ials; popularity is always included."
        ),
    ] = "all",
    split: SplitOption = None,
    share: ShareOption = None,
    last: LastOption = None,
    seed: SeedOption = None,
    k: Annotated[
        int | None,
        typer.Option(help="The cut-off of all metrics; by default 100, but at most a fifth of the items."),
    ] = None,
    budget: Annotated[
        int,
        typer.Option(
            help="The number of inversions for the six linear models together, the same number for dan, and the number "
            "of fits of each other model that is tuned."
        ),
    ] = 8,
    time_budget: Annotated[
        float | None, typer.Option(help="The time in minutes to tune and train each model; no limit by default.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A folder to save the table and the finished models in; an unfinished comparison in it is continued."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare models on DATA in one table: accuracy on head and tail, time, size, and differences from the best.

    Parameters are chosen on the validation users. Each model is then evaluated once, on test users that had no part in
    the choice. Models that cannot be fitted are listed below the table with the reason. The exit code is 1 if a model
    failed with an unexpected error.
    """
    from relae.cli import _compare

    model_names = None if models.strip().lower() == "all" else parse_names(models)
    division = drop_none(split=split, share=share, last=last, seed=seed)
    options = {"k": k, "budget": budget, "time_budget": parse_minutes(time_budget), "out": out}
    if not _compare.compare(data, model_names, options | division | columns, as_json):
        raise typer.Exit(1)


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run of `relae tune`.")],
    out: Annotated[Path | None, typer.Option(help="The file to write; RUN/report.html by default.")] = None,
    samples: Annotated[
        int,
        typer.Option(help="The number of test users to show with their histories and recommendations; 0 shows none."),
    ] = 5,
    user_ids: Annotated[
        bool, typer.Option("--user-ids", help="Show the ids of these users instead of numbers.")
    ] = False,
) -> None:
    """Write a report on a run of `relae tune`: one HTML file that needs no network, with a light and a dark theme."""
    from relae.cli import _report

    _report.write(run, out, samples, user_ids)


COMMANDS = (plan, tune, fit, evaluate, compare, report)
