"""The charts of a report, each for a width."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from relae._common.words import in_count
from relae.analysis.report import _words as words
from relae.analysis.report._charts import (
    Labels,
    Pair,
    Scale,
    around,
    axes,
    box,
    dot,
    label,
    line,
    path,
    svg,
)
from relae.analysis.report._data import DataFacts, Point, ReportData, Searched, Trial
from relae.analysis.report._html import Markup, join

_MOST_POINTS = 1500


def hover(data: ReportData, point: Point) -> str:
    """Return what a point says of itself."""
    figures = "; ".join(f"{words.metric(name)} {words.value(point.metrics[name])}" for name in data.axes)
    return f"{words.setting(data.space, point.parameters)}: {figures}"


def chosen_point(data: ReportData) -> Point | None:
    """Return the chosen point; None if it has no place in the trade-off."""
    every = (point for trial in data.trials for point in trial.points)
    return next((point for point in every if point.parameters == data.point and _has_place(point, data)), None)


def _has_place(point: Point, data: ReportData) -> bool:
    return all(isfinite(point.metrics[name]) for name in data.axes)


def shown_points(data: ReportData) -> tuple[list[Point], int]:
    """Return the points near enough to the front to be drawn, and how many there are in all."""
    first, second = data.axes
    everything = [point for trial in data.trials for point in trial.points if _has_place(point, data)]
    marked = [*data.front, *data.bests.values()]
    lows = []
    for name in (first, second):
        values = [point.metrics[name] for point in marked if isfinite(point.metrics[name])]
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        lows.append(low - 0.5 * (high - low) - 1e-9)
    near = [p for p in everything if p.metrics[first] >= lows[0] and p.metrics[second] >= lows[1]]
    return near[:: max(1, -(-len(near) // _MOST_POINTS))], len(everything)


def trade_off(data: ReportData, width: float) -> Markup:
    """Accuracy against the tail on the validation users, with the front and the best of each model."""
    first, second = data.axes
    height = 430.0 if width > 500 else 380.0
    near, _ = shown_points(data)
    on_front = [point for point in data.front if _has_place(point, data)]
    bests = {name: point for name, point in data.bests.items() if _has_place(point, data)}
    marked = [*on_front, *bests.values(), *near]
    x = Scale(*around([p.metrics[first] for p in marked]), 52, width - 12)
    y = Scale(*around([p.metrics[second] for p in marked]), height - 44, 34)

    def at(point: Point) -> tuple[float, float]:
        return x(point.metrics[first]), y(point.metrics[second])

    names: dict[tuple[Any, ...], list[str]] = {}
    points: dict[tuple[Any, ...], Point] = {}
    for name, point in bests.items():
        names.setdefault(point.key, []).append(name)
        points[point.key] = point
    chosen = chosen_point(data)
    labels = Labels(width - 4, height - 46)
    parts: list[Markup] = []
    for point in points.values():
        labels.keep_clear(*at(point), 6)
    front = [at(point) for point in on_front]
    labels.keep_line_clear(front)
    if chosen is not None:
        spot = at(chosen)
        parts.append(dot(*spot, 10, "ring"))
        parts.append(dot(*spot, 6, "mark chosen", f"chosen: {hover(data, chosen)}"))
        labels.keep_clear(*spot, 11)
        parts.append(labels.place(*spot, f"chosen: {data.model_name}", "chosen", radius=11))
    for key, point in points.items():
        if chosen is not None and key == chosen.key:
            continue
        spot, title = at(point), ", ".join(names[key])
        parts.append(dot(*spot, 4.5, "mark", f"best {title}: {hover(data, point)}"))
        parts.append(labels.place(*spot, title))
    named = {*points, chosen.key if chosen else None}
    cloud = [dot(*at(p), 2.6, "faint", hover(data, p)) for p in near if p.key not in named]
    plain = "" if width > 500 else " →"
    return svg(
        width,
        height,
        "The trade-off between accuracy and the tail",
        f"{words.metric(second)} against {words.metric(first)} of all configurations on the validation users. "
        f"The front runs through {len(data.front)} of them; the chosen one is marked.",
        axes(x, y, f"{words.metric(first)}{plain or ' (better →)'}", f"↑ {words.metric(second)}"),
        *cloud,
        path(front, "front"),
        *(dot(*spot, 2.4, "fill ease") for spot in front),
        *parts,
    )


def dial(data: ReportData, trial: Trial, turned: Searched, width: float) -> Markup:
    """What a dial does where all else is as chosen: accuracy, the tail, and the items that are set free."""
    assert data.fit is not None
    sign, here = turned.symbol, data.point[turned.name]
    panel, gap, left = (112.0, 42.0, 52.0) if width > 500 else (100.0, 42.0, 52.0)
    points = dial_points(data, trial, turned)
    x = Scale(0.0, 1.0, left, width - 12)
    panels: list[tuple[str, str, list[tuple[float, float]]]] = [
        (
            words.metric(name),
            css,
            [(p.parameters[turned.name], p.metrics[name]) for p in points if isfinite(p.metrics[name])],
        )
        for name, css in zip(data.axes, ("", "tail"), strict=True)
    ]
    panels.append(("Items without a constraint", "other", list(data.fit.unconstrained)))
    height = len(panels) * (panel + gap) + 26
    low, high = trial.interval
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
                _short if last else _nothing,
                words.percent if is_share else None,
                2 if is_share else 3,
                5,
            )
        )
        parts.append(line((x(here), top - 4), (x(here), top + panel), "here"))
        whole = curve if is_share else _flat_outside(curve, low, high)
        parts.append(path([(x(at), y(v)) for at, v in whole], f"curve {css}".strip()))
        if not is_share:
            for point, (at, found) in zip(points, curve, strict=False):
                parts.append(dot(x(at), y(found), 2.6, f"fill {css or 'ease'}", hover(data, point)))
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
        f"{words.metric(data.axes[0])}, {words.metric(data.axes[1])} and the share of items without a constraint "
        f"for {sign} from 0 to 1; it matters between {low:.3f} and {high:.3f}.",
        *parts,
    )


def dial_points(data: ReportData, trial: Trial, turned: Searched) -> list[Point]:
    """Return the points of a fit by the value of a dial, with all other dials as chosen."""
    held = [each.name for each in data.dials if each != turned]
    own = [point for point in trial.points if all(point.parameters[name] == data.point[name] for name in held)]
    return sorted(own, key=lambda point: float(point.parameters[turned.name]))


def by_value(data: ReportData, searched: Searched, width: float) -> Markup:
    """The best there is for each value of a parameter, whatever the others are."""
    height, sign = 260.0, searched.symbol
    groups: dict[float, list[Point]] = {}
    for point in (point for trial in data.trials for point in trial.points):
        groups.setdefault(point.parameters[searched.name], []).append(point)
    best = {norm: _best(groups[norm], data.objective) for norm in sorted(groups)}
    known = {norm: value for norm, value in best.items() if isfinite(value)}
    x = Scale(*around(list(best)), 52, width - 12)
    y = Scale(*around(list(known.values()), 0.12), height - 44, 34)
    here = data.point[searched.name]
    marks = [
        dot(x(norm), y(value), 5 if norm == here else 3.4, "mark chosen" if norm == here else "fill ease", says)
        for norm, value in known.items()
        for says in [f"{sign} {words.number(norm)}: {words.metric(data.objective)} up to {words.value(value)}"]
    ]
    return svg(
        width,
        height,
        f"What {sign} does",
        f"The best {words.metric(data.objective)} for each {sign} that was tried; {words.number(here)} was chosen.",
        axes(x, y, sign, words.metric(data.objective), _short, None, 4, 4),
        path([(x(norm), y(value)) for norm, value in known.items()], "dash"),
        *marks,
    )


def search_map(data: ReportData, width: float) -> Markup:
    """All trials by their first two parameters, the stronger the better; the best of those with the same two."""
    height = 330.0 if width > 500 else 320.0
    across, up = data.fitted[:2]
    places: dict[Pair, list[Point]] = {}
    for trial in data.trials:
        place = trial.parameters[across.name], trial.parameters[up.name]
        places.setdefault(place, []).extend(trial.points)
    best = {place: _best(points, data.objective) for place, points in places.items()}
    positive = [at for at, _ in best if at > 0] or [1.0]
    x = Scale(min(positive) / 1.5, max(positive) * 1.5, 52, width - 12, log=True)
    y = Scale(-0.06, max(0.3, max(at for _, at in best)) + 0.06, height - 44, 34)
    known = sorted(v for v in best.values() if isfinite(v))
    # colour by rank: one bad corner would otherwise make all the others look the same
    strength = {v: (i + 1) / len(known) for i, v in enumerate(known)}
    labels = Labels(width - 4, height - 46)
    radius = 7.0 if len(best) <= 30 else 5.0
    spots = {place: (x(max(place[0], x.low)), y(place[1])) for place in best}
    for spot in spots.values():
        labels.keep_clear(*spot, radius + 1)
    dots, notes = [], []
    by_value = sorted(spots.items(), key=lambda entry: -best[entry[0]] if isfinite(best[entry[0]]) else 1.0)
    for place, spot in by_value:
        found = best[place]
        values = ", ".join(f"{s.symbol} {words.number(at)}" for s, at in zip((across, up), place, strict=True))
        says = f"{values}: {words.metric(data.objective)} up to "
        dots.append(dot(*spot, radius, "trial", says + words.value(found), 0.06 + 0.9 * strength.get(found, 0.0)))
        if place == (data.point[across.name], data.point[up.name]):
            dots.append(dot(*spot, radius + 4, "ring"))
            labels.keep_clear(*spot, radius + 5)
            notes.append(labels.place(*spot, f"chosen {words.value(found)}", "chosen", radius=radius + 5))
        elif len(best) <= 30:
            notes.append(labels.place(*spot, words.value(found), "tick", radius=radius, needed=False, reach=2))
    return svg(
        width,
        height,
        "What was searched",
        f"{len(best)} pairs of {across.symbol} and {up.symbol}; the better the best of a pair is, the stronger its "
        "colour.",
        axes(x, y, f"{across.symbol} (log scale)", up.symbol, _short, _short, 5),
        *dots,
        *notes,
    )


def popularity(facts: DataFacts, width: float) -> Markup:
    """The share of interactions that the most popular items have."""
    height = 300.0
    x, y = Scale(0.0, 1.0, 44, width - 14), Scale(0.0, 1.0, height - 44, 34)
    curve = [(x(items), y(share)) for items, share in facts.popularity]
    spot = (x(0.2), y(facts.top_share))
    return svg(
        width,
        height,
        "How popularity is spread",
        f"The share of interactions of the most popular items: a fifth of them has {words.percent(facts.top_share)}.",
        axes(x, y, "items, most popular first", "share of all interactions", words.percent, words.percent, 4, 4),
        path([(x(0), y(0)), (x(1), y(1))], "dash"),
        path([*curve, (x(1), y(0))], "under", close=True),
        path(curve, "curve"),
        line((spot[0], y(0)), spot, "here"),
        dot(*spot, 5, "mark chosen", f"the top 20% have {words.percent(facts.top_share, 1)}"),
        label(spot[0] + 10, spot[1] + 16, f"top 20%: {words.percent(facts.top_share)}", "chosen"),
        label(x(0.99), y(0.84), "if all were equal", "tick", "end"),
    )


def histories(facts: DataFacts, width: float) -> Markup:
    """How many items users have."""
    height = 300.0
    bins = facts.histories or [(0, 0, 0)]
    left, right = 44.0, width - 14
    y = Scale(0.0, max(count for *_, count in bins) * 1.06 or 1.0, height - 44, 34)
    step = (right - left) / len(bins)
    parts = []
    for number, (start, stop, users) in enumerate(bins):
        names = f"{start:,}" if start == stop else f"{start:,} to {stop:,}"
        top = y(users)
        says = f"{in_count(users, 'user')} with {names} items"
        parts.append(box(left + number * step + 1, top, step - 2, y.start - top, "column", says))
    every = max(1, -(-len(bins) // 6))
    ticks = [
        label(left + (number + 0.5) * step, y.start + 17, f"{start:,}", "tick", "middle")
        for number, (start, _, _) in enumerate(bins)
        if number % every == 0
    ]
    frame = axes(Scale(0, 1, left, right), y, "items of a user, from … on", "users", _nothing, _short, 4, 1)
    low, middle, high = facts.per_user
    return svg(
        width,
        height,
        "How long histories are",
        f"Users by the number of their items: from {low:,} to {high:,}, the middle is {middle:,.6g}.",
        frame,
        *parts,
        join(*ticks),
    )


def _flat_outside(curve: list[Pair], low: float, high: float) -> list[Pair]:
    """Add the corners of the interval of a dial to a curve: nothing changes outside of it."""
    ends = []
    if curve and curve[0][0] <= low:
        ends.append((low, curve[0][1]))
    if curve and curve[-1][0] >= high:
        ends.append((high, curve[-1][1]))
    return sorted({*curve, *ends})


def _best(points: Sequence[Point], name: str) -> float:
    known = [point.metrics[name] for point in points if isfinite(point.metrics[name])]
    return max(known) if known else float("nan")


def _short(value: float) -> str:
    return f"{value:,.6g}"


def _nothing(value: float) -> str:
    return ""
