"""Items that go together."""

from relae._common.words import in_count
from relae.report._charts import bar
from relae.report._html import Markup, join, tag
from relae.report._report import Report
from relae.report._samples import Neighbours
from relae.report.sections.samples import mark_tail, write_name


def draw_similar(report: Report) -> Markup | None:
    """Return some items, each with those most similar to it; None if there are none."""
    if not report.neighbours:
        return None
    return join(
        tag(
            "p",
            "Items that go together once all others are accounted for (partial correlation), for some popular and some "
            "unpopular ones. It is the same for every ξ.",
        ),
        tag("div", *(_draw_group(group) for group in report.neighbours), class_="likes"),
    )


def _draw_group(group: Neighbours) -> Markup:
    top = max((score for _, score in group.similar), default=1.0)
    return tag(
        "div",
        tag("h3", write_name(group.item, 60), mark_tail(group.item)),
        tag("p", in_count(group.item["popularity"], "user"), class_="note"),
        tag(
            "ol",
            *(
                tag(
                    "li",
                    tag("span", write_name(item, 60)),
                    bar(score / top, "tail" if item["group"] == "tail" else "ease"),
                    tag("span", f"{score:.3f}"),
                )
                for item, score in group.similar
            ),
        )
        if group.similar
        else tag("p", "Nothing goes with it."),
    )
