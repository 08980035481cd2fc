"""Charts as SVG: each is drawn for a wide and a narrow page, and takes its colours from the page's style."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, floor, isfinite, log10

from relae.report._html import Markup, join, tag

WIDE, NARROW = 720.0, 350.0
_LETTER, _BOLD = 7.0, 8.0  # the width of a letter of the labels, near enough
_LINE = 15.0

Pair = tuple[float, float]
Area = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Scale:
    """From values to places on a side of the chart."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        low, high, value = (
            (log10(v) for v in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        )
        part = 0.5 if high == low else (value - low) / (high - low)
        return self.start + part * (self.stop - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """Return round values on the scale."""
        if self.log:
            return _log_ticks(self.low, self.high, count)
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        rough = span / count
        unit = 10.0 ** floor(log10(rough))
        step = next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= rough * 0.75)
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        return [round(i * step, 12) for i in range(first, last + 1)]


def _log_ticks(low: float, high: float, count: int) -> list[float]:
    """Return 1, 2, 5, 10, … or every so many powers of ten; the ends where nothing round is between them."""
    exponents = range(floor(log10(low)), ceil(log10(high)) + 1)
    for mantissas in ((1, 2, 5), (1, 3), (1,)):
        ticks = [m * 10.0**e for e in exponents for m in mantissas if low <= m * 10.0**e <= high]
        if len(ticks) <= count + 1:
            return ticks if len(ticks) > 1 else [low, high]
    return ticks[:: ceil(len(ticks) / count)]


def around(values: Sequence[float], margin: float = 0.06) -> Pair:
    """Return a range that holds all values, with some air."""
    known = [value for value in values if isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    air = (high - low) * margin or abs(high) * margin or 1.0
    return low - air, high + air


def figure(draw: Callable[[float], Markup], caption: object, class_: str = "") -> Markup:
    """Return a figure that is drawn for both widths, of which the page's style shows one."""
    return tag(
        "figure",
        tag("div", draw(WIDE), class_="wide"),
        tag("div", draw(NARROW), class_="narrow"),
        tag("figcaption", caption),
        class_=class_ or None,
    )


def small_figure(draw: Callable[[float], Markup], caption: object) -> Markup:
    """Return a figure of half the page's width."""
    return tag("figure", draw(NARROW), tag("figcaption", caption), class_="half")


def svg(width: float, height: float, title: str, description: str, *children: object) -> Markup:
    """Return a drawing with its name for those who cannot see it."""
    return tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        *children,
        viewBox=f"0 0 {_n(width)} {_n(height)}",
        role="img",
        class_="chart",
        style=f"max-width:{_n(width)}px",
    )


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


# --- parts -------------------------------------------------------------------------------------------------------


def label(x: float, y: float, words: str, class_: str = "", anchor: str = "start") -> Markup:
    """Return text at a place."""
    return tag(
        "text", words, x=_n(x), y=_n(y), class_=class_ or None, text_anchor=None if anchor == "start" else anchor
    )


def line(a: Pair, b: Pair, class_: str) -> Markup:
    """Return a straight line."""
    return tag("line", x1=_n(a[0]), y1=_n(a[1]), x2=_n(b[0]), y2=_n(b[1]), class_=class_)


def path(points: Sequence[Pair], class_: str, close: bool = False) -> Markup:
    """Return a line through points."""
    steps = "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
    return tag("path", d=f"M{steps}{'Z' if close else ''}", class_=class_) if points else Markup("")


def dot(
    x: float, y: float, radius: float, class_: str, hover: str | None = None, opacity: float | None = None
) -> Markup:
    """Return a circle, with words that appear above it."""
    inner = None if hover is None else tag("title", hover)
    strength = None if opacity is None else f"{opacity:.2f}"
    return tag("circle", inner, cx=_n(x), cy=_n(y), r=_n(radius), class_=class_, fill_opacity=strength)


def box(x: float, y: float, width: float, height: float, class_: str, hover: str | None = None) -> Markup:
    """Return a rectangle, with words that appear above it."""
    inner = None if hover is None else tag("title", hover)
    return tag("rect", inner, x=_n(x), y=_n(y), width=_n(max(width, 0)), height=_n(max(height, 0)), class_=class_)


def axes(
    x: Scale,
    y: Scale,
    x_name: str,
    y_name: str,
    x_tick: Callable[[float], str] | None = None,
    y_tick: Callable[[float], str] | None = None,
    y_count: int = 5,
    x_count: int | None = None,
) -> Markup:
    """Return grid lines with their values, and the names of both axes: that of y stands above it.

    Without a way to write them, the values of an axis have as many places as all of them need.
    """
    bottom, top, left, right = y.start, y.stop, x.start, x.stop
    parts: list[Markup] = []
    ys, xs = y.ticks(y_count), x.ticks(x_count or max(3, int((right - left) / 90)))
    x_tick, y_tick = x_tick or _even(xs), y_tick or _even(ys)
    for value in ys:
        at = y(value)
        parts += [line((left, at), (right, at), "grid"), label(left - 6, at + 4, y_tick(value), "tick", "end")]
    for value in xs:
        at = x(value)
        parts += [line((at, bottom), (at, bottom + 4), "axis"), label(at, bottom + 17, x_tick(value), "tick", "middle")]
    parts.append(line((left, bottom), (right, bottom), "axis"))
    parts.append(label(right, bottom + 34, x_name, "name", "end"))
    parts.append(label(0, top - 12, y_name, "name"))
    return join(*parts)


def _even(ticks: Sequence[float]) -> Callable[[float], str]:
    """Return a way to write values, all with as many places as they need."""
    decimals = 1
    while decimals < 6 and any(abs(round(tick, decimals) - tick) > 1e-9 for tick in ticks):
        decimals += 1
    return lambda tick: f"{tick:.{decimals}f}"


@dataclass
class Labels:
    """Places for labels near their points, such that none covers another."""

    width: float
    height: float
    taken: list[Area] = field(default_factory=list)

    def keep_clear(self, x: float, y: float, radius: float) -> None:
        """Let no label cover a mark."""
        self.taken.append((x - radius, y - radius, x + radius, y + radius))

    def keep_line_clear(self, points: Sequence[Pair]) -> None:
        """Let no label cover a line."""
        for (x0, y0), (x1, y1) in pairwise(points):
            steps = max(1, int(max(abs(x1 - x0), abs(y1 - y0)) / 6))
            for step in range(steps + 1):
                self.keep_clear(x0 + (x1 - x0) * step / steps, y0 + (y1 - y0) * step / steps, 1.5)

    def add(
        self,
        x: float,
        y: float,
        words: str,
        class_: str = "",
        *,
        radius: float = 5,
        needed: bool = True,
        reach: int = 5,
    ) -> Markup:
        """Return a label near a mark with a thread to it if it is far; nothing if it is not needed and has no room."""
        size = (_BOLD if class_ == "chosen" else _LETTER) * len(words)
        best: tuple[float, Area] | None = None
        for step in range(reach):
            for area in _around(x, y, size, radius + 5.0 + 12.0 * step):
                cost = sum(_overlap(area, other) for other in self.taken) + 10 * self._outside(area) + 3 * step
                if best is None or cost < best[0] - 1e-9:
                    best = (cost, area)
        assert best is not None
        cost, area = best
        if not needed and cost > 3 * reach:
            return Markup("")
        self.taken.append(area)
        near = (min(max(x, area[0]), area[2]), min(max(y, area[1]), area[3]))
        away = ((near[0] - x) ** 2 + (near[1] - y) ** 2) ** 0.5
        edge = (x + (near[0] - x) * radius / away, y + (near[1] - y) * radius / away) if away else near
        thread = line(edge, near, "thread") if away > radius + 12 else None
        return join(thread, label(area[0], area[3] - 4, words, class_))

    def _outside(self, area: Area) -> float:
        left, top, right, bottom = area
        return max(0.0, -left) + max(0.0, -top) + max(0.0, right - self.width) + max(0.0, bottom - self.height)


def _around(x: float, y: float, size: float, gap: float) -> Iterator[Area]:
    """Yield the places of a label around a mark, the best ones first."""
    half = _LINE / 2
    for left, middle in (
        (x + gap, y),
        (x - gap - size, y),
        (x - size / 2, y - gap - 4),
        (x - size / 2, y + gap + 4),
        (x + 0.7 * gap, y - 0.7 * gap - 4),
        (x + 0.7 * gap, y + 0.7 * gap + 4),
        (x - 0.7 * gap - size, y - 0.7 * gap - 4),
        (x - 0.7 * gap - size, y + 0.7 * gap + 4),
        (x - 0.8 * size, y - gap - 4),
        (x - 0.8 * size, y + gap + 4),
    ):
        yield left, middle - half, left + size, middle + half


def _overlap(a: Area, b: Area) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0 and height > 0 else 0.0


def whisker(low: float, mean: float, high: float, most: float, class_: str) -> Markup:
    """Return a small interval on a scale from 0, to stand below a figure in a table; decoration, so it has no name."""
    width, height = 96.0, 8.0
    scale = Scale(0.0, most or 1.0, 4.0, width - 4.0)
    parts = [line((4, height / 2), (width - 4, height / 2), "rail")]
    if isfinite(low) and isfinite(high):
        parts.append(line((scale(low), height / 2), (scale(high), height / 2), f"whisker {class_}"))
    parts.append(dot(scale(mean), height / 2, 3.2, f"fill {class_}"))
    return tag("svg", *parts, viewBox=f"0 0 {_n(width)} {_n(height)}", class_="whiskers", aria_hidden="true")


def bar(share: float, class_: str) -> Markup:
    """Return a bar for a share of 1; decoration, so it has no name."""
    width = 100 * min(max(share, 0.0), 1.0) if isfinite(share) else 0.0
    rail = box(0, 0, 100, 6, "rail-fill")
    return tag(
        "svg",
        rail,
        box(0, 0, width, 6, f"fill {class_}"),
        viewBox="0 0 100 6",
        preserveAspectRatio="none",
        class_="bar",
        aria_hidden="true",
    )
