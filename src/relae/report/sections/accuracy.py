"""The accuracy of the chosen model on the test users, beside its rivals."""

from math import isfinite

from relae._common.words import in_count
from relae.experiments import TEST_METRICS, ModelResult
from relae.report import _words as words
from relae.report._charts import whisker
from relae.report._html import Markup, join, table, tag
from relae.report._report import Report
from relae.report.sections.headline import CHANCE

_CLASSES = {"chosen": "chosen", "popularity": "popularity", "trending": "popularity"}  # any other is the first rival


def draw_accuracy(report: Report) -> Markup:
    """Return the tables of figures, and which differences are hardly chance."""
    ks = sorted({row.k for result in report.results for row in result.estimates}, key=lambda k: (k != report.k, k))
    main = report.results[0].estimate("ndcg", report.k)
    users = in_count(main.users if main else len(report.divided.test.users), "user")
    return join(
        tag(
            "p",
            f"All models were fitted again to training and validation data together and judged by {users}, of whom "
            "they see a part and have to find the rest. Below each figure is its 95% bootstrap interval over users.",
        ),
        _verdict(report),
        *(_accuracy_table(report, k) for k in ks),
        tag(
            "p",
            "Head: the fifth of the items with the most users in the training data; tail: all others. Unbiased: hits "
            "count by the inverse of how likely an item is to be seen at all. Users without hidden items of a group "
            "do not count there.",
            class_="note",
        ),
    )


def _verdict(report: Report) -> Markup | None:
    """Return in words whether the gain over the first rival is more than chance."""
    if report.rival is None:
        return None
    sentences = []
    for metric in ("ndcg", "tail_ndcg", "head_ndcg"):
        row = report.rival.difference(metric, report.k)
        if row is None or not isfinite(row.difference):
            continue
        name = words.metric(f"{metric}@{report.k}")
        what = f"{words.signed(row.difference)} [{words.signed(row.low)}, {words.signed(row.high)}]"
        if not row.p_value < CHANCE:
            judgement = "no difference that these users could show"
        else:
            judgement = f"{'better' if row.difference > 0 else 'worse'}, and hardly by chance"
        sentences.append(f"{name} {what}, {words.odds(row.p_value)}: {judgement}")
    if not sentences:
        return None
    return join(
        tag("p", f"Against {report.rival.role}, paired user by user:"),
        tag("ul", *(tag("li", f"{sentence}.") for sentence in sentences), class_="plain"),
    )


def _accuracy_table(report: Report, k: int) -> Markup | None:
    rival = report.rival
    rows = []
    for metric in TEST_METRICS:
        figures = [result.estimate(metric, k) for result in report.results]
        if not any(figures):
            continue
        most = max(v for f in figures if f is not None for v in (f.mean, f.high) if isfinite(v) or v is f.mean)
        best = max((round(f.mean, 4) for f in figures if f is not None and isfinite(f.mean)), default=None)
        title, meaning = words.METRICS[metric]
        cells = []
        for result, row in zip(report.results, figures, strict=True):
            if row is None or not isfinite(row.mean):
                cells.append(tag("td", "–"))
                continue
            css = _CLASSES.get(result.role, "ease")
            interval = words.interval(row.low, row.high, between="–")
            value = tag("span", words.value(row.mean), class_="best" if round(row.mean, 4) == best else None)
            cells.append(
                tag(
                    "td",
                    value,
                    tag("span", interval, class_="interval") if interval else None,
                    whisker(row.low, row.mean, row.high, most, css),
                )
            )
        if rival is not None:
            cells.append(_difference_cell(rival, metric, k))
        rows.append(tag("tr", tag("th", title, tag("small", meaning), scope="row"), *cells))
    if not rows:
        return None
    heads = [
        tag(
            "th",
            tag(
                "span",
                report.model_name if j.role == "chosen" else j.role,
                class_=f"key {_CLASSES.get(j.role, 'ease')}",
            ),
            scope="col",
        )
        for j in report.results
    ]
    if rival is not None:
        heads.append(tag("th", f"{report.model_name} − {rival.role}", scope="col"))
    return table(f"The first {k} places of each list", [tag("th", "", scope="col"), *heads], rows)


def _difference_cell(rival: ModelResult, metric: str, k: int) -> Markup:
    row = rival.difference(metric, k)
    if row is None or not isfinite(row.difference):
        return tag("td", "–")
    return tag(
        "td",
        tag("span", words.signed(row.difference), class_="best" if row.p_value < CHANCE else None),
        tag("span", words.odds(row.p_value), class_="interval"),
    )
