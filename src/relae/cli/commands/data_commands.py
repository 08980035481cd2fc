"""From data to a model."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from relae.cli._options import (
    DATA_HELP,
    DataArgument,
    DtypeOption,
    FromOption,
    Given,
    JsonOption,
    SeedOption,
    ShareOption,
    SolverOption,
    SplitOption,
    takes_columns,
    takes_model,
)
from relae.cli._parse import names, numbers, seconds, whole_numbers, without_none

TITLE = "From data to a model"


class Choice(StrEnum):
    """Which configuration of a search to fit."""

    BEST = "best"
    TAIL = "tail"


class Form(StrEnum):
    """How the inverse is saved."""

    AUTO = "auto"
    PRIMAL = "primal"
    DUAL = "dual"
    FITTED = "fitted"


FormOption = Annotated[
    Form, typer.Option(help="How to save the inverse: auto serves fastest; dual and fitted may be smaller.")
]
HistoriesOption = Annotated[
    bool,
    typer.Option(
        help="Keep the users' histories, so that users can be named by id. They are then in the folder for "
        "anyone who has it to read. gfcf and the dual form hold them without the ids in any case."
    ),
]


@takes_columns
def plan(
    data: DataArgument,
    columns: Given,
    solver: SolverOption = "auto",
    dtype: DtypeOption = "float32",
    neighbours: Annotated[
        int, typer.Option(min=1, help="Of --solver local: the nearest items that explain an item, itself included.")
    ] = 200,
    form: FormOption = Form.AUTO,
    histories: HistoriesOption = True,
    as_json: JsonOption = False,
) -> None:
    """Show what a fit to DATA would cost here: solver, memory, time and disk; exit code 2 if it cannot fit."""
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


@takes_columns
@takes_model
def tune(
    data: DataArgument,
    out: Annotated[Path, typer.Option(help="The folder of the run; an unfinished run in it goes on.")],
    columns: Given,
    parameters: Given,
    split: SplitOption = None,
    share: ShareOption = None,
    seed: SeedOption = None,
    search: Annotated[
        str, typer.Option(help="auto (a budget of inversions) or grid (the paper's, 110 of them; 1,210 for dan).")
    ] = "auto",
    budget: Annotated[
        int | None,
        typer.Option(help="Inversions of the search auto (16 if not given), or fits of a model of another kind (8)."),
    ] = None,
    objective: Annotated[str, typer.Option(help="What to maximize: a metric and a cut-off.")] = "ndcg@100",
    keep: Annotated[
        str | None, typer.Option(help="A metric to keep meanwhile, such as ndcg@100 with --objective tail_recall@100.")
    ] = None,
    loss: Annotated[float, typer.Option(help="The share of the best value of --keep that may be lost.")] = 0.01,
    time_budget: Annotated[
        float | None, typer.Option(help="Minutes after which no further inversion or fit is started.")
    ] = None,
    choose: Annotated[
        Choice,
        typer.Option(
            help="tail: the most tail within one standard error of the best --objective, or the default where nothing "
            "can be told from it. best: the best --objective."
        ),
    ] = Choice.TAIL,
    solver: SolverOption = "auto",
    test: Annotated[bool, typer.Option(help="Judge the chosen model and its rivals by the test users.")] = True,
) -> None:
    """Find l2, dropout and ξ for DATA, for all six models at once, and show the trade-off with the long tail.

    With --model dan, find norms of users and items as well. With another --model, find the parameters of that one;
    those that are given stay as they are. What --features weigh is not searched: --feature-weight fixes it.
    """
    from relae.cli import _tune

    division = without_none(split=split, share=share, seed=seed)
    options = {"search": search, "budget": budget, "objective": objective, "keep": keep, "loss": loss}
    options |= {"choose": choose.value, "solver": solver, "time_budget": seconds(time_budget)}
    _tune.tune(data, out, parameters, options | division | columns, test)


@takes_columns
@takes_model
def fit(
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The folder of the model; an earlier one is replaced.")],
    columns: Given,
    parameters: Given,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=DATA_HELP, show_default=False)] = None,
    run: FromOption = None,
    form: FormOption = Form.AUTO,
    histories: HistoriesOption = True,
    solver: SolverOption = "auto",
    dtype: DtypeOption = "float32",
    time_budget: Annotated[
        float | None,
        typer.Option(help="Minutes of training after which no further epoch is started, for models that are trained."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Of a Dask cluster, such as tcp://10.0.0.5:8786: its workers fit. DATA may then be a pattern of "
            "Parquet files with each user in one of them, which only the workers read.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fit a model to all of DATA, check it, and save it as a folder to serve from.

    Without parameters a rule from the data is used; `relae tune`, then `relae fit --from RUN`, searches for better
    ones. A model that is trained keeps MODEL.training beside the folder meanwhile: after a break, the same command goes
    on from it. It is validated by a tenth of DATA, which it is not trained on; --set validation_share=0 trains on all
    of it.
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
        time_budget=seconds(time_budget),
        scheduler=scheduler,
        as_json=as_json,
    )


@takes_columns
@takes_model
def evaluate(
    columns: Given,
    parameters: Given,
    source: Annotated[
        str | None,
        typer.Argument(metavar="DATA|MODEL", help="Data to fit to and judge by; or, with --on, a saved model."),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="Judge the MODEL by all users of this data; it has to fold in new users."),
    ] = None,
    run: FromOption = None,
    split: SplitOption = None,
    share: ShareOption = None,
    seed: SeedOption = None,
    hide: Annotated[
        float | None,
        typer.Option(
            help="With --on: the share of each user's items to hide and find; 0.2 if not given.",
            rich_help_panel="Validation and test",
        ),
    ] = None,
    metrics: Annotated[str | None, typer.Option(help="Such as ndcg,recall,tail_ndcg,coverage.")] = None,
    k: Annotated[str | None, typer.Option(help="Cut-offs, separated by commas; 20,100 if not given.")] = None,
    xis: Annotated[
        str | None, typer.Option(help="Judge these ξ, separated by commas, instead of one: all from one fit.")
    ] = None,
    solver: SolverOption = "auto",
    dtype: DtypeOption = "float32",
    out: Annotated[Path | None, typer.Option(help="Write the figures to a .json, .csv or .md file too.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Judge a model: fitted to a part of DATA by the test users, or a saved MODEL by the users of --on DATA.

    With --split new-items it is judged by items that it knows by their --features alone, beside nearest neighbours by
    features, popularity and chance.
    """
    from relae.cli import _evaluate

    wanted = _evaluate.Wanted(names(metrics), whole_numbers(k, "--k"), numbers(xis, "--xis"), as_json, out)
    if on is None:
        division = without_none(split=split, share=share, seed=seed)
        _evaluate.of_data(
            source, columns, parameters, wanted, run=run, division=division, hide=hide, solver=solver, dtype=dtype
        )
    else:
        options = {name.replace("_", "-"): value for name, value in parameters.items()}
        refused = {"from": run, "split": split, "share": share, **options}
        _evaluate.of_model(source, on, columns, wanted, hide=hide, seed=seed, refused=refused)


@takes_columns
def compare(
    data: DataArgument,
    columns: Given,
    models: Annotated[
        str,
        typer.Option(help="all, or some models separated by commas, such as rdlae,ease,ials; popularity is always in."),
    ] = "all",
    split: SplitOption = None,
    share: ShareOption = None,
    seed: SeedOption = None,
    k: Annotated[
        int | None,
        typer.Option(help="The cut-off of all metrics; 100 if not given, but at most a fifth of the items."),
    ] = None,
    budget: Annotated[
        int,
        typer.Option(
            help="Inversions that the six linear models share, as many for dan, and fits of every other model to tune."
        ),
    ] = 8,
    time_budget: Annotated[
        float | None, typer.Option(help="Minutes of choosing and training, for each model; without end if not given.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A folder for the table and what is finished; a comparison in it goes on.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare models on DATA in one table: accuracy on head and tail, time, size, and who differs from the best.

    Parameters are chosen by validation users, and each model is judged once, by test users who took no part in that.
    Who cannot take part is named below with the reason; exit code 1 if one failed by an error that was not foreseen.
    """
    from relae.cli import _compare

    named = None if models.strip().lower() == "all" else names(models)
    division = without_none(split=split, share=share, seed=seed)
    options = {"k": k, "budget": budget, "time_budget": seconds(time_budget), "out": out}
    if not _compare.compare(data, named, options | division | columns, as_json):
        raise typer.Exit(1)


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run of `relae tune`.")],
    out: Annotated[Path | None, typer.Option(help="The file; RUN/report.html if not given.")] = None,
    samples: Annotated[int, typer.Option(help="Test users to show recommendations for; 0 shows nobody's history.")] = 5,
    user_ids: Annotated[bool, typer.Option("--user-ids", help="Call them by their ids, not by a number.")] = False,
) -> None:
    """Turn a run of `relae tune` into one HTML file to look at, print or mail: no network, light and dark."""
    from relae.cli import _report

    _report.write(run, out, samples, user_ids)


COMMANDS = (plan, tune, fit, evaluate, compare, report)
