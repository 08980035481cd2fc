"""`relae figures`: draw the paper's figures for one data set, and write their numbers."""

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
_MAX_LINES = 5  # in Figure 1


class _Inputs(NamedTuple):
    """The data and parameters of the figures."""

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
    """Draw the paper's five figures for one data set, and write each as soon as it is done.

    Parameters
    ----------
    data
        The interactions that Figures 1 and 2 decompose.
    split
        The split that Figures 3 to 5 fit to and evaluate on: users held out, as in the paper.
    title
        The name of the data.
    out
        The folder for fig1.png, fig1.svg, fig1.csv and so on.
    l2, l2s, dropouts, xis
        λ where it is fixed, and the values of λ, dropout and ξ to try; chosen from the data if None.
    only
        Some of "fig1" to "fig5" (or "1" to "5"); all if None.
    seed
        The seed of all random numbers.
    """
    names = _parse_only(only)
    console, errors = _console.output_console(), _console.error_console()
    table = Table(box=None, padding=(0, 2, 1, 0), show_header=False)
    table.add_column(no_wrap=True, style="bold cyan")
    table.add_column()
    inputs = _Inputs(data, split, l2, l2s, dropouts, xis, seed)
    known: Sensitivity | None = None
    with lock_folder(out), progress_bar(errors) as progress:
        for name in names:
            result, figure = _make_figure(name, inputs, title, known, progress)
            if isinstance(result, Sensitivity) and result.parameter == "xi":
                known = result  # Figures 4 and 5 reuse its unconstrained model (ξ = 1)
            contents = {
                "csv": _to_csv(result.to_polars()),
                "png": analysis.render(figure, "png"),
                "svg": analysis.render(figure, "svg"),
            }
            for kind, content in contents.items():
                write_bytes(out / f"{name}.{kind}", content)
            table.add_row(f"Figure {name[3:]}", escape(analysis.finding(result)))
    console.print(f"[bold]{escape(title)}[/bold]\n")
    console.print(table)
    listed = ", ".join(f"{name}.png" for name in names)
    console.print(f"{escape(str(out))}: {listed}; the same as .svg, and the numbers as .csv", soft_wrap=True)


def _parse_only(only: list[str] | None) -> list[str]:
    if only is None:
        return list(NAMES)
    names = {name if name.startswith("fig") else f"fig{name}" for name in only}
    unknown = names - set(NAMES)
    if unknown or not names:
        raise DataError(
            f"there is no figure {', '.join(sorted(unknown)) or '(none)'}: the figures are {', '.join(NAMES)}"
        )
    return sorted(names)


def _make_figure(
    name: str, inputs: _Inputs, title: str, known: Sensitivity | None, progress: Progress
) -> tuple[Spectrum | Components | Sensitivity, "Figure"]:
    """Return the numbers and the picture of one figure; each uses its own random generator."""
    rng = np.random.default_rng([inputs.seed, int(name[3:])])
    if name == "fig1":
        spectrum = analysis.spectrum(inputs.data, _select_few(inputs.l2s), rng=rng, progress=progress)
        return spectrum, analysis.plot_spectrum(spectrum, title)
    if name == "fig2":
        components = analysis.components(inputs.data, inputs.l2, rng=rng, progress=progress)
        return components, analysis.plot_components(components, title)
    rng = np.random.default_rng(inputs.seed)  # the same resampled users in all three
    compute: dict[str, Callable[[], Sensitivity]] = {
        "fig3": lambda: analysis.sensitivity_xi(inputs.split, inputs.l2, inputs.xis, rng=rng, progress=progress),
        "fig4": lambda: analysis.sensitivity_l2(inputs.split, inputs.l2s, known=known, rng=rng, progress=progress),
        "fig5": lambda: analysis.sensitivity_dropout(
            inputs.split, inputs.dropouts, inputs.l2, known=known, rng=rng, progress=progress
        ),
    }
    sensitivity = compute[name]()
    return sensitivity, analysis.plot_sensitivity(sensitivity, title)


def _select_few(l2s: Sequence[float] | None) -> list[float] | None:
    """Return at most `_MAX_LINES` of the values, evenly spread from the smallest to the largest."""
    if l2s is None:
        return None
    values = sorted(l2s)
    positions = np.unique(np.linspace(0, len(values) - 1, min(_MAX_LINES, len(values))).round().astype(int))
    return [values[position] for position in positions]


def _to_csv(frame: "pl.DataFrame") -> bytes:
    import polars as pl

    return frame.with_columns(pl.col(pl.Float64).round_sig_figs(7)).write_csv().encode()
