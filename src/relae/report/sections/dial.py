"""The effect of ξ, the first dial of a linear autoencoder."""

from math import isfinite

from relae._common.words import in_count
from relae.report import _words as words
from relae.report._charts import Pair, Scale, around, axes, box, dot, figure, label, line, path, svg
from relae.report._html import Markup, join, tag
from relae.report._report import Report, Searched
from relae.report.sections.trade_off import hover
from relae.tuning import Point


def draw_dial(report: Report) -> Markup | None:
    """Return accuracy, tail and free items over the dial; None if there was no last fit."""
    if report.fit is None:
        return None
    turned = report.dials[0]
    sign, (low, high), (first, last) = turned.symbol, _interval(report), report.fit.ends
    norms = " with these norms" if any(report.point[each.name] != each.neutral for each in report.extras) else ""
    free = words.percent(report.fit.unconstrained_here, 1)
    return join(
        tag(
            "p",
            f"{sign} bounds how much an item may recommend itself. An item whose own weight is below {sign} is free of "
            f"that constraint. At {sign} = 0 the model is {first}{norms}, at {sign} = 1 it is {last}{norms}. On this "
            f"data only {sign} between {low:.3f} and {high:.3f} change anything (shaded); at the chosen {sign} = "
            f"{words.number(report.point[turned.name])}, {free} of the items are free.",
        ),
        figure(
            lambda width: _draw(report, turned, width),
            f"Validation users, {words.setting(report.space, report.point, turned)} held fixed: "
            f"{in_count(len(_select_points(report, turned)), 'value')} of {sign} from one inversion. The share "
            "of free items is that of the last fit.",
        ),
    )


def _interval(report: Report) -> Pair:
    """Return the values of the dial between which recommendations change."""
    low, high = report.trial.facts.get("interval", (0.0, 1.0))
    return low, high


def _draw(report: Report, turned: Searched, width: float) -> Markup:
    """Draw accuracy, the tail and the free items over a dial, with all else as chosen."""
    assert report.fit is not None
    sign, here = turned.symbol, report.point[turned.name]
    panel, gap, left = (112.0, 42.0, 52.0) if width > 500 else (100.0, 42.0, 52.0)
    points = _select_points(report, turned)
    x = Scale(0.0, 1.0, left, width - 12)
    panels: list[tuple[str, str, list[tuple[float, float]]]] = [
        (
            words.metric(name),
            css,
            [(p.parameters[turned.name], p.metrics[name]) for p in points if isfinite(p.metrics[name])],
        )
        for name, css in zip(report.axes, ("", "tail"), strict=True)
    ]
    panels.append(("Items without a constraint", "other", list(report.fit.unconstrained)))
    height = len(panels) * (panel + gap) + 26
    low, high = _interval(report)
    parts: list[Markup] = []
    for number, (name, css, curve) in enumerate(panels):
        top = 30 + number * (panel + gap)
        is_share = css == "other"
        y = Scale(*((0.0, 1.0) if is_share else around([v for _, v in curve], 0.12)), top + panel, top)
        last = number == len(panels) - 1
        parts.append(box(x(low), top, x(high) - x(low), panel, "band"))
        parts.append(
            axes(
                x,
                y,
                sign if last else "",
                name,
                words.short if last else words.nothing,
                words.percent if is_share else None,
                2 if is_share else 3,
                5,
            )
        )
        parts.append(line((x(here), top - 4), (x(here), top + panel), "here"))
        whole = curve if is_share else _flat_outside(curve, low, high)
        parts.append(path([(x(at), y(v)) for at, v in whole], f"curve {css}".strip()))
        if not is_share:
            for point, (at, value) in zip(points, curve, strict=False):
                parts.append(dot(x(at), y(value), 2.6, f"fill {css or 'ease'}", hover(report, point)))
        if number == 0:
            right = x(here) < width * 0.7
            parts.append(
                label(
                    x(here) + (6 if right else -6),
                    top + 6,
                    f"chosen {sign} {words.number(here)}",
                    "chosen",
                    "start" if right else "end",
                )
            )
    return svg(
        width,
        height,
        f"What {sign} does",
        f"{words.metric(report.axes[0])}, {words.metric(report.axes[1])} and the share of items without a constraint "
        f"for {sign} from 0 to 1; it matters between {low:.3f} and {high:.3f}.",
        *parts,
    )


def _select_points(report: Report, turned: Searched) -> list[Point]:
    """Return the points of a fit by the value of a dial, with all other dials as chosen."""
    held = [each.name for each in report.dials if each != turned]
    own = [point for point in report.trial.points if all(point.parameters[name] == report.point[name] for name in held)]
    return sorted(own, key=lambda point: float(point.parameters[turned.name]))


def _flat_outside(curve: list[Pair], low: float, high: float) -> list[Pair]:
    """Add the corners of the interval of a dial to a curve: nothing changes outside of it."""
    ends = []
    if curve and curve[0][0] <= low:
        ends.append((low, curve[0][1]))
    if curve and curve[-1][0] >= high:
        ends.append((high, curve[-1][1]))
    return sorted({*curve, *ends})
