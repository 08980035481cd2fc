"""What a page says of a search over the parameters of one model: trials, and how a trained one learned."""

from math import isfinite

from relae._common.words import in_count, in_time
from relae.analysis.report import _words as words
from relae.analysis.report._charts import Labels, Scale, around, axes, dot, figure, label, line, path, small_figure, svg
from relae.analysis.report._data import ReportData, Searched, Trial
from relae.analysis.report._html import Markup, join, tag
from relae.analysis.report._parts import table

_STOPPED = {
    "patience": "the validation had not improved for long enough",
    "epochs": "all its epochs were done",
    "time": "its time was up",
}


def parameters(data: ReportData) -> list[str]:
    """Return the parameters that were chosen, in words."""
    return [f"{searched.name} {_text(data.point[searched.name])}" for searched in data.space]


def facts(data: ReportData) -> list[tuple[str, object]]:
    """Return what is to be said of how it was made."""
    listed = ", ".join(f"{name} {_text(value)}" for name, value in data.parameters.items())
    size = f"{in_count(data.fit_users, 'user')} × {in_count(data.fit_items, 'item')}"
    return [("Parameters", listed or "none"), ("Last fit", f"{size}: train and validation data")]


def _text(value: object) -> str:
    """Return a parameter in as many digits as it has; what the data decide is said so."""
    if isinstance(value, float):
        return words.number(value)
    return "by the data" if value is None else str(value)


# --- what was searched -------------------------------------------------------------------------------------------


def search(data: ReportData) -> Markup:
    """Return all trials, as charts and as a table."""
    seconds = sum(trial.seconds for trial in data.trials)
    failed = [trial for trial in data.trials if trial.failure is not None]
    panels = [
        small_figure(
            lambda width, searched=searched: _parameter(data, searched, width),  # type: ignore[misc]
            f"Each circle is one fit; {searched.name} from left to right{', by its logarithm' * searched.log}.",
        )
        for searched in data.space
    ]
    return join(
        tag(
            "p",
            f"{in_count(len(data.trials), 'fit')} in {in_time(seconds)}, judged by "
            f"{in_count(data.valid_users, 'validation user')}. The first has the model's own parameters, the next "
            "ones are spread evenly, the others went where most was expected.",
        ),
        tag("div", *panels, class_="halves"),
        _trials(data),
        *(tag("p", f"Not fitted: {trial.failure}", class_="note") for trial in failed),
    )


def _trials(data: ReportData) -> Markup:
    shown = _shown(data)
    most = {name: max(_rounded(trial, name) for trial in data.trials) for name in shown}
    learned = any(trial.learning is not None for trial in data.trials)
    heads = [tag("th", name, scope="col") for name in ("fit", *(searched.name for searched in data.space))]
    heads += [tag("th", words.metric(name), scope="col") for name in shown]
    heads += [tag("th", "best epoch", scope="col")] if learned else []
    rows = []
    for number, trial in enumerate(data.trials):
        cells = [tag("td", _text(trial.parameters[searched.name])) for searched in data.space]
        for name in shown:
            value = trial.metrics.get(name, float("nan"))
            is_best = isfinite(value) and _rounded(trial, name) == most[name]
            cells.append(tag("td", words.value(value), class_="best" if is_best else None))
        if learned:
            cells.append(tag("td", "–" if trial.learning is None else f"{trial.learning.best_epoch:,}"))
        cells.append(tag("td", f"{trial.seconds:,.1f}"))
        is_chosen = trial is data.trial
        head = tag("th", f"{number + 1}{', chosen' * is_chosen}", scope="row")
        rows.append(tag("tr", head, *cells, class_="chosen" if is_chosen else None))
    return table("All fits, by the validation users", [*heads, tag("th", "seconds", scope="col")], rows)


def _shown(data: ReportData) -> list[str]:
    k = data.objective.partition("@")[2]
    wanted = [data.objective, f"ndcg@{k}", f"tail_ndcg@{k}", f"coverage@{k}"]
    return [name for name in dict.fromkeys(wanted) if any(name in trial.metrics for trial in data.trials)]


def _rounded(trial: Trial, name: str) -> float:
    value = trial.metrics.get(name, float("nan"))
    return round(value, 4) if isfinite(value) else float("-inf")


def _parameter(data: ReportData, searched: Searched, width: float) -> Markup:
    """All fits by one parameter: the best possible is at the top."""
    height, name = 260.0, searched.name
    picked = next((number for number, trial in enumerate(data.trials) if trial is data.trial), -1)
    found = [
        (number, trial.parameters[name], trial.metrics.get(data.objective, float("nan")))
        for number, trial in enumerate(data.trials)
    ]
    points = [
        (number, float(at), value) for number, at, value in found if isinstance(at, (int, float)) and isfinite(value)
    ]
    points = [point for point in points if not searched.log or point[1] > 0]
    places = [at for _, at, _ in points] or [1.0]
    low, high = (min(places) / 1.3, max(places) * 1.3) if searched.log else around(places, 0.08)
    x = Scale(low, high, 52, width - 14, log=searched.log)
    y = Scale(*around([value for *_, value in points], 0.1), height - 44, 34)
    labels = Labels(width - 4, height - 46)
    parts, notes = [], []
    for _, at, value in points:
        labels.keep_clear(x(at), y(value), 7)
    for number, at, value in sorted(points, key=lambda point: point[0] == picked):  # the chosen one on top
        spot = x(at), y(value)
        says = f"fit {number + 1}: {name} {_text(data.trials[number].parameters[name])}, {words.value(value)}"
        if number == picked:
            parts += [dot(*spot, 10, "ring"), dot(*spot, 6, "mark chosen", says)]
            notes.append(
                labels.place(*spot, f"chosen {_text(data.trials[number].parameters[name])}", "chosen", radius=11)
            )
        else:
            parts.append(dot(*spot, 5, "trial", says, 0.35))
            notes.append(
                labels.place(*spot, "its own", "tick", radius=6, needed=False, reach=2) if number == 0 else Markup("")
            )
    return svg(
        width,
        height,
        f"What {name} does",
        f"{words.metric(data.objective)} of {len(points)} fits by {name}; the chosen one is marked.",
        axes(
            x,
            y,
            name + " (log scale)" * searched.log,
            f"↑ {words.metric(data.objective)}",
            lambda value: f"{value:,.6g}",
            None,
            4,
            3,
        ),
        *parts,
        *notes,
    )


# --- how it learned ----------------------------------------------------------------------------------------------


def learning(data: ReportData) -> Markup | None:
    """Return the learning curve of the chosen fit among those of the others; None if nothing was learned by epochs."""
    chosen = None if data.trial is None else data.trial.learning
    if chosen is None or not chosen.curve:
        return None
    epochs = chosen.curve[-1][0]
    why = _STOPPED.get(chosen.stopped, chosen.stopped)
    return join(
        tag(
            "p",
            f"The chosen fit was trained for {in_count(epochs, 'epoch')} and ended because {why}. Epoch "
            f"{chosen.best_epoch:,} was the best on the validation users, and it is the one that counts; the last fit, "
            "to train and validation data, was trained for as many.",
        ),
        figure(
            lambda width: _curves(data, width),
            "Strong: the chosen fit; pale: the others. Above, what the validation users say; below, the loss.",
        ),
    )


def _curves(data: ReportData, width: float) -> Markup:
    """The value on the validation users and the loss, by epoch."""
    panel, gap, left = 150.0, 42.0, 52.0
    own = data.trial
    assert own is not None
    best = own.learning
    assert best is not None
    curves = [(trial is own, trial.learning.curve) for trial in data.trials if trial.learning is not None]
    curves.sort(key=lambda entry: entry[0])  # the chosen one is drawn last
    last = max(epoch for _, curve in curves for epoch, _, _ in curve)
    x = Scale(0.0, float(last), left, width - 14)
    name = data.parameters.get("objective")
    parts: list[Markup] = []
    for number, title in enumerate((f"↑ {words.metric(str(name))}" if name else "↑ value", "↓ loss")):
        top = 30 + number * (panel + gap)
        marked = [
            (picked, [(m[0], m[2 - number]) for m in curve if isfinite(m[2 - number])]) for picked, curve in curves
        ]
        y = Scale(*around([value for _, points in marked for _, value in points], 0.1), top + panel, top)
        is_last = number == 1
        parts.append(
            axes(
                x, y, "epoch" if is_last else "", title, (lambda v: f"{v:,.6g}") if is_last else (lambda _: ""), None, 4
            )
        )
        parts.append(line((x(best.best_epoch), top - 4), (x(best.best_epoch), top + panel), "here"))
        for picked, points in marked:
            spots = [(x(epoch), y(value)) for epoch, value in points]
            parts.append(path(spots, "curve picked" if picked else "curve pale"))
            if len(spots) == 1:
                parts.append(dot(*spots[0], 3, "fill chosen" if picked else "fill"))
    right = x(best.best_epoch) < width * 0.7
    words_ = f"best: epoch {best.best_epoch:,}"
    parts.append(
        label(x(best.best_epoch) + (6 if right else -6), 30 + panel - 6, words_, "chosen", "start" if right else "end")
    )
    return svg(
        width,
        30 + 2 * (panel + gap),
        "How it learned",
        f"The validation value and the loss by epoch, up to {last:,}; the best of the chosen fit: {best.best_epoch:,}.",
        *parts,
    )
