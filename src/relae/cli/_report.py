"""`relae report`: write the page of a run, and say where it is."""

from pathlib import Path

from relae.cli import _console
from relae.cli._progress import progress_bar
from relae.experiments import Run
from relae.report import write_report


def write(run: Path, out: Path | None, samples: int, user_ids: bool) -> None:
    """Write the report of a run, and show its path and size."""
    with progress_bar(_console.error_console()) as progress:
        path = write_report(Run.read(run), out, samples=samples, user_ids=user_ids, progress=progress)
    size = path.stat().st_size / 1e3
    _console.output_console().print(f"{path}: {size:,.0f} kB, open it in any browser", soft_wrap=True, markup=False)
