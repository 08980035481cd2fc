"""Show the progress of long computations on stderr, with the remaining time."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from relae._common.progress import Progress as Report


@contextmanager
def progress_bar(console: Console) -> Iterator[Report]:
    """Yield a callback (stage, fraction) that draws one bar per stage; a bar disappears when its stage is done.

    Without a terminal, nothing is drawn.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[str, TaskID] = {}

        def report(stage: str, fraction: float) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=1.0)
            bars.update(tasks[stage], completed=fraction)
            if fraction >= 1.0:
                bars.remove_task(tasks.pop(stage))

        yield report
