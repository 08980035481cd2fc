"""Recommendations to a few test users, with their reasons."""

from collections.abc import Sequence

from relae._common.words import in_count
from relae.catalog import IN_DEMAND, Item
from relae.report import _words as words
from relae.report._charts import bar
from relae.report._html import Markup, join, tag
from relae.report._report import Report
from relae.report._samples import Pick, Sample

_WORTH = 0.01  # the share from which an item is named beside the demand


def write_name(item: Item, most: int = 90) -> Markup:
    """Return the title of an item, or its id where it has none."""
    name, title = str(item["item"]), str(item["title"] or "")
    return tag("bdi", words.shorten(title if title.strip() else name, most), title=name if title.strip() else None)


def mark_tail(item: Item) -> Markup | None:
    """Return a mark for an item of the tail; None for one of the head."""
    return join(" ", tag("span", "tail", class_="tag")) if item["group"] == "tail" else None


def draw_samples(report: Report) -> Markup | None:
    """Return the recommendations to each sample user; None if there are none."""
    samples = report.samples
    if not samples:
        return None
    return join(
        tag(
            "p",
            f"{in_count(len(samples), 'test user')}, from short to long histories: chosen by length, not by result.",
            " ",
            tag("span", "✓ hidden", class_="hit"),
            " marks an item that the user did have and the model did not see; ",
            tag("span", "tail", class_="tag"),
            " one outside the most popular fifth.",
            " Percentages are parts of all that speaks for an item." if _has_reasons(samples) else None,
        ),
        *(_draw_sample(sample) for sample in samples),
    )


def _has_reasons(samples: Sequence[Sample]) -> bool:
    return any(pick.because for sample in samples for pick in sample.picks)


def _draw_sample(sample: Sample) -> Markup:
    hits = sum(pick.hit for pick in sample.picks)
    more = sample.history_size - len(sample.history)
    had = [part for item in sample.history for part in (write_name(item, 60), " · ")][:-1]
    top = max((pick.score for pick in sample.picks), default=1.0)
    return tag(
        "article",
        tag("h3", tag("bdi", words.shorten(sample.label, 60))),
        tag(
            "p",
            f"{in_count(sample.history_size, 'item')} known, {sample.hidden:,} hidden, "
            f"{hits:,} of them in the first {len(sample.picks)}. Had: ",
            *had,
            f" · and {more:,} more" if more > 0 else None,
            class_="had",
        ),
        tag(
            "ol",
            *(
                tag(
                    "li",
                    tag("span", rank, class_="rank"),
                    tag(
                        "span",
                        write_name(pick.item),
                        mark_tail(pick.item),
                        join(" ", tag("span", "✓ hidden", class_="hit")) if pick.hit else None,
                    ),
                    tag(
                        "span",
                        f"{pick.score:.3f}",
                        bar(pick.score / top if top > 0 else 0.0, "tail" if pick.item["group"] == "tail" else "ease"),
                        in_count(pick.item["popularity"], "user"),
                        class_="score",
                    ),
                    tag("span", *_write_reasons(pick), class_="why"),
                )
                for rank, pick in enumerate(sample.picks, start=1)
            ),
            class_="picks",
        ),
        class_="person",
    )


def _write_reasons(pick: Pick) -> list[object]:
    parts: list[object] = []
    if pick.demand_share > 0:
        parts += [IN_DEMAND, f" ({words.percent(pick.demand_share)})"]
    because = [(item, share) for item, share in pick.because if not parts or share >= _WORTH]
    for rank, (item, share) in enumerate(because):
        before = " and " if rank else ", because of " if parts else "because of "
        parts += [before, write_name(item, 60), f" ({words.percent(share)})"]
    return parts
