"""The search that the linear autoencoders share."""

from collections.abc import Sequence
from math import isfinite

from relae._common.words import in_count, in_time
from relae.report import _words as words
from relae.report._charts import Labels, Pair, Scale, around, axes, dot, figure, path, small_figure, svg
from relae.report._html import Markup, header, join, table, tag
from relae.report._report import Report, Searched
from relae.tuning import Point


def draw_search(report: Report) -> Markup:
    """Return the map of the search, and the best of each model."""
    seconds = sum(trial.seconds for trial in report.trials)
    shown = _shown(report)
    bests = list(report.bests.items())
    most = {name: max((round(p.metrics[name], 4) for _, p in bests), default=0.0) for name in shown}
    rows = [
        tag(
            "tr",
            tag("th", model, scope="row"),
            *(tag("td", words.number(point.parameters[each.name])) for each in report.space),
            *(
                tag(
                    "td",
                    words.value(point.metrics[name]),
                    class_="best" if round(point.metrics[name], 4) == most[name] else None,
                )
                for name in shown
            ),
            class_="chosen" if model == report.model_name else None,
        )
        for model, point in bests
    ]
    heads = header("model", *(each.symbol for each in report.space), *map(words.metric, shown))
    pair, dial = " and ".join(each.symbol for each in report.fitted[:2]), report.dials[0].symbol
    return join(
        tag(
            "p",
            f"{in_count(len(report.trials), 'inversion')} gave {in_count(report.configurations, 'configuration')} "
            f"of {_searched(report)} in {in_time(seconds)}: {_price(report)}",
        ),
        figure(
            lambda width: _draw_map(report, width),
            f"Each circle is {f'a pair of {pair}' if report.extras or report.time else 'one inversion'}; the stronger, "
            f"the better its best {words.metric(report.objective)} over all {dial}{_scaling(report)}",
        ),
        _extras(report) if report.extras else None,
        table("The best of each model, by the validation users", heads, rows),
        tag("p", " ".join(_remarks(report)), class_="note") if _remarks(report) else None,
    )


def _scaling(report: Report) -> str:
    more = [each.symbol for each in report.extras if not each.is_dial]
    over = [*(["norms"] if more else []), *(["parameters of time"] if report.time else [])]
    text = "".join(f" and {name}" for name in over) + "."
    return text + f" A larger {more[0]} wants a smaller {report.fitted[0].symbol}." if more else text


def _remarks(report: Report) -> list[str]:
    """Return remarks on the best of each model."""
    remarks = []
    last = list(report.bests)[-1] if report.bests else report.model_name
    if report.tuning.constraint is None:
        remarks.append(f"A model with a free parameter contains those without: {last} is never behind.")
    if report.extras:
        more = {each.name: each.neutral for each in report.extras if not each.is_dial}
        plain = sum(more.items() <= trial.parameters.items() for trial in report.trials)
        count = in_count(plain, "inversion")
        remarks.append(
            f"The search was for {last}: models without norms had only {count}, and may do better by their own."
        )
    return remarks


def _searched(report: Report) -> str:
    return list(report.bests)[-1] if report.extras else "all six models"


def _price(report: Report) -> str:
    fits = [each.symbol for each in report.fitted[:2]]
    dials = [report.dials[0].symbol]
    if report.extras:
        fits, dials = [*fits, "norm of users"], [*dials, "norms of items"]
    fits += ["half-life" for each in report.time if not each.is_dial]
    dials += ["parameters of time"] if report.time else []
    each = f"pair of {words.listed(fits)}" if len(fits) == 2 else words.listed(fits)
    return f"each {each} costs one inversion, and all its {words.listed(dials)} come with it."


def _extras(report: Report) -> Markup:
    """Return a chart for each parameter that only one of the models has."""
    objective = words.metric(report.objective)
    return tag(
        "div",
        *(
            small_figure(
                lambda width, each=each: _draw_values(report, each, width),  # type: ignore[misc]
                f"{each.effect}: the best {objective} found for each.",
            )
            for each in report.extras
        ),
        class_="halves",
    )


def _shown(report: Report) -> list[str]:
    k = report.objective.partition("@")[2]
    wanted = [report.objective, *report.axes, f"ndcg@{k}", f"tail_ndcg@{k}", f"unbiased_ndcg@{k}", f"coverage@{k}"]
    points = list(report.bests.values())
    return [name for name in dict.fromkeys(wanted) if all(name in point.metrics for point in points)]


def _draw_values(report: Report, searched: Searched, width: float) -> Markup:
    """Draw the best value of the objective for each value of a parameter."""
    height, sign = 260.0, searched.symbol
    groups: dict[float, list[Point]] = {}
    for point in report.tuning.points:
        groups.setdefault(point.parameters[searched.name], []).append(point)
    best = {norm: best_value(groups[norm], report.objective) for norm in sorted(groups)}
    known = {norm: value for norm, value in best.items() if isfinite(value)}
    x = Scale(*around(list(best)), 52, width - 12)
    y = Scale(*around(list(known.values()), 0.12), height - 44, 34)
    here = report.point[searched.name]
    marks = [
        dot(x(norm), y(value), 5 if norm == here else 3.4, "mark chosen" if norm == here else "fill ease", says)
        for norm, value in known.items()
        for says in [f"{sign} {words.number(norm)}: {words.metric(report.objective)} up to {words.value(value)}"]
    ]
    return svg(
        width,
        height,
        f"What {sign} does",
        f"The best {words.metric(report.objective)} for each {sign} that was tried; {words.number(here)} was chosen.",
        axes(x, y, sign, words.metric(report.objective), words.short, None, 4, 4),
        path([(x(norm), y(value)) for norm, value in known.items()], "dash"),
        *marks,
    )


def _draw_map(report: Report, width: float) -> Markup:
    """Draw all trials by their first two parameters, the better the stronger."""
    height = 330.0 if width > 500 else 320.0
    across, up = report.fitted[:2]
    pairs: dict[Pair, list[Point]] = {}
    for trial in report.trials:
        pair = trial.parameters[across.name], trial.parameters[up.name]
        pairs.setdefault(pair, []).extend(trial.points)
    best = {pair: best_value(points, report.objective) for pair, points in pairs.items()}
    positive = [at for at, _ in best if at > 0] or [1.0]
    x = Scale(min(positive) / 1.5, max(positive) * 1.5, 52, width - 12, log=True)
    y = Scale(-0.06, max(0.3, max(at for _, at in best)) + 0.06, height - 44, 34)
    known = sorted(v for v in best.values() if isfinite(v))
    # colour by rank: one bad corner would otherwise make all the others look the same
    strength = {v: (i + 1) / len(known) for i, v in enumerate(known)}
    labels = Labels(width - 4, height - 46)
    radius = 7.0 if len(best) <= 30 else 5.0
    spots = {pair: (x(max(pair[0], x.low)), y(pair[1])) for pair in best}
    for spot in spots.values():
        labels.keep_clear(*spot, radius + 1)
    dots, notes = [], []
    by_value = sorted(spots.items(), key=lambda entry: -best[entry[0]] if isfinite(best[entry[0]]) else 1.0)
    for pair, spot in by_value:
        value = best[pair]
        values = ", ".join(f"{s.symbol} {words.number(at)}" for s, at in zip((across, up), pair, strict=True))
        says = f"{values}: {words.metric(report.objective)} up to "
        dots.append(dot(*spot, radius, "trial", says + words.value(value), 0.06 + 0.9 * strength.get(value, 0.0)))
        if pair == (report.point[across.name], report.point[up.name]):
            dots.append(dot(*spot, radius + 4, "ring"))
            labels.keep_clear(*spot, radius + 5)
            notes.append(labels.add(*spot, f"chosen {words.value(value)}", "chosen", radius=radius + 5))
        elif len(best) <= 30:
            notes.append(labels.add(*spot, words.value(value), "tick", radius=radius, needed=False, reach=2))
    return svg(
        width,
        height,
        "What was searched",
        f"{len(best)} pairs of {across.symbol} and {up.symbol}; the better the best of a pair is, the stronger its "
        "colour.",
        axes(x, y, f"{across.symbol} (log scale)", up.symbol, words.short, words.short, 5),
        *dots,
        *notes,
    )


def best_value(points: Sequence[Point], name: str) -> float:
    """Return the best value of a metric, NaN if none is known."""
    known = [point.metrics[name] for point in points if isfinite(point.metrics[name])]
    return max(known) if known else float("nan")
