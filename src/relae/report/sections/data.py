"""The data in numbers, and two curves."""

from relae._common.words import in_count
from relae.report import _words as words
from relae.report._charts import Scale, axes, box, dot, label, line, path, small_figure, svg
from relae.report._facts import DataFacts
from relae.report._html import Markup, facts, join, tag
from relae.report._report import Report


def draw_data(report: Report) -> Markup:
    """Return the numbers and the two charts."""
    data = report.data
    spreads = [
        ("items of a user", data.per_user),
        ("users of an item", data.per_item),
    ]
    rows: list[tuple[str, object]] = [
        ("Users", f"{data.users:,}"),
        ("Items", f"{data.items:,}"),
        ("Interactions", f"{data.interactions:,}"),
        ("Density", words.percent(data.density, 2)),
        ("Gini of popularity", f"{data.gini:.3f} (0: all items equal, 1: one has it all)"),
        *([("Features of items", f"{data.features:,}")] if data.features else []),
        *((f"The {name}", f"{low:,} to {high:,}, half have {mid:,.6g} or fewer") for name, (low, mid, high) in spreads),
    ]
    return join(
        tag(
            "p",
            tag("strong", f"The top 20% of the items have {words.percent(data.top_share)} of the interactions."),
            " All figures are of the whole data, before it was divided.",
        ),
        facts(rows),
        tag(
            "div",
            small_figure(
                lambda width: _draw_popularity(data, width),
                f"The further the curve is from the diagonal, the fewer items have it all: Gini {data.gini:.3f}.",
            ),
            small_figure(
                lambda width: _draw_histories(data, width),
                "Users by the number of their items, in steps that grow.",
            ),
            class_="halves",
        ),
    )


def _draw_popularity(data: DataFacts, width: float) -> Markup:
    """Draw the share of interactions of the most popular items."""
    height = 300.0
    x, y = Scale(0.0, 1.0, 44, width - 14), Scale(0.0, 1.0, height - 44, 34)
    curve = [(x(items), y(share)) for items, share in data.popularity]
    spot = (x(0.2), y(data.top_share))
    return svg(
        width,
        height,
        "How popularity is spread",
        f"The share of interactions of the most popular items: a fifth of them has {words.percent(data.top_share)}.",
        axes(x, y, "items, most popular first", "share of all interactions", words.percent, words.percent, 4, 4),
        path([(x(0), y(0)), (x(1), y(1))], "dash"),
        path([*curve, (x(1), y(0))], "under", close=True),
        path(curve, "curve"),
        line((spot[0], y(0)), spot, "here"),
        dot(*spot, 5, "mark chosen", f"the top 20% have {words.percent(data.top_share, 1)}"),
        label(spot[0] + 10, spot[1] + 16, f"top 20%: {words.percent(data.top_share)}", "chosen"),
        label(x(0.99), y(0.84), "if all were equal", "tick", "end"),
    )


def _draw_histories(data: DataFacts, width: float) -> Markup:
    """Draw the number of users by the number of their items."""
    height = 300.0
    bins = data.histories or [(0, 0, 0)]
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
    frame = axes(Scale(0, 1, left, right), y, "items of a user, from … on", "users", words.nothing, words.short, 4, 1)
    low, middle, high = data.per_user
    return svg(
        width,
        height,
        "How long histories are",
        f"Users by the number of their items: from {low:,} to {high:,}, the middle is {middle:,.6g}.",
        frame,
        *parts,
        join(*ticks),
    )
