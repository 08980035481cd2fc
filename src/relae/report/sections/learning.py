"""The learning curves of a model that learns by epochs."""

from math import isfinite

from relae._common.words import in_count
from relae.report import _words as words
from relae.report._charts import Scale, around, axes, dot, figure, label, line, path, svg
from relae.report._html import Markup, join, tag
from relae.report._report import Report

_STOPPED = {
    "patience": "the validation had not improved for long enough",
    "epochs": "all its epochs were done",
    "time": "its time was up",
}


def draw_learning(report: Report) -> Markup | None:
    """Return the learning curve of the chosen fit among those of the others; None if nothing was learned by epochs."""
    chosen = report.trial.training
    if chosen is None or not chosen.curve:
        return None
    epochs = chosen.curve[-1].epoch
    why = _STOPPED.get(chosen.stopped, chosen.stopped)
    return join(
        tag(
            "p",
            f"The chosen fit was trained for {in_count(epochs, 'epoch')} and ended because {why}. Epoch "
            f"{chosen.best_epoch:,} was the best on the validation users, and it is the one that counts; the last fit, "
            "to train and validation data, was trained for as many.",
        ),
        figure(
            lambda width: _draw(report, width),
            "Strong: the chosen fit; pale: the others. Above, what the validation users say; below, the loss.",
        ),
    )


def _draw(report: Report, width: float) -> Markup:
    """Draw the value on the validation users and the loss, by epoch."""
    panel, gap, left = 150.0, 42.0, 52.0
    own, best = report.trial, report.trial.training
    assert best is not None
    curves = [(trial is own, trial.training.curve) for trial in report.trials if trial.training is not None]
    curves.sort(key=lambda entry: entry[0])  # the chosen one is drawn last
    last = max(mark.epoch for _, curve in curves for mark in curve)
    x = Scale(0.0, float(last), left, width - 14)
    name = report.run.model.get_params().get("objective")
    parts: list[Markup] = []
    titles = {"value": f"↑ {words.metric(str(name))}" if name else "↑ value", "loss": "↓ loss"}
    for number, (part, title) in enumerate(titles.items()):
        top = 30 + number * (panel + gap)
        marked = [
            (picked, [(mark.epoch, getattr(mark, part)) for mark in curve if isfinite(getattr(mark, part))])
            for picked, curve in curves
        ]
        y = Scale(*around([value for _, points in marked for _, value in points], 0.1), top + panel, top)
        is_last = number == 1
        parts.append(axes(x, y, "epoch" if is_last else "", title, words.short if is_last else words.nothing, None, 4))
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
