"""The paper's figures from the numbers of this package."""

from typing import TYPE_CHECKING

import numpy as np

from relae.analysis import _style as style
from relae.analysis._components import Components
from relae.analysis._findings import change, lean, number, symbol
from relae.analysis._sensitivity import Sensitivity
from relae.analysis._spectrum import Spectrum

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_spectrum(spectrum: Spectrum, title: str = "") -> "Figure":
    """Return Figure 1: σ²/(σ²+λ) and 1/(σ²+λ) over the principal components, a line per λ.

    Parameters
    ----------
    found
        Of `spectrum`.
    title
        The name of the data, for the subtitle.
    """
    rank = len(spectrum.eigenvalues)
    source = "exact eigenvalues" if spectrum.exact else "eigenvalues estimated, except for the largest"
    figure, (kept, constrained) = style.new_figure(
        9.0,
        3.5,
        2,
        f"The larger λ, the fewer components count: half or more is kept of {spectrum.half_kept[0]:,} at λ = "
        f"{number(spectrum.l2s[0])}, of {spectrum.half_kept[-1]:,} at λ = {number(spectrum.l2s[-1])}",
        _subtitle(title, f"{rank:,} principal components, {source}"),
        "Diagonal constraints are subtracted from the solution: where (b) is high, they press most.",
    )
    component = np.arange(1, rank + 1)
    ranks = _thinned(rank)
    looks = style.ordered(len(spectrum.l2s))
    heights = np.linspace(0.78, 0.32, len(spectrum.l2s))  # of labels: side by side they would meet
    rows = zip(spectrum.l2s, looks, spectrum.kept, spectrum.constrained, heights, strict=True)
    for l2, look, left, right, height in rows:
        for axes, values in ((kept, left), (constrained, right)):
            axes.plot(component[ranks], values[ranks], color=look.color, linestyle=look.dash, linewidth=1.7)
        at = min(int(np.count_nonzero(left >= height)), rank - 1)
        style.label(kept, f"λ = {number(l2)}", (at + 1, left[at]), look.color, xytext=(6, 3))
        style.label(constrained, f"λ = {number(l2)}", (rank, right[-1]), look.color)
    x = "rank of the principal component (log scale)"
    style.dress(kept, "(a) L2 regularization keeps the high-ranked", x, "share that is kept, σ²/(σ²+λ)")
    style.dress(constrained, "(b) Diagonal constraints press on the low-ranked", x, "1/(σ²+λ) (log scale)")
    for axes in (kept, constrained):
        axes.set_xscale("log")
        axes.set_xlim(1, rank)
        axes.xaxis.set_major_formatter(style.plain_numbers())
    kept.set_ylim(0, 1.03)
    constrained.set_yscale("log")
    return figure


def plot_components(components: Components, title: str = "") -> "Figure":
    """Return Figure 2: what high- and low-ranked principal components say of popular and of unpopular items.

    Parameters
    ----------
    found
        Of `components`.
    title
        The name of the data, for the subtitle.
    """
    source = "" if components.exact else ", estimated: the edges of both groups are smooth"
    figure, panels = style.new_figure(
        9.0,
        3.75,
        2,
        f"High-ranked components speak of {lean(components, components.high)}, low-ranked ones of "
        f"{lean(components, components.low)}",
        _subtitle(
            title,
            f"LAE with λ = {number(components.l2)}; {components.group:,} of {components.rank:,} components in each "
            f"group{source}",
        ),
        f"{components.popular} popular items (left and top of the lines) and "
        f"{len(components.items) - components.popular} unpopular ones, drawn at random and sorted by popularity. Each "
        "panel has its own colours, which end at the 99th percentile of pairs; the diagonal is left out. In brackets "
        "above: mean absolute weight of a pair.",
    )
    names = ("(a) High-ranked components", "(b) Low-ranked components")
    for axes, part, name in zip(panels, (components.high, components.low), names, strict=True):
        _heat(
            axes,
            part,
            components.popular,
            f"{name}: {'first' if part is components.high else 'last'} {components.share:.0%}",
        )
    return figure


def _heat(axes: "Axes", part: np.ndarray, popular: int, name: str) -> None:
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    n = len(part)
    pairs = np.where(np.eye(n, dtype=bool), np.nan, part)
    edge = float(np.nanquantile(np.abs(pairs), 0.99)) or 1.0
    image = axes.imshow(pairs, cmap=style.HEAT, vmin=-edge, vmax=edge, interpolation="nearest")
    for line in (axes.axhline, axes.axvline):
        line(popular - 0.5, color=style.INK, linewidth=0.8)
    style.dress(axes, name, "item, from popular to unpopular", "item, from popular to unpopular", grid=False)
    ticks = [0, popular, *range(popular + 20, n, 20), n]
    axes.set_xticks([tick - 0.5 for tick in ticks], [str(tick) for tick in ticks])
    axes.set_yticks([tick - 0.5 for tick in ticks], [str(tick) for tick in ticks])
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.86, aspect=26, pad=0.02, extend="both")
    shown = ScalarFormatter(useMathText=True)
    shown.set_powerlimits((-2, 3))
    bar.locator, bar.formatter = MaxNLocator(5), shown
    bar.update_ticks()
    bar.ax.tick_params(labelsize=8, length=2, width=0.5)
    bar.ax.yaxis.get_offset_text().set_fontsize(8)
    bar.outline.set_visible(False)


_AXES = {
    "xi": "ξ, the limit of the diagonal",
    "l2": "λ, L2 regularization (log scale)",
    "dropout": "dropout probability",
}


def plot_sensitivity(sensitivity: Sensitivity, title: str = "") -> "Figure":
    """Return Figure 3, 4 or 5: NDCG of all, head and tail items over ξ, λ or dropout.

    Parameters
    ----------
    found
        Of `sensitivity_xi`, `sensitivity_l2` or `sensitivity_dropout`.
    title
        The name of the data, for the subtitle.
    """
    share = sensitivity.unconstrained
    gone = "" if share is None else f", with {share[sensitivity.curves['all'].best]:.0%} of the constraints gone"
    fixed = ", ".join(
        f"{'λ' if name == 'l2' else name} = {number(value)}" for name, value in sensitivity.fixed.items() if value > 0
    )
    figure, panels = style.new_figure(
        10.6 if share is not None else 9.0,
        2.95,
        3 if share is None else 4,
        f"As {symbol(sensitivity)} grows, tail items {change(sensitivity, 'tail')}, head items "
        f"{change(sensitivity, 'head')}. "
        f"Best for all: {symbol(sensitivity)} = {number(sensitivity.best)}{gone}",
        _subtitle(
            title,
            f"{sensitivity.model}{' with ' + fixed if fixed else ''}, {len(sensitivity.evaluations[0].users):,} users",
        ),
        "Each panel has its own scale. Bands: 95% bootstrap intervals over users. Rings: the best of the panel. "
        "Dotted: the best for all items.",
        sharex=True,
    )
    head = sensitivity.head_share
    names = {
        "all": "All items",
        "head": f"Head: the {head:.0%} most popular",
        "tail": f"Tail: the other {1 - head:.0%}",
    }
    for axes, (group, curve) in zip(panels, sensitivity.curves.items(), strict=False):
        look = style.GROUPS[group]
        axes.fill_between(sensitivity.values, curve.low, curve.high, color=look.color, alpha=0.10, linewidth=0)
        _line(axes, sensitivity, curve.mean, look)
        style.dress(axes, names[group], _AXES[sensitivity.parameter], f"NDCG@{sensitivity.k}" if group == "all" else "")
        if not np.isnan(curve.mean).all():
            _ring(axes, sensitivity, curve.mean, curve.best, f"{curve.mean[curve.best]:.4f}", look.color)
            axes.margins(y=0.14)
            axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
    if share is not None:
        _line(panels[-1], sensitivity, share, style.SHARE)
        style.dress(panels[-1], "Constraints that are gone", _AXES[sensitivity.parameter], "")
        panels[-1].set_ylim(-0.03, 1.15)
        panels[-1].set_yticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
        at = sensitivity.curves["all"].best
        _ring(panels[-1], sensitivity, share, at, f"{share[at]:.1%}", style.SHARE.color)
    for axes in panels:
        axes.axvline(sensitivity.best, color=style.FAINT, linewidth=0.8, linestyle=":", zorder=1)
        if sensitivity.parameter == "l2":
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(style.plain_numbers())
    return figure


def _line(axes: "Axes", sensitivity: Sensitivity, values: np.ndarray, look: style.Look) -> None:
    axes.plot(
        sensitivity.values,
        values,
        color=look.color,
        linestyle=look.dash,
        marker=look.marker,
        markersize=3.4,
        linewidth=1.5,
    )


def _ring(axes: "Axes", sensitivity: Sensitivity, values: np.ndarray, at: int, text: str, color: str) -> None:
    """Point out one value, with its figure on the side where there is room."""
    point = sensitivity.values[at], values[at]
    axes.plot(*point, marker="o", markersize=9, markerfacecolor="none", markeredgecolor=color, markeredgewidth=1.2)
    where = at / max(len(values) - 1, 1)
    beyond = sensitivity.values[at] > sensitivity.best  # away from the dotted line
    right = where < 0.75 and (beyond or where < 0.3 or (sensitivity.values[at] == sensitivity.best and where < 0.5))
    sideways = {"xytext": (4, 8), "ha": "left"} if right else {"xytext": (-4, 8), "ha": "right"}
    style.label(axes, text, point, color, va="bottom", **sideways)


def _subtitle(title: str, facts: str) -> str:
    return f"{title}: {facts}" if title else facts[0].upper() + facts[1:]


def _thinned(rank: int) -> np.ndarray:
    """Return places to draw, evenly on a log scale: an SVG needs no more."""
    return np.unique(np.geomspace(1, rank, 600).astype(np.int64)) - 1
