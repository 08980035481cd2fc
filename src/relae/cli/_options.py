"""How to name DATA and its columns: the same words in every command."""

from pathlib import Path
from typing import Annotated

import typer

_TABLE = "Columns of a table"
_SPLIT = "Validation and test"

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A CSV, TSV or Parquet file, a folder with train.txt and test.txt, or the name of a benchmark.",
    ),
]
UserOption = Annotated[str, typer.Option(help="The column of users.", rich_help_panel=_TABLE)]
ItemOption = Annotated[str, typer.Option(help="The column of items.", rich_help_panel=_TABLE)]
RatingOption = Annotated[str | None, typer.Option(help="The column of ratings.", rich_help_panel=_TABLE)]
MinRatingOption = Annotated[float | None, typer.Option(help="The lowest rating that counts.", rich_help_panel=_TABLE)]
WeightOption = Annotated[str | None, typer.Option(help="The column of weights; without it 1.", rich_help_panel=_TABLE)]
TimestampOption = Annotated[
    str | None, typer.Option(help="The column of times, for --split last and time.", rich_help_panel=_TABLE)
]
TitlesOption = Annotated[
    Path | None, typer.Option(help="A table with the columns item and title.", rich_help_panel=_TABLE)
]
MinUserOption = Annotated[int, typer.Option(help="Drop users with fewer items.", rich_help_panel=_TABLE)]
MinItemOption = Annotated[int, typer.Option(help="Drop items with fewer users.", rich_help_panel=_TABLE)]
SplitOption = Annotated[
    str,
    typer.Option(
        help="auto, paper, strong (users held out), weak (items held out), last (of each user) or time.",
        rich_help_panel=_SPLIT,
    ),
]
ShareOption = Annotated[
    float, typer.Option(help="What is held out for validation, and again for the test.", rich_help_panel=_SPLIT)
]
SeedOption = Annotated[int, typer.Option(help="Of what is drawn at random.", rich_help_panel=_SPLIT)]
