"""The trade-off between accuracy and the tail, over all configurations."""

from math import isfinite

from relae._common.words import in_count
from relae.report import _words as words
from relae.report._charts import Labels, Scale, around, axes, dot, figure, path, svg
from relae.report._html import Markup, join, tag
from relae.report._report import Report
from relae.tuning import Point

_MAX_POINTS = 1500


def draw_trade_off(report: Report) -> Markup:
    """Return the chart of all configurations."""
    first, _ = report.axes
    most, chosen = report.front[0] if report.front else None, _chosen_point(report)
    near, everything = _select_points(report)
    lost = ""
    if chosen is not None and most is not None and most.metrics[first] > 0:
        share = chosen.metrics[first] / most.metrics[first] - 1
        lost = (
            " The chosen point is the most accurate of all."
            if abs(share) < 5e-5
            else f" The chosen point gives up {words.percent(-share, 1)} of the best {words.metric(first)}."
        )
    hidden = everything - len(near)
    caption = (
        f"Each dot is one configuration, judged by {in_count(report.valid_users, 'validation user')}. "
        f"Up is better for unpopular items, right is better for all. On the line lie the {len(report.front)} that no "
        f"other beats in both. Circles are the best of each model."
        + (f" {hidden:,} weaker or neighbouring ones of {everything:,} are left out." if hidden > 0 else "")
    )
    return join(
        tag(
            "p",
            "What popular items gain, unpopular ones often lose. This is how much of one costs how much of the other "
            f"on this report.{lost}",
        ),
        figure(lambda width: _draw(report, width), caption),
    )


def hover(report: Report, point: Point) -> str:
    """Return the parameters and figures of a point, to be shown when it is pointed at."""
    figures = "; ".join(f"{words.metric(name)} {words.value(point.metrics[name])}" for name in report.axes)
    return f"{words.setting(report.space, point.parameters)}: {figures}"


def _chosen_point(report: Report) -> Point | None:
    """Return the chosen point; None if it has no place in the chart."""
    return report.chosen if _has_place(report.chosen, report) else None


def _has_place(point: Point, report: Report) -> bool:
    return all(isfinite(point.metrics[name]) for name in report.axes)


def _select_points(report: Report) -> tuple[list[Point], int]:
    """Return the points near enough to the front to be drawn, and how many there are in all."""
    first, second = report.axes
    everything = [point for point in report.tuning.points if _has_place(point, report)]
    marked = [*report.front, *report.bests.values()]
    lows = []
    for name in (first, second):
        values = [point.metrics[name] for point in marked if isfinite(point.metrics[name])]
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        lows.append(low - 0.5 * (high - low) - 1e-9)
    near = [p for p in everything if p.metrics[first] >= lows[0] and p.metrics[second] >= lows[1]]
    return near[:: max(1, -(-len(near) // _MAX_POINTS))], len(everything)


def _draw(report: Report, width: float) -> Markup:
    """Draw accuracy against the tail on the validation users, with the front and the best of each model."""
    first, second = report.axes
    height = 430.0 if width > 500 else 380.0
    near, _ = _select_points(report)
    on_front = [point for point in report.front if _has_place(point, report)]
    bests = {name: point for name, point in report.bests.items() if _has_place(point, report)}
    marked = [*on_front, *bests.values(), *near]
    x = Scale(*around([p.metrics[first] for p in marked]), 52, width - 12)
    y = Scale(*around([p.metrics[second] for p in marked]), height - 44, 34)

    def at(point: Point) -> tuple[float, float]:
        return x(point.metrics[first]), y(point.metrics[second])

    names: dict[int, list[str]] = {}  # of the models that have the same best point
    points: dict[int, Point] = {}
    for name, point in bests.items():
        names.setdefault(id(point), []).append(name)
        points[id(point)] = point
    chosen = _chosen_point(report)
    labels = Labels(width - 4, height - 46)
    parts: list[Markup] = []
    for point in points.values():
        labels.keep_clear(*at(point), 6)
    front = [at(point) for point in on_front]
    labels.keep_line_clear(front)
    if chosen is not None:
        spot = at(chosen)
        parts.append(dot(*spot, 10, "ring"))
        parts.append(dot(*spot, 6, "mark chosen", f"chosen: {hover(report, chosen)}"))
        labels.keep_clear(*spot, 11)
        parts.append(labels.add(*spot, f"chosen: {report.model_name}", "chosen", radius=11))
    for key, point in points.items():
        if point is chosen:
            continue
        spot, title = at(point), ", ".join(names[key])
        parts.append(dot(*spot, 4.5, "mark", f"best {title}: {hover(report, point)}"))
        parts.append(labels.add(*spot, title))
    named = {*points, id(chosen)}
    cloud = [dot(*at(p), 2.6, "faint", hover(report, p)) for p in near if id(p) not in named]
    plain = "" if width > 500 else " →"
    return svg(
        width,
        height,
        "The trade-off between accuracy and the tail",
        f"{words.metric(second)} against {words.metric(first)} of all configurations on the validation users. "
        f"The front runs through {len(report.front)} of them; the chosen one is marked.",
        axes(x, y, f"{words.metric(first)}{plain or ' (better →)'}", f"↑ {words.metric(second)}"),
        *cloud,
        path(front, "front"),
        *(dot(*spot, 2.4, "fill ease") for spot in front),
        *parts,
    )
