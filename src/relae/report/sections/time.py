"""The gain of the parameters of time, and the best that was found for each of their values."""

from collections.abc import Mapping
from math import ceil, isfinite
from typing import Any

from relae._common.words import in_count
from relae.report import _words as words
from relae.report._charts import Scale, around, axes, dot, path, small_figure, svg
from relae.report._html import Markup, join, tag
from relae.report._report import Report, Searched
from relae.report.sections.search import best_value
from relae.tuning import Point

_LETTER, _AIR = 6.5, 8.0  # the width of a letter below a chart, and the air between labels


def draw_time(report: Report) -> Markup | None:
    """Return the gain of time and a chart for each of its parameters; None if none was searched."""
    objective = words.metric(report.objective)
    charts = [(each, best) for each in report.time if len(best := _best_by_value(report, each)) > 1]
    if not charts:
        return None
    return join(
        tag("p", _gain(report)),
        tag("p", _remark(report), class_="note"),
        tag(
            "div",
            *(
                small_figure(
                    lambda width, each=each, best=best: _draw(report, each, best, width),  # type: ignore[misc]
                    f"{each.effect}: the best {objective} found for each.{_explain_pale(report, each, best)}",
                )
                for each, best in charts
            ),
            class_="halves",
        ),
    )


def _is_timeless(point: Point) -> bool:
    return not words.time(point.parameters)


def _best(report: Report, timeless: bool) -> Point | None:
    """Return the best allowed configuration with or without time; None if there is none."""
    points, kept = report.tuning.points, report.tuning.constraint
    if kept is not None:
        most = max(point[kept.metric] for point in points)
        points = [point for point in points if kept.allows(point, most)]
    own = [point for point in points if _is_timeless(point) == timeless and isfinite(point[report.objective])]
    return max(own, key=lambda point: point[report.objective], default=None)


def _gain(report: Report) -> str:
    """Return what time gains on the validation users, as a sentence."""
    users = in_count(report.valid_users, "validation user")
    ours = _best(report, timeless=False) if _is_timeless(report.chosen) else report.chosen
    theirs = _best(report, timeless=True)
    if ours is None or theirs is None:
        return f"All configurations were {'without' if ours is None else 'with'} time: what it gains is not known."
    difference = ours.metrics[report.objective] - theirs.metrics[report.objective]
    gap, interval, verdict = report.tuning.gap(ours, theirs), "", ""
    if isfinite(gap.margin):
        low, high = gap.difference - gap.margin, gap.difference + gap.margin
        interval = f" [{words.signed(low)}, {words.signed(high)}]"
        if not gap.significant:
            verdict = ", no difference that these users could show"
    who = "The best configuration with time," if ours is not report.chosen else "The chosen configuration,"
    return (
        f"{who} with {words.listed(words.time(ours.parameters))}, reaches "
        f"{words.value(ours.metrics[report.objective])} in {words.metric(report.objective)} on {users}, and the best "
        f"without time {words.value(theirs.metrics[report.objective])}: time gains "
        f"{words.signed(difference)}{interval}{verdict}."
    )


def _remark(report: Report) -> str:
    timeless = sum(_is_timeless(point) for point in report.tuning.points)
    return (
        f"Of {in_count(report.configurations, 'configuration')} {timeless:,} {'was' if timeless == 1 else 'were'} "
        "without time: those may do better by a search of their own. Values stand at equal distances."
    )


def _matters(searched: Searched, values: Mapping[str, Any]) -> bool:
    """Return whether a parameter changes anything beside the others: the days of the demand need freshness."""
    return searched.name != "fresh_days" or values["freshness"] > 0


def _points(report: Report, searched: Searched) -> list[Point]:
    return [point for point in report.tuning.points if _matters(searched, point.parameters)]


def _best_by_value(report: Report, searched: Searched) -> dict[Any, float]:
    """Return the best of the objective for each value of a parameter that was tried, from the least to the largest.

    None stands first. Where freshness is 0, the days of its demand do not matter and are left out.
    """
    groups: dict[Any, list[Point]] = {}
    for point in _points(report, searched):
        groups.setdefault(point.parameters[searched.name], []).append(point)
    order = sorted(groups, key=lambda value: -1.0 if value is None else float(value))
    best = {value: best_value(groups[value], report.objective) for value in order}
    return {value: figure for value, figure in best.items() if isfinite(figure)}


def _tried_with_chosen(report: Report, searched: Searched) -> set[Any]:
    """Return the values of a parameter that were tried with all others of time as chosen.

    Others may look worse than they are: they were tried beside worse values of the other parameters only.
    """
    chosen = report.point
    return {
        point.parameters[searched.name]
        for point in _points(report, searched)
        if words.time(point.parameters) == words.time({**chosen, searched.name: point.parameters[searched.name]})
    }


def _explain_pale(report: Report, searched: Searched, best: Mapping[Any, float]) -> str:
    if set(best) <= _tried_with_chosen(report, searched):
        return ""
    return " Pale: tried only with other parameters of time than the chosen ones, so it may look worse than it is."


class _Steps(Scale):
    """A scale of steps 0, 1, 2, …, some of which have a label."""

    def ticks(self, count: int = 5) -> list[float]:
        """Return every so many steps, from the first on, at most `count`."""
        steps = range(ceil(self.low), int(self.high) + 1)
        return [float(step) for step in steps[:: ceil(len(steps) / count)]]


def _draw(report: Report, searched: Searched, best: Mapping[Any, float], width: float) -> Markup:
    """Draw the best value of the objective for each value of a parameter, at equal distances."""
    height, values = 260.0, list(best)
    chosen = [report.point[searched.name]] if _matters(searched, report.point) else []
    name, metric = searched.name.replace("_", " "), words.metric(report.objective)
    x = _Steps(-0.4, len(values) - 0.6, 52, width - 12)
    y = Scale(*around(list(best.values()), 0.12), height - 44, 34)
    spots = {value: (x(step), y(figure)) for step, (value, figure) in enumerate(best.items())}
    fair = _tried_with_chosen(report, searched)
    marks = [
        dot(
            *spots[value],
            5 if value in chosen else 3.4,
            "mark chosen" if value in chosen else "fill ease" if value in fair else "fill popularity",
            f"{name} {words.number(value)}: {metric} up to {words.value(figure)}",
            None if value in fair else 0.65,
        )
        for value, figure in best.items()
    ]
    room = int((x.stop - x.start) / (_LETTER * max(len(words.number(value)) for value in values) + _AIR))
    return svg(
        width,
        height,
        f"What {name} does",
        f"The best {metric} for each {name} that was tried"
        + "".join(f"; {words.number(value)} was chosen" for value in chosen)
        + ".",
        axes(x, y, name, metric, lambda step: words.number(values[int(step)]), None, 4, room),
        path([spot for value, spot in spots.items() if value in fair], "dash"),
        *marks,
    )
