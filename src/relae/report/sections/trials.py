"""The search of a model of any other kind: all trials."""

from math import isfinite, nan

from relae._common.words import in_count, in_time
from relae.report import _words as words
from relae.report._charts import Labels, Scale, around, axes, dot, small_figure, svg
from relae.report._html import Markup, header, join, table, tag
from relae.report._report import Report, Searched
from relae.tuning import Trial


def draw_trials(report: Report) -> Markup:
    """Return all trials, as charts and as a table."""
    seconds = sum(trial.seconds for trial in report.trials)
    failed = [trial for trial in report.trials if trial.failure is not None]
    panels = [
        small_figure(
            lambda width, searched=searched: _draw_parameter(report, searched, width),  # type: ignore[misc]
            f"Each circle is one fit; {searched.name} from left to right{', by its logarithm' * searched.log}.",
        )
        for searched in report.space
    ]
    return join(
        tag(
            "p",
            f"{in_count(len(report.trials), 'fit')} in {in_time(seconds)}, judged by "
            f"{in_count(report.valid_users, 'validation user')}. The first has the model's own parameters, the next "
            "ones are spread evenly, the others went where most was expected.",
        ),
        tag("div", *panels, class_="halves"),
        _trials(report),
        *(tag("p", f"Not fitted: {trial.failure}", class_="note") for trial in failed),
    )


def _trials(report: Report) -> Markup:
    shown = _shown(report)
    most = {name: max(_rounded(trial, name) for trial in report.trials) for name in shown}
    learned = any(trial.training is not None for trial in report.trials)
    names = ["fit", *(searched.name for searched in report.space), *map(words.metric, shown)]
    heads = header(*names, *(["best epoch"] if learned else []), "seconds")
    rows = []
    for number, trial in enumerate(report.trials):
        cells = [tag("td", words.parameter(trial.parameters[searched.name])) for searched in report.space]
        for name in shown:
            value = _metric(trial, name)
            is_best = isfinite(value) and _rounded(trial, name) == most[name]
            cells.append(tag("td", words.value(value), class_="best" if is_best else None))
        if learned:
            cells.append(tag("td", "–" if trial.training is None else f"{trial.training.best_epoch:,}"))
        cells.append(tag("td", f"{trial.seconds:,.1f}"))
        is_chosen = trial is report.trial
        head = tag("th", f"{number + 1}{', chosen' * is_chosen}", scope="row")
        rows.append(tag("tr", head, *cells, class_="chosen" if is_chosen else None))
    return table("All fits, by the validation users", heads, rows)


def _shown(report: Report) -> list[str]:
    k = report.objective.partition("@")[2]
    wanted = [report.objective, f"ndcg@{k}", f"tail_ndcg@{k}", f"coverage@{k}"]
    return [
        name
        for name in dict.fromkeys(wanted)
        if any(name in trial.points[0].metrics for trial in report.trials if trial.points)
    ]


def _rounded(trial: Trial, name: str) -> float:
    value = _metric(trial, name)
    return round(value, 4) if isfinite(value) else float("-inf")


def _metric(trial: Trial, name: str) -> float:
    """Return a metric of a trial, which has one point; NaN if it failed."""
    return trial.points[0].metrics.get(name, nan) if trial.points else nan


def _draw_parameter(report: Report, searched: Searched, width: float) -> Markup:
    """Draw all fits by one parameter."""
    height, name = 260.0, searched.name
    picked = next((number for number, trial in enumerate(report.trials) if trial is report.trial), -1)
    fits = [
        (number, trial.parameters[name], _metric(trial, report.objective)) for number, trial in enumerate(report.trials)
    ]
    points = [
        (number, float(at), value) for number, at, value in fits if isinstance(at, (int, float)) and isfinite(value)
    ]
    points = [point for point in points if not searched.log or point[1] > 0]
    values = [at for _, at, _ in points] or [1.0]
    low, high = (min(values) / 1.3, max(values) * 1.3) if searched.log else around(values, 0.08)
    x = Scale(low, high, 52, width - 14, log=searched.log)
    y = Scale(*around([value for *_, value in points], 0.1), height - 44, 34)
    labels = Labels(width - 4, height - 46)
    parts, notes = [], []
    for _, at, value in points:
        labels.keep_clear(x(at), y(value), 7)
    for number, at, value in sorted(points, key=lambda point: point[0] == picked):  # the chosen one on top
        spot = x(at), y(value)
        says = (
            f"fit {number + 1}: {name} {words.parameter(report.trials[number].parameters[name])}, {words.value(value)}"
        )
        if number == picked:
            parts += [dot(*spot, 10, "ring"), dot(*spot, 6, "mark chosen", says)]
            notes.append(
                labels.add(
                    *spot, f"chosen {words.parameter(report.trials[number].parameters[name])}", "chosen", radius=11
                )
            )
        else:
            parts.append(dot(*spot, 5, "trial", says, 0.35))
            notes.append(
                labels.add(*spot, "its own", "tick", radius=6, needed=False, reach=2) if number == 0 else Markup("")
            )
    return svg(
        width,
        height,
        f"What {name} does",
        f"{words.metric(report.objective)} of {len(points)} fits by {name}; the chosen one is marked.",
        axes(
            x,
            y,
            name + " (log scale)" * searched.log,
            f"↑ {words.metric(report.objective)}",
            lambda value: f"{value:,.6g}",
            None,
            4,
            3,
        ),
        *parts,
        *notes,
    )
