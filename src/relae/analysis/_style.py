"""The style of figures: a palette that colour-blind readers can tell apart, one set of sizes, no global state.

matplotlib is imported inside functions: analysis as numbers works without it.
"""

import io
import textwrap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from relae.errors import RelaeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Formatter


class PlotsMissingError(RelaeError, ImportError):
    """A plot is asked for and matplotlib is not installed."""


INK = "#222222"
FAINT = "#6f6f6f"
GRID = "#e4e4e4"
_TITLE, _TEXT, _SMALL = 12.0, 9.5, 8.5  # points
_LINE = 1.45  # height of a line of text, in its size
_EDGE = 0.14  # inches


class Look(NamedTuple):
    """A line that is told apart by colour, by dash and by marker."""

    color: str
    dash: Any
    marker: str


# Okabe and Ito's palette
GROUPS = {
    "all": Look("#000000", "-", "o"),
    "head": Look("#0072B2", (0, (5, 1.5)), "s"),
    "tail": Look("#D55E00", (0, (3, 1.2, 1, 1.2)), "^"),
}
SHARE = Look("#009E73", "-", "D")
HEAT = "PuOr_r"  # orange above 0, purple below: told apart by colour-blind readers too
_RAMP = ("#440154", "#31688e", "#1f9e89", "#8fb827", "#d8a100")  # dark to light, for what has an order
_DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (3, 1.2)), (0, (5, 1.2, 1, 1.2)), (0, (1, 1)))


def ordered(count: int) -> list[Look]:
    """Return looks for lines that have an order, from dark to light."""
    steps = len(_RAMP) - 1
    at = [round(i * steps / max(count - 1, 1)) for i in range(count)]
    return [Look(_RAMP[i % len(_RAMP)], _DASHES[i % len(_DASHES)], "") for i in at]


def new_figure(
    width: float, height: float, columns: int, title: str, subtitle: str, note: str, **grid: Any
) -> tuple["Figure", list["Axes"]]:
    """Return a figure with a row of axes below a title that says the finding; sizes in inches, of axes with labels."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise PlotsMissingError(f"figures need matplotlib ({error}): pip install 'relae[plots]'") from error
    texts: list[tuple[str, float, dict[str, Any]]] = [
        (textwrap.fill(title, int(width * 10)), _TITLE, {"fontweight": "bold", "color": INK}),
        (textwrap.fill(subtitle, int(width * 12)), _TEXT, {"color": FAINT}),
    ]
    below = textwrap.fill(note, int(width * 15.5))
    above = sum(_inches(text, size) for text, size, _ in texts) + _EDGE
    under = _inches(below, _SMALL) + _EDGE / 2
    total = height + above + under
    layout = ConstrainedLayoutEngine(
        rect=(0.005, under / total, 0.99, height / total), w_pad=0.06, h_pad=0.06, wspace=0.04
    )
    figure = Figure(figsize=(width, total), facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    y = total - _EDGE
    for text, size, look in texts:
        figure.text(_EDGE / width, y / total, text, fontsize=size, va="top", linespacing=1.25, **look)
        y -= _inches(text, size)
    figure.text(_EDGE / width, _EDGE / 2 / total, below, fontsize=_SMALL, color=FAINT, va="bottom", linespacing=1.25)
    axes = figure.subplots(1, columns, squeeze=False, **grid)[0].tolist()
    return figure, axes


def _inches(text: str, size: float) -> float:
    return (text.count("\n") + 1) * size * _LINE / 72


def dress(axes: "Axes", title: str, x: str, y: str, *, grid: bool = True) -> None:
    """Give axes their title and labels, and take away what is not needed."""
    axes.set_title(title, fontsize=_TEXT + 0.5, color=INK, loc="left", pad=7)
    axes.set_xlabel(x, fontsize=_TEXT, color=INK)
    axes.set_ylabel(y, fontsize=_TEXT, color=INK)
    axes.tick_params(labelsize=_SMALL, colors=INK, length=3, width=0.6, which="major")
    axes.tick_params(length=0, which="minor", labelsize=_SMALL)
    for name, spine in axes.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color("#9a9a9a")
        spine.set_linewidth(0.6)
    if grid:
        axes.grid(True, color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)


def plain_numbers() -> "Formatter":
    """Return a formatter that writes 1,000 and not 10³."""
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")


def label(axes: "Axes", text: str, at: tuple[float, float], color: str, **options: Any) -> None:
    """Write beside a line, on a halo of white so that no other line runs through it."""
    from matplotlib.patheffects import withStroke

    placed: dict[str, Any] = {"xytext": (4, 0), "va": "center", "ha": "left", "annotation_clip": False} | options
    axes.annotate(
        text,
        at,
        textcoords="offset points",
        fontsize=_SMALL,
        color=color,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],
        **placed,
    )


def render(figure: "Figure", form: Literal["png", "svg"]) -> bytes:
    """Return a figure as the bytes of a PNG (200 dots per inch) or of an SVG whose text stays text.

    The same figure gives the same bytes: its layout is made once, and kept.
    """
    import matplotlib

    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for axes in figure.axes:  # the last bits of the layout are not always the same
            left, bottom, width, height = axes.get_position(original=True).bounds
            axes.set_position((round(left, 5), round(bottom, 5), round(width, 5), round(height, 5)))
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "relae"}):
        metadata = {"Date": None} if form == "svg" else {"Software": None}
        figure.savefig(file, format=form, dpi=200, metadata=metadata)
    return file.getvalue()
