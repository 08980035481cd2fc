"""The headline: the chosen model, its figures on the test users, and what it gains."""

from collections.abc import Sequence
from math import isfinite

from relae._common.words import in_count
from relae.experiments import ModelResult
from relae.report import _words as words
from relae.report._html import Markup, join, tag
from relae.report._report import Report

CHANCE = 0.05  # a p-value below it is hardly chance
_FEW = 30  # users, below which a percentage says more than is known


def draw_headline(report: Report, sections: Sequence[tuple[str, str]]) -> Markup:
    """Return the top of the page, with links to its sections."""
    where = tag("nav", tag("ul", *(tag("li", tag("a", title, href=f"#{key}")) for key, title in sections)))
    k = report.k
    parameters = _family_parameters(report) if report.dials else _parameters(report)
    main = report.results[0].estimate("ndcg", k)
    lead = join(
        tag("strong", report.model_name),
        f" with {words.listed(parameters)} was chosen among {in_count(report.configurations, 'configuration')} ",
        _reason(report),
        describe_constraint(report),
        ". ",
        None if main is None else _judges(report, main.users),
        None if main is None else tag("strong", f"its NDCG@{k} is {words.value(main.mean)}"),
        None if main is None else f"{words.interval(main.low, main.high, ' with a 95% interval of ')}.",
    )
    return tag(
        "header",
        tag("p", f"Recommendation report · {report.made}", class_="eyebrow"),
        tag("h1", tag("bdi", words.shorten(report.run.title, 80))),
        tag("p", lead, class_="lead"),
        tag("dl", *_tiles(report), class_="tiles"),
        None if report.tuning.complete else tag("p", "The search was stopped before its end.", class_="note"),
        where,
        class_="top",
    )


def _reason(report: Report) -> str:
    """Return why the model was chosen."""
    name, users = words.metric(report.objective), in_count(report.valid_users, "validation user")
    choice = ("default" if report.chosen is report.tuning.default else report.tuning.choose) if report.dials else "best"
    if choice == "tail":
        return f"for the most tail among those whose {name} {users} cannot tell from the best"
    if choice == "default":
        return f"because these are the defaults, and {users} show none with a better {name}"
    return f"for its {name} on {users}"


def _family_parameters(report: Report) -> list[str]:
    plain = [each for each in report.space if each.neutral is None and not each.is_time]
    own = [each for each in plain if each.name in report.run.model.get_params()]
    parameters = [f"{each.symbol} {words.number(report.point[each.name])}" for each in own]
    more = [each for each in report.extras if report.point[each.name] != each.neutral]
    parameters += [f"{each.phrase} {words.number(report.point[each.name])}" for each in more]
    return parameters + (words.time(report.point) if report.time else [])


def _parameters(report: Report) -> list[str]:
    return [f"{each.name} {words.parameter(report.point[each.name])}" for each in report.space]


def _judges(report: Report, users: int) -> str:
    if report.divided.test.new_users:
        return f"On {in_count(users, 'test user')}, who took no part in that choice, "
    return f"On the test items of {in_count(users, 'user')}, which took no part in that choice, "


def describe_constraint(report: Report) -> str:
    """Return what had to be kept, as the end of a sentence; empty if nothing had to."""
    kept = report.tuning.constraint
    if kept is None:
        return ""
    return f", with at most {words.percent(kept.loss, 1)} of the best {words.metric(kept.metric)} lost"


def _tiles(report: Report) -> list[Markup]:
    k, rival = report.k, report.rival
    against = "" if rival is None else f"against {rival.role}"
    tiles = []
    main = report.results[0].estimate("ndcg", k)
    if main is not None:
        interval = "on test users" + words.interval(main.low, main.high, "; 95%: ", "–")
        tiles.append(_tile(f"NDCG@{k}", words.value(main.mean), interval, "chosen"))
    for result, title, metric, css in (
        (rival, against, "ndcg", "ease"),
        (rival, f"tail, {against}", "tail_ndcg", "tail"),
        *((result, f"against {result.role}", "ndcg", "popularity") for result in report.yardsticks),
    ):
        if result is not None and (card := _gain(report, result, metric, k)) is not None:
            tiles.append(_tile(title, *card, css))
    return tiles


def _tile(title: str, figure: str, detail: str, css: str) -> Markup:
    return tag(
        "div",
        tag("dt", title),
        tag("dd", tag("div", figure, class_="big"), tag("div", detail, class_="small")),
        class_=css,
    )


def _gain(report: Report, theirs: ModelResult, metric: str, k: int) -> tuple[str, str] | None:
    """Return the gain of the chosen model over another one, and how certain it is.

    In percent only where enough users show a difference that is hardly chance.
    """
    one, other = report.results[0].estimate(metric, k), theirs.estimate(metric, k)
    row = theirs.difference(metric, k)
    if one is None or other is None or row is None or not isfinite(row.difference):
        return None
    detail = (
        f"in {words.metric(f'{metric}@{k}')}: {words.signed(row.difference)}"
        f" [{words.signed(row.low)}, {words.signed(row.high)}], {in_count(one.users, 'user')}"
    )
    if one.users < _FEW:
        return "too few users", detail
    if not row.p_value < CHANCE:
        return "no difference", f"{detail}, {words.odds(row.p_value)}"
    return words.gain(one.mean, other.mean) or words.signed(row.difference), detail
