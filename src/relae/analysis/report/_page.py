"""The page itself: what a busy colleague wants to know first comes first."""

from collections.abc import Sequence
from importlib.resources import files
from math import isfinite

from relae._common.words import in_count, in_time
from relae.analysis.report import _model as model
from relae.analysis.report import _plots as plots
from relae.analysis.report import _words as words
from relae.analysis.report._charts import bar, figure, small_figure, whisker
from relae.analysis.report._data import (
    Fit,
    Item,
    Judged,
    Neighbours,
    ReportData,
    Sample,
)
from relae.analysis.report._html import Markup, join, tag
from relae.analysis.report._parts import facts, table

Section = tuple[str, str, Markup | None]  # key, title, content

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
METRICS = (
    "ndcg",
    "recall",
    "head_ndcg",
    "head_recall",
    "tail_ndcg",
    "tail_recall",
    "unbiased_ndcg",
    "unbiased_recall",
    "coverage",
)
_CLASSES = {"chosen": "chosen", "popularity": "popularity"}  # any other is the first rival
_CHANCE = 0.05
_FEW = 30  # users, below which a percentage says more than is known


def render(data: ReportData) -> str:
    """Return the report as one HTML page: nothing is loaded, nothing runs, and the same data give the same page."""
    sections = _of_family(data) if data.dials else _of_model(data)
    present = [(key, title, content) for key, title, content in sections if content]
    style = files("relae.analysis.report").joinpath("style.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=f"relae {data.versions.get('relae', '')}".strip()),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="robots", content="noindex"),
        tag("title", f"{data.title}: {data.model_name}, a report"),
        tag("style", Markup(style)),
    )
    body = tag(
        "body",
        _top(data, [(key, title) for key, title, _ in present]),
        tag(
            "main",
            *(
                tag("section", tag("h2", title, id=f"{key}-title"), content, id=key, aria_labelledby=f"{key}-title")
                for key, title, content in present
            ),
        ),
        tag("footer", f"Made by relae {data.versions.get('relae', '')} on {data.made}. This file needs no network."),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _of_family(data: ReportData) -> list[Section]:
    dial = data.dials[0]
    return [
        ("trade-off", "The trade-off", _trade_off(data)),
        ("accuracy", "How accurate it is", _accuracy(data)),
        (dial.name, f"What {dial.symbol} does", _dial(data)),
        ("search", "What was searched", _search(data)),
        ("data", "The data", _data(data)),
        ("samples", "What it recommends", _samples(data.samples)),
        ("similar", "What goes together", _neighbours(data.neighbours)),
        ("made", "How this was made", _made(data, _family_facts(data))),
    ]


def _of_model(data: ReportData) -> list[Section]:
    return [
        ("accuracy", "How accurate it is", _accuracy(data)),
        ("search", "What was searched", model.search(data)),
        ("learning", "How it learned", model.learning(data)),
        ("data", "The data", _data(data)),
        ("samples", "What it recommends", _samples(data.samples)),
        ("made", "How this was made", _made(data, model.facts(data))),
    ]


# --- the headline ------------------------------------------------------------------------------------------------


def _top(data: ReportData, sections: Sequence[tuple[str, str]]) -> Markup:
    where = tag("nav", tag("ul", *(tag("li", tag("a", title, href=f"#{key}")) for key, title in sections)))
    k, chosen = data.k, data.chosen
    parameters = _family_parameters(data) if data.dials else model.parameters(data)
    listed = ", ".join(parameters[:-1]) + f" and {parameters[-1]}" if len(parameters) > 1 else parameters[0]
    main = chosen.figure("ndcg", k)
    lead = join(
        tag("strong", data.model_name),
        f" with {listed} was chosen among {in_count(data.configurations, 'configuration')} {_reason(data)}",
        _kept(data),
        ". ",
        None if main is None else _judges(data, main.users),
        None if main is None else tag("strong", f"its NDCG@{k} is {words.value(main.mean)}"),
        None if main is None else f"{_bracket(main.low, main.high, ' with a 95% interval of ')}.",
    )
    return tag(
        "header",
        tag("p", f"Recommendation report · {data.made}", class_="eyebrow"),
        tag("h1", tag("bdi", words.shorten(data.title, 80))),
        tag("p", lead, class_="lead"),
        tag("dl", *_tiles(data), class_="tiles"),
        None if data.complete else tag("p", "The search was stopped before its end.", class_="note"),
        where,
        class_="top",
    )


def _reason(data: ReportData) -> str:
    """Return what a model was chosen for."""
    name, users = words.metric(data.objective), in_count(data.valid_users, "validation user")
    if data.choose == "tail":
        return f"for the most tail among those whose {name} {users} cannot tell from the best"
    if data.choose == "default":
        return f"because these are the defaults, and {users} show none with a better {name}"
    return f"for its {name} on {users}"


def _family_parameters(data: ReportData) -> list[str]:
    own = [each for each in data.space if each.neutral is None and each.name in data.parameters]
    found = [f"{each.symbol} {words.number(data.point[each.name])}" for each in own]
    more = [each for each in data.extras if data.point[each.name] != each.neutral]
    return found + [f"{each.phrase} {words.number(data.point[each.name])}" for each in more]


def _judges(data: ReportData, users: int) -> str:
    if data.new_users:
        return f"On {in_count(users, 'test user')}, who took no part in that choice, "
    return f"On the test items of {in_count(users, 'user')}, which took no part in that choice, "


def _kept(data: ReportData) -> str:
    if data.constraint is None:
        return ""
    name, loss = data.constraint
    return f", with at most {words.percent(loss, 1)} of the best {words.metric(name)} lost"


def _tiles(data: ReportData) -> list[Markup]:
    k, rival, popular = data.k, data.rival, data.popularity
    against = "" if rival is None else f"against {rival.role}"
    tiles = []
    main = data.chosen.figure("ndcg", k)
    if main is not None:
        interval = "on test users" + _bracket(main.low, main.high, "; 95%: ", "–")
        tiles.append(_tile(f"NDCG@{k}", words.value(main.mean), interval, "chosen"))
    for judged, title, metric, css in (
        (rival, against, "ndcg", "ease"),
        (rival, f"tail, {against}", "tail_ndcg", "tail"),
        (popular, "against popularity", "ndcg", "popularity"),
    ):
        if judged is not None and (card := _gain(data, judged, metric, k)) is not None:
            tiles.append(_tile(title, *card, css))
    return tiles


def _tile(title: str, figure: str, detail: str, css: str) -> Markup:
    return tag(
        "div",
        tag("dt", title),
        tag("dd", tag("div", figure, class_="big"), tag("div", detail, class_="small")),
        class_=css,
    )


def _gain(data: ReportData, theirs: Judged, metric: str, k: int) -> tuple[str, str] | None:
    """Return what the chosen model gains over another one, and how certain that is.

    In percent only where enough users show a difference that is hardly chance.
    """
    one, other = data.chosen.figure(metric, k), theirs.figure(metric, k)
    found = data.difference(theirs.role, metric, k)
    if one is None or other is None or found is None or not isfinite(found.difference):
        return None
    detail = (
        f"in {words.metric(f'{metric}@{k}')}: {words.signed(found.difference)}"
        f" [{words.signed(found.low)}, {words.signed(found.high)}], {in_count(one.users, 'user')}"
    )
    if one.users < _FEW:
        return "too few users", detail
    if not found.p_value < _CHANCE:
        return "no difference", f"{detail}, {words.odds(found.p_value)}"
    return words.gain(one.mean, other.mean) or words.signed(found.difference), detail


def _bracket(low: float, high: float, before: str = "", between: str = " to ") -> str:
    if not (isfinite(low) and isfinite(high)):
        return ""
    return f"{before}{words.value(low)}{between}{words.value(high)}"


# --- what was found ----------------------------------------------------------------------------------------------


def _trade_off(data: ReportData) -> Markup:
    first, _ = data.axes
    most, chosen = data.front[0] if data.front else None, plots.chosen_point(data)
    near, everything = plots.shown_points(data)
    lost = ""
    if chosen is not None and most is not None and most.metrics[first] > 0:
        share = chosen.metrics[first] / most.metrics[first] - 1
        lost = (
            " The chosen point is the most accurate of all."
            if abs(share) < 5e-5
            else f" The chosen point gives up {words.percent(-share, 1)} of the best {words.metric(first)}."
        )
    hidden = everything - len(near)
    caption = (
        f"Each dot is one configuration, judged by {in_count(data.valid_users, 'validation user')}. "
        f"Up is better for unpopular items, right is better for all. On the line lie the {len(data.front)} that no "
        f"other beats in both. Circles are the best of each model."
        + (f" {hidden:,} weaker or neighbouring ones of {everything:,} are left out." if hidden > 0 else "")
    )
    return join(
        tag(
            "p",
            "What popular items gain, unpopular ones often lose. This is how much of one costs how much of the other "
            f"on this data.{lost}",
        ),
        figure(lambda width: plots.trade_off(data, width), caption),
    )


def _accuracy(data: ReportData) -> Markup:
    ks = sorted({figure.k for judged in data.judged for figure in judged.figures}, key=lambda k: (k != data.k, k))
    main = data.chosen.figure("ndcg", data.k)
    users = in_count(main.users if main else data.test_users, "user")
    return join(
        tag(
            "p",
            f"All models were fitted again to training and validation data together and judged by {users}, of whom "
            "they see a part and have to find the rest. Below each figure is its 95% bootstrap interval over users.",
        ),
        _verdict(data),
        *(_accuracy_table(data, k) for k in ks),
        tag(
            "p",
            "Head: the fifth of the items with the most users in the training data; tail: all others. Unbiased: hits "
            "count by the inverse of how likely an item is to be seen at all. Users without hidden items of a group "
            "do not count there.",
            class_="note",
        ),
    )


def _verdict(data: ReportData) -> Markup | None:
    """Say in words whether the gain over the first rival is more than chance."""
    if data.rival is None:
        return None
    sentences = []
    for metric in ("ndcg", "tail_ndcg", "head_ndcg"):
        found = data.difference(data.rival.role, metric, data.k)
        if found is None or not isfinite(found.difference):
            continue
        name = words.metric(f"{metric}@{data.k}")
        what = f"{words.signed(found.difference)} [{words.signed(found.low)}, {words.signed(found.high)}]"
        if not found.p_value < _CHANCE:
            judgement = "no difference that these users could show"
        else:
            judgement = f"{'better' if found.difference > 0 else 'worse'}, and hardly by chance"
        sentences.append(f"{name} {what}, {words.odds(found.p_value)}: {judgement}")
    if not sentences:
        return None
    return join(
        tag("p", f"Against {data.rival.role}, paired user by user:"),
        tag("ul", *(tag("li", f"{sentence}.") for sentence in sentences), class_="plain"),
    )


def _accuracy_table(data: ReportData, k: int) -> Markup | None:
    rival = data.rival
    rows = []
    for metric in METRICS:
        figures = [judged.figure(metric, k) for judged in data.judged]
        if not any(figures):
            continue
        most = max(v for f in figures if f is not None for v in (f.mean, f.high) if isfinite(v) or v is f.mean)
        best = max((round(f.mean, 4) for f in figures if f is not None and isfinite(f.mean)), default=None)
        title, meaning = words.METRICS[metric]
        cells = []
        for judged, found in zip(data.judged, figures, strict=True):
            if found is None or not isfinite(found.mean):
                cells.append(tag("td", "–"))
                continue
            css = _CLASSES.get(judged.role, "ease")
            interval = _bracket(found.low, found.high, between="–")
            value = tag("span", words.value(found.mean), class_="best" if round(found.mean, 4) == best else None)
            cells.append(
                tag(
                    "td",
                    value,
                    tag("span", interval, class_="interval") if interval else None,
                    whisker(found.low, found.mean, found.high, most, css),
                )
            )
        if rival is not None:
            cells.append(_difference_cell(data, rival.role, metric, k))
        rows.append(tag("tr", tag("th", title, tag("small", meaning), scope="row"), *cells))
    if not rows:
        return None
    heads = [
        tag(
            "th",
            tag(
                "span", data.model_name if j.role == "chosen" else j.role, class_=f"key {_CLASSES.get(j.role, 'ease')}"
            ),
            scope="col",
        )
        for j in data.judged
    ]
    if rival is not None:
        heads.append(tag("th", f"{data.model_name} − {rival.role}", scope="col"))
    return table(f"The first {k} places of each list", [tag("th", "", scope="col"), *heads], rows)


def _difference_cell(data: ReportData, role: str, metric: str, k: int) -> Markup:
    found = data.difference(role, metric, k)
    if found is None or not isfinite(found.difference):
        return tag("td", "–")
    return tag(
        "td",
        tag("span", words.signed(found.difference), class_="best" if found.p_value < _CHANCE else None),
        tag("span", words.odds(found.p_value), class_="interval"),
    )


def _dial(data: ReportData) -> Markup | None:
    trial = data.trial
    if trial is None or data.fit is None:
        return None
    turned = data.dials[0]
    sign, (low, high), (first, last) = turned.symbol, trial.interval, data.fit.ends
    norms = " with these norms" if any(data.point[each.name] != each.neutral for each in data.extras) else ""
    free = words.percent(data.fit.unconstrained_here, 1)
    return join(
        tag(
            "p",
            f"{sign} bounds how much an item may recommend itself. An item whose own weight is below {sign} is free of "
            f"that constraint. At {sign} = 0 the model is {first}{norms}, at {sign} = 1 it is {last}{norms}. On this "
            f"data only {sign} between {low:.3f} and {high:.3f} change anything (shaded); at the chosen {sign} = "
            f"{words.number(data.point[turned.name])}, {free} of the items are free.",
        ),
        figure(
            lambda width: plots.dial(data, trial, turned, width),
            f"Validation users, {words.setting(data.space, data.point, turned)} held fixed: "
            f"{in_count(len(plots.dial_points(data, trial, turned)), 'value')} of {sign} from one inversion. The share "
            "of free items is that of the last fit.",
        ),
    )


def _search(data: ReportData) -> Markup:
    seconds = sum(trial.seconds for trial in data.trials)
    shown = _shown(data)
    bests = list(data.bests.items())
    most = {name: max((round(p.metrics[name], 4) for _, p in bests), default=0.0) for name in shown}
    rows = [
        tag(
            "tr",
            tag("th", model, scope="row"),
            *(tag("td", words.number(point.parameters[each.name])) for each in data.space),
            *(
                tag(
                    "td",
                    words.value(point.metrics[name]),
                    class_="best" if round(point.metrics[name], 4) == most[name] else None,
                )
                for name in shown
            ),
            class_="chosen" if model == data.model_name else None,
        )
        for model, point in bests
    ]
    heads = [tag("th", name, scope="col") for name in ("model", *(each.symbol for each in data.space))]
    heads += [tag("th", words.metric(name), scope="col") for name in shown]
    pair, dial = " and ".join(each.symbol for each in data.fitted[:2]), data.dials[0].symbol
    return join(
        tag(
            "p",
            f"{in_count(len(data.trials), 'inversion')} gave {in_count(data.configurations, 'configuration')} "
            f"of {_searched(data)} in {in_time(seconds)}: {_price(data)}",
        ),
        figure(
            lambda width: plots.search_map(data, width),
            f"Each circle is {f'a pair of {pair}' if data.extras else 'one inversion'}; the stronger, the "
            f"better its best {words.metric(data.objective)} over all {dial}{_scaling(data)}",
        ),
        _extras(data) if data.extras else None,
        table("The best of each model, by the validation users", heads, rows),
        tag("p", " ".join(_remarks(data)), class_="note") if _remarks(data) else None,
    )


def _scaling(data: ReportData) -> str:
    more = [each.symbol for each in data.extras if not each.is_dial]
    return f" and norms. A larger {more[0]} wants a smaller {data.fitted[0].symbol}." if more else "."


def _remarks(data: ReportData) -> list[str]:
    """What to know about the best of each model."""
    found = []
    last = list(data.bests)[-1] if data.bests else data.model_name
    if data.constraint is None:
        found.append(f"A model with a free parameter contains those without: {last} is never behind.")
    if data.extras:
        more = {each.name: each.neutral for each in data.extras if not each.is_dial}
        plain = sum(more.items() <= trial.parameters.items() for trial in data.trials)
        count = in_count(plain, "inversion")
        found.append(
            f"The search was for {last}: models without norms had only {count}, and may do better by their own."
        )
    return found


def _searched(data: ReportData) -> str:
    return list(data.bests)[-1] if data.extras else "all six models"


def _price(data: ReportData) -> str:
    pair, dial = " and ".join(each.symbol for each in data.fitted[:2]), data.dials[0].symbol
    if data.extras:
        names = pair.replace(" and ", ", ")
        return (
            f"each {names} and norm of users costs one inversion, and all its {dial} and norms of items come with it."
        )
    return f"each pair of {pair} costs one inversion, and all its {dial} come with it."


def _extras(data: ReportData) -> Markup:
    """What was found for each value of the parameters that only one of the models has."""
    objective = words.metric(data.objective)
    return tag(
        "div",
        *(
            small_figure(
                lambda width, each=each: plots.by_value(data, each, width),  # type: ignore[misc]
                f"{each.effect}: the best {objective} found for each.",
            )
            for each in data.extras
        ),
        class_="halves",
    )


def _shown(data: ReportData) -> list[str]:
    k = data.objective.partition("@")[2]
    wanted = [data.objective, *data.axes, f"ndcg@{k}", f"tail_ndcg@{k}", f"unbiased_ndcg@{k}", f"coverage@{k}"]
    points = list(data.bests.values())
    return [name for name in dict.fromkeys(wanted) if all(name in point.metrics for point in points)]


# --- the data, and what comes of it ------------------------------------------------------------------------------


def _data(data: ReportData) -> Markup:
    found = data.data
    spreads = [
        ("items of a user", found.per_user),
        ("users of an item", found.per_item),
    ]
    rows: list[tuple[str, object]] = [
        ("Users", f"{found.users:,}"),
        ("Items", f"{found.items:,}"),
        ("Interactions", f"{found.interactions:,}"),
        ("Density", words.percent(found.density, 2)),
        ("Gini of popularity", f"{found.gini:.3f} (0: all items equal, 1: one has it all)"),
        *([("Features of items", f"{found.features:,}")] if found.features else []),
        *((f"The {name}", f"{low:,} to {high:,}, half have {mid:,.6g} or fewer") for name, (low, mid, high) in spreads),
    ]
    return join(
        tag(
            "p",
            tag("strong", f"The top 20% of the items have {words.percent(found.top_share)} of the interactions."),
            " All figures are of the whole data, before it was divided.",
        ),
        facts(rows),
        tag(
            "div",
            small_figure(
                lambda width: plots.popularity(found, width),
                f"The further the curve is from the diagonal, the fewer items have it all: Gini {found.gini:.3f}.",
            ),
            small_figure(
                lambda width: plots.histories(found, width),
                "Users by the number of their items, in steps that grow.",
            ),
            class_="halves",
        ),
    )


def _name(item: Item, most: int = 90) -> Markup:
    return tag("bdi", words.shorten(item.name, most), title=item.id if item.id != item.name else None)


def _tail(item: Item) -> Markup | None:
    return join(" ", tag("span", "tail", class_="tag")) if item.is_tail else None


def _samples(samples: Sequence[Sample]) -> Markup | None:
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
        *(_person(sample) for sample in samples),
    )


def _has_reasons(samples: Sequence[Sample]) -> bool:
    return any(pick.because for sample in samples for pick in sample.suggestions)


def _person(sample: Sample) -> Markup:
    hits = sum(suggestion.hit for suggestion in sample.suggestions)
    more = sample.history_size - len(sample.history)
    had = [part for item in sample.history for part in (_name(item, 60), " · ")][:-1]
    top = max((suggestion.score for suggestion in sample.suggestions), default=1.0)
    return tag(
        "article",
        tag("h3", tag("bdi", words.shorten(sample.label, 60))),
        tag(
            "p",
            f"{in_count(sample.history_size, 'item')} known, {sample.hidden:,} hidden, "
            f"{hits:,} of them in the first {len(sample.suggestions)}. Had: ",
            *had,
            f" · and {more:,} more" if more > 0 else None,
            class_="had",
        ),
        tag(
            "ol",
            *(
                tag(
                    "li",
                    tag("span", place, class_="rank"),
                    tag(
                        "span",
                        _name(pick.item),
                        _tail(pick.item),
                        join(" ", tag("span", "✓ hidden", class_="hit")) if pick.hit else None,
                    ),
                    tag(
                        "span",
                        f"{pick.score:.3f}",
                        bar(pick.score / top if top > 0 else 0.0, "tail" if pick.item.is_tail else "ease"),
                        in_count(pick.item.users, "user"),
                        class_="score",
                    ),
                    tag("span", *_why(pick.because), class_="why"),
                )
                for place, pick in enumerate(sample.suggestions, start=1)
            ),
            class_="picks",
        ),
        class_="person",
    )


def _why(because: Sequence[tuple[Item, float]]) -> list[object]:
    if not because:
        return []
    parts: list[object] = ["because of "]
    for place, (item, share) in enumerate(because):
        parts += [" and " if place else "", _name(item, 60), f" ({words.percent(share)})"]
    return parts


def _neighbours(neighbours: Sequence[Neighbours]) -> Markup | None:
    if not neighbours:
        return None
    return join(
        tag(
            "p",
            "Items that go together once all others are accounted for (partial correlation), for some popular and some "
            "unpopular ones. It is the same for every ξ.",
        ),
        tag("div", *(_group(group) for group in neighbours), class_="likes"),
    )


def _group(group: Neighbours) -> Markup:
    top = max((score for _, score in group.similar), default=1.0)
    return tag(
        "div",
        tag("h3", _name(group.item, 60), _tail(group.item)),
        tag("p", in_count(group.item.users, "user"), class_="note"),
        tag(
            "ol",
            *(
                tag(
                    "li",
                    tag("span", _name(item, 60)),
                    bar(score / top, "tail" if item.is_tail else "ease"),
                    tag("span", f"{score:.3f}"),
                )
                for item, score in group.similar
            ),
        )
        if group.similar
        else tag("p", "Nothing goes with it."),
    )


# --- how it was made ---------------------------------------------------------------------------------------------


def _family_facts(data: ReportData) -> list[tuple[str, object]]:
    fit = data.fit
    assert fit is not None
    exact = f"{fit.residual:.0e}".replace("e-0", "e-")
    is_extra = any(data.point[each.name] != each.neutral for each in data.extras)
    shown = [each for each in data.space if is_extra or each.neutral is None]
    return [
        (", ".join(each.symbol for each in shown), ", ".join(repr(float(data.point[each.name])) for each in shown)),
        ("Last fit", f"{in_count(fit.users, 'user')} × {in_count(fit.items, 'item')}: train and validation data"),
        ("Solver", f"{fit.solver}, {fit.dtype}"),
        ("Residual", _residual(fit, exact)),
    ]


def _residual(fit: Fit, exact: str) -> str:
    if fit.solver == "local":
        return f"each item by its nearest only, solved to {exact}: an approximation"
    return f"the inverse is exact to {exact}: ‖(G+Λ)Pv − v‖/‖v‖ of random probes v"


def _made(data: ReportData, how: Sequence[tuple[str, object]]) -> Markup:
    rows: list[tuple[str, object]] = [
        ("Model", tag("code", data.model)),
        ("Objective", words.metric(data.objective) + _kept(data)),
        *how,
        ("Division", f"{data.protocol} (split {data.split}, share {data.share:g}, seed {data.seed})"),
        *([("Low ratings", data.low_ratings)] if data.low_ratings else []),
        ("Versions", ", ".join(f"{name} {version}" for name, version in data.versions.items())),
    ]
    notes = (
        "The choice was made by validation data; the tables of accuracy are of test data, which took no part in it. "
        "Figures of validation data are a little too good, as the best of many always is.",
        "Intervals and p-values are of users drawn at random from this data, not of another time or place. "
        "p-values come from a paired permutation test and are not corrected for their number.",
        "What a user has not had may be unknown to them rather than unwanted: offline figures rank models, and do "
        "not foretell what people will do.",
    )
    return join(
        facts(rows),
        tag("p", "These commands make it again:"),
        tag("pre", tag("code", "\n".join(data.commands))),
        tag("ul", *(tag("li", note) for note in notes), class_="plain"),
    )
