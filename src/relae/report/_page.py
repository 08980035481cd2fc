"""The page: its head, its sections in order, and its foot."""

from collections.abc import Callable
from importlib.resources import files

from relae.report._html import Markup, tag
from relae.report._report import Report
from relae.report.sections.accuracy import draw_accuracy
from relae.report.sections.data import draw_data
from relae.report.sections.dial import draw_dial
from relae.report.sections.headline import draw_headline
from relae.report.sections.learning import draw_learning
from relae.report.sections.made import draw_made
from relae.report.sections.samples import draw_samples
from relae.report.sections.search import draw_search
from relae.report.sections.similar import draw_similar
from relae.report.sections.time import draw_time
from relae.report.sections.trade_off import draw_trade_off
from relae.report.sections.trials import draw_trials

Section = tuple[str, str, Callable[[Report], Markup | None]]  # key, title, function

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def render(report: Report) -> str:
    """Return the report as one HTML page: nothing is loaded, nothing runs, and the same report gives the same page."""
    present = [(key, title, content) for key, title, draw in _list_sections(report) if (content := draw(report))]
    style = files("relae.report").joinpath("style.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=f"relae {report.versions.get('relae', '')}".strip()),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="robots", content="noindex"),
        tag("title", f"{report.run.title}: {report.model_name}, a report"),
        tag("style", Markup(style)),
    )
    body = tag(
        "body",
        draw_headline(report, [(key, title) for key, title, _ in present]),
        tag(
            "main",
            *(
                tag("section", tag("h2", title, id=f"{key}-title"), content, id=key, aria_labelledby=f"{key}-title")
                for key, title, content in present
            ),
        ),
        tag(
            "footer", f"Made by relae {report.versions.get('relae', '')} on {report.made}. This file needs no network."
        ),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _list_sections(report: Report) -> list[Section]:
    """Return the sections in their order; one without content is left out."""
    is_family = bool(report.dials)
    dial = report.dials[0] if is_family else None
    return [
        *([("trade-off", "The trade-off", draw_trade_off)] if is_family else []),
        ("accuracy", "How accurate it is", draw_accuracy),
        *([(dial.name, f"What {dial.symbol} does", draw_dial)] if dial is not None else []),
        *([("time", "What time does", draw_time)] if is_family else []),
        ("search", "What was searched", draw_search if is_family else draw_trials),
        ("learning", "How it learned", draw_learning),
        ("data", "The data", draw_data),
        ("samples", "What it recommends", draw_samples),
        ("similar", "What goes together", draw_similar),
        ("made", "How this was made", draw_made),
    ]
