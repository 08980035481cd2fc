"""`relae figures`: the paper's analysis of one data set, as pictures and as tables."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.markup import escape
from rich.table import Table

from relae import analysis
from relae._common.files import lock_folder, write_bytes
from relae._common.progress import Progress
from relae.analysis import Components, Sensitivity, Spectrum
from relae.cli import _console
from relae.cli._progress import progress_bar
from relae.data import Interactions
from relae.errors import DataError
from relae.evaluation import Split

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

NAMES = ("fig1", "fig2", "fig3", "fig4", "fig5")
_AT_MOST = 5  # lines in Figure 1


class _Asked(NamedTuple):
    """What figures are made of."""

    data: Interactions
    split: Split
    l2: float | None
    l2s: Sequence[float] | None
    dropouts: Sequence[float] | None
    xis: Sequence[float] | None
    seed: int


def figures(
    data: Interactions,
    split: Split,
    title: str,
    out: Path,
    *,
    l2: float | None = None,
    l2s: Sequence[float] | None = None,
    dropouts: Sequence[float] | None = None,
    xis: Sequence[float] | None = None,
    only: list[str] | None = None,
    seed: int = 0,
) -> None:
    """Make the paper's five figures for one data set; each is written as soon as it is done.

    Parameters
    ----------
    data
        What Figures 1 and 2 decompose.
    split
        What Figures 3 to 5 fit to and judge by: users held out, as in the paper.
    title
        The name of the data.
    out
        The folder for fig1.png, fig1.svg, fig1.csv and so on.
    l2, l2s, dropouts, xis
        λ where it is fixed, and the values of λ, dropout and ξ to go over; by the data if not given.
    only
        Some of "fig1" to "fig5" (or "1" to "5"); all if not given.
    seed
        Of everything that is drawn.
    """
    wanted = _wanted(only)
    console, errors = _console.output(), _console.errors()
    table = Table(box=None, padding=(0, 2, 1, 0), show_header=False)
    table.add_column(no_wrap=True, style="bold cyan")
    table.add_column()
    asked = _Asked(data, split, l2, l2s, dropouts, xis, seed)
    known: Sensitivity | None = None
    with lock_folder(out), progress_bar(errors) as progress:
        for name in wanted:
            found, figure = _made(name, asked, title, known, progress)
            if isinstance(found, Sensitivity) and found.parameter == "xi":
                known = found  # its unconstrained end is a model of Figures 4 and 5
            contents = {
                "csv": _csv(found.to_polars()),
                "png": analysis.render(figure, "png"),
                "svg": analysis.render(figure, "svg"),
            }
            for kind, content in contents.items():
                write_bytes(out / f"{name}.{kind}", content)
            table.add_row(f"Figure {name[3:]}", escape(analysis.finding(found)))
    console.print(f"[bold]{escape(title)}[/bold]\n")
    console.print(table)
    listed = ", ".join(f"{name}.png" for name in wanted)
    console.print(f"{escape(str(out))}: {listed}; the same as .svg, and the numbers as .csv", soft_wrap=True)


def _wanted(only: list[str] | None) -> list[str]:
    if only is None:
        return list(NAMES)
    names = {name if name.startswith("fig") else f"fig{name}" for name in only}
    unknown = names - set(NAMES)
    if unknown or not names:
        raise DataError(
            f"there is no figure {', '.join(sorted(unknown)) or '(none)'}: the figures are {', '.join(NAMES)}"
        )
    return sorted(names)


def _made(
    name: str, asked: _Asked, title: str, known: Sensitivity | None, progress: Progress
) -> tuple[Spectrum | Components | Sensitivity, "Figure"]:
    """Return the numbers and the picture of one figure; each draws from a generator of its own."""
    rng = np.random.default_rng([asked.seed, int(name[3:])])
    if name == "fig1":
        spectrum = analysis.spectrum(asked.data, _some(asked.l2s), rng=rng, progress=progress)
        return spectrum, analysis.plot_spectrum(spectrum, title)
    if name == "fig2":
        components = analysis.components(asked.data, asked.l2, rng=rng, progress=progress)
        return components, analysis.plot_components(components, title)
    rng = np.random.default_rng(asked.seed)  # the same resampled users in all three
    compute: dict[str, Callable[[], Sensitivity]] = {
        "fig3": lambda: analysis.sensitivity_xi(asked.split, asked.l2, asked.xis, rng=rng, progress=progress),
        "fig4": lambda: analysis.sensitivity_l2(asked.split, asked.l2s, known=known, rng=rng, progress=progress),
        "fig5": lambda: analysis.sensitivity_dropout(
            asked.split, asked.dropouts, asked.l2, known=known, rng=rng, progress=progress
        ),
    }
    found = compute[name]()
    return found, analysis.plot_sensitivity(found, title)


def _some(l2s: Sequence[float] | None) -> list[float] | None:
    """Return a few of many values, the first and the last among them."""
    if l2s is None:
        return None
    values = sorted(l2s)
    places = np.unique(np.linspace(0, len(values) - 1, min(_AT_MOST, len(values))).round().astype(int))
    return [values[place] for place in places]


def _csv(frame: "pl.DataFrame") -> bytes:
    import polars as pl

    return frame.with_columns(pl.col(pl.Float64).round_sig_figs(7)).write_csv().encode()
