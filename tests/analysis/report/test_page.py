"""The page: whole, harmless, the same twice, and true to what it was drawn from."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from relae import Interactions
from relae.analysis.report import Difference, Item, Point, Sample, Searched, Suggestion, data_facts, render
from relae.tuning import describe

from .suite import HOSTILE, Page

OUTSIDE = ("src", "srcset", "action", "data", "poster", "background", "xlink:href")


def test_the_same_data_give_the_same_page(data, page):
    assert render(data) == render(data) == page


def test_tags_nest_and_nothing_is_loaded(page):
    read = Page(page)
    assert not read.open
    assert not read.crossed
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert not [tag for tag, _ in read.tags if tag in ("script", "link", "iframe", "object", "embed", "img", "base")]
    assert not [value for name in OUTSIDE for value in read.values(name)]
    assert not [name for _, attrs in read.tags for name in attrs if name.startswith("on")]
    ids = set(read.values("id"))
    assert all(link.startswith("#") and link[1:] in ids for link in read.values("href"))
    assert "url(" not in read.style
    assert "@import" not in read.style
    metas = {
        attrs.get("http-equiv") or attrs.get("name"): attrs.get("content") for t, attrs in read.tags if t == "meta"
    }
    assert metas["Content-Security-Policy"] == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert metas["viewport"] == "width=device-width, initial-scale=1"
    assert metas["generator"].startswith("relae ")


def test_ids_are_given_once_and_drawings_have_names(page):
    read = Page(page)
    ids = read.values("id")
    assert len(ids) == len(set(ids))
    drawings = [attrs for tag, attrs in read.tags if tag == "svg"]
    assert drawings
    assert all(attrs.get("role") == "img" or attrs.get("aria-hidden") == "true" for attrs in drawings)
    assert page.count('role="img"') == page.count("<desc>")
    assert all("scope" in attrs for tag, attrs in read.tags if tag == "th")
    assert not re.search(
        r"[^a-z]nan[^a-z]|inf[^a-z]", " ".join(read.values("d") + read.values("cx") + read.values("x"))
    )


def test_titles_cannot_break_out(data, page):
    everything = Page(render(replace(_with_names(data, HOSTILE), title=HOSTILE[0], protocol=HOSTILE[1])))
    for read in (Page(page), everything):
        assert not read.crossed
        assert {tag for tag, _ in read.tags}.isdisjoint({"script", "img", "b"})
        assert read.tags.count(("title", {})) > 1  # the page's own, and those of drawings
    assert "<script>alert('1')</script>" in everything.text  # as words
    assert 'Tom & Jerry\'s "best" </title></style></svg>' in everything.text
    assert "&lt;b&gt; already escaped" in everything.text
    assert "\x00" not in everything.text
    assert "x" * 200 not in everything.text


def _with_names(data, names):
    items = [Item(name, name, 3, True) for name in names]
    picks = [Suggestion(item, 0.5, True, [(item, 0.4), (items[0], 0.2)]) for item in items]
    return replace(data, samples=[Sample(names[1], items, 40, 2, picks)])


def test_a_lone_surrogate_can_be_written(data):
    assert render(replace(data, title="half of \ud83d a face")).encode()


def test_figures_are_those_of_the_run(run, data, page):
    result = json.loads((run / "result.json").read_text())
    tables = Page(page).tables
    names = {"ndcg": "NDCG", "recall": "Recall", "tail_ndcg": "NDCG, tail", "unbiased_ndcg": "NDCG, unbiased"}
    table = tables["The first 10 places of each list"]
    assert [entry["role"] for entry in result["test"]] == [judged.role for judged in data.judged]
    assert [head.strip() for head in table[0][1 : len(data.judged) + 1]] == [
        data.model_name,
        *[judged.role for judged in data.judged[1:]],
    ]
    rows = {row[0].split("\n")[0]: row for row in table[1:]}
    for place, entry in enumerate(result["test"], start=1):
        for figure in entry["figures"]:
            if figure["metric"] not in names or figure["k"] != 10:
                continue
            row = rows[names[figure["metric"]]]
            shown = [float(v) for v in re.findall(r"\d\.\d{4}", row[place])]
            expected = [figure["mean"], figure["low"], figure["high"]]
            assert shown == pytest.approx(expected, abs=5.1e-5)
    best = {row[0]: row for row in tables["The best of each model, by the validation users"][1:]}
    assert set(best) == set(result["best"])
    for name, point in result["best"].items():
        assert [float(v) for v in best[name][1:4]] == pytest.approx([point["l2"], point["dropout"], point["xi"]])
        assert float(best[name][4]) == pytest.approx(point["ndcg@10"], abs=5.1e-5)


def test_the_page_says_what_was_done(data, page):
    text = Page(page).text
    for words in (data.model, data.commands[0], data.commands[1], "2024-02-29", "exact to", data.versions["numpy"]):
        assert words in text
    points = sum(len(trial.points) for trial in data.trials)
    assert f"chosen among {points} configurations" in text
    assert "not corrected" in text


def test_users_are_nameless_unless_asked_for(page):
    assert "mail.example" not in Page(page).text
    assert "User 1" in page


def test_samples_know_hits_and_reasons(data):
    assert 1 <= len(data.samples) <= 5
    sizes = [sample.history_size for sample in data.samples]
    assert sizes == sorted(sizes)
    for sample in data.samples:
        scores = [pick.score for pick in sample.suggestions]
        assert scores == sorted(scores, reverse=True)
        names = {item.id for item in sample.history}
        for pick in sample.suggestions:
            assert pick.item.id not in names
            shares = [share for _, share in pick.because]
            assert shares == sorted(shares, reverse=True)
            assert all(0 < share <= 1 + 1e-9 for share in shares)


def test_a_difference_to_the_defaults_is_put_in_words(data):
    ours = replace(data.chosen, figures=[replace(f, users=40) for f in data.chosen.figures])
    theirs = replace(ours, role="the defaults", figures=[replace(f, mean=f.mean / 1.25) for f in ours.figures])
    rows = [
        Difference("the defaults", "ndcg", 10, 0.02, 0.01, 0.03, 0.0001),
        Difference("the defaults", "tail_ndcg", 10, 0.01, -0.01, 0.03, 0.4),
        Difference("the defaults", "head_ndcg", 10, -0.02, -0.03, -0.01, 0.03),
    ]
    read = Page(render(replace(data, judged=[ours, theirs], differences=rows)))
    text = read.text.replace("\u00a0", " ")
    assert "NDCG@10 +0.0200 [+0.0100, +0.0300], p < 0.001: better, and hardly by chance." in text
    assert "NDCG@10, tail +0.0100 [−0.0100, +0.0300], p = 0.4: no difference that these users could show." in text
    assert "NDCG@10, head −0.0200 [−0.0300, −0.0100], p = 0.03: worse, and hardly by chance." in text


def cards(page):
    """The titles, large figures and details of the cards at the top."""
    found = re.findall(r"<dt>(.*?)</dt><dd><div class=\"big\">(.*?)</div><div class=\"small\">(.*?)</div>", page)
    return {title: (big, small.replace("\u00a0", " ")) for title, big, small in found}


@pytest.mark.parametrize(
    ("users", "p_value", "big"), [(40, 0.0001, "+25.0%"), (40, 0.4, "no difference"), (29, 0.0001, "too few users")]
)
def test_cards_have_intervals_and_percentages_only_where_they_are_known(data, users, p_value, big):
    ours = replace(data.chosen, figures=[replace(f, users=users) for f in data.chosen.figures])
    theirs = replace(ours, role="the defaults", figures=[replace(f, mean=f.mean / 1.25) for f in ours.figures])
    rows = [Difference("the defaults", name, 10, 0.02, 0.01, 0.03, p_value) for name in ("ndcg", "tail_ndcg")]
    found = cards(render(replace(data, judged=[ours, theirs], differences=rows)))
    for title, name in (("against the defaults", "NDCG@10"), ("tail, against the defaults", "NDCG@10, tail")):
        assert found[title][0] == big
        assert f"in {name}: +0.0200 [+0.0100, +0.0300], {users} users" in found[title][1]


# --- odd data ----------------------------------------------------------------------------------------------------


def test_without_people_rivals_or_differences(data):
    bare = replace(data, samples=(), neighbours=(), judged=data.judged[:1], differences=())
    read = Page(render(bare))
    assert not read.crossed
    assert "What it recommends" not in read.text
    assert "paired user by user" not in read.text
    assert "against the defaults" not in read.text


def test_figures_that_are_no_numbers(data):
    nan = math.nan
    judged = [replace(j, figures=[replace(f, mean=nan, low=nan, high=nan) for f in j.figures]) for j in data.judged]
    points = [replace(p, metrics=dict.fromkeys(p.metrics, nan)) for t in data.trials for p in t.points]
    trial = replace(data.trials[0], points=points)
    differences = [replace(d, difference=nan, low=nan, high=nan, p_value=nan) for d in data.differences]
    page = render(replace(data, judged=judged, trials=[trial, *data.trials[1:]], differences=differences))
    assert not Page(page).crossed
    assert not re.search(r'="[^"]*\bnan\b', page)


NORMS = [
    Searched(name, log=False, is_dial=name == "item_norm", **describe(name)) for name in ("user_norm", "item_norm")
]


def fitted(data):
    """Those parameters of the chosen point that needed a fit."""
    return {searched.name: data.point[searched.name] for searched in data.fitted}


def test_a_single_point_has_a_chart(data):
    point = Point(data.point, data.front[0].metrics)
    trial = replace(data.trials[0], parameters=fitted(data), points=[point])
    page = render(replace(data, trials=[trial], front=[point], bests={data.model_name: point}))
    assert "chosen" in page
    assert not re.search(r'="[^"]*\bnan\b', page)


def test_norms_have_a_place_in_every_part_and_mislead_in_none(data):
    """Two inversions of one l2 and dropout are one circle, with the better of their values; ξ is at the chosen α."""
    names = list(data.front[0].metrics)

    def point(beta, alpha, xi, value):
        parameters = {**data.point, "xi": xi, "user_norm": beta, "item_norm": alpha}
        return Point(parameters, dict.fromkeys(names, value))

    trials = [
        replace(
            data.trials[0],
            parameters={**fitted(data), "user_norm": beta},
            points=[
                point(beta, alpha, xi, base + alpha / 10 - abs(xi - 0.4) / 50)
                for alpha in (0.0, 0.3)
                for xi in (0.0, 0.4)
            ],
        )
        for beta, base in ((0.0, 0.51), (0.7, 0.61))
    ]
    chosen = trials[1].points[3]
    page = render(
        replace(
            data,
            model_name="DAN",
            space=[*data.space, *NORMS],
            point=chosen.parameters,
            trials=trials,
            front=[chosen],
            bests={"RDLAE": trials[0].points[1], "DAN": chosen},
        )
    )
    read = Page(page)
    assert not read.crossed
    assert "a norm of users β of 0.7 and a norm of items α of 0.3" in read.text
    assert page.count('r="7"') == 2  # one circle, for a wide page and a narrow one
    assert "up to 0.6400</title>" in page
    assert "up to 0.5400</title>" in page  # of β = 0, in the figure of norms and nowhere else
    assert len(re.findall(r"dropout [\d.]+: NDCG@10 up to 0\.5400", page)) == 0
    assert "β 0.7, α 0.3 held fixed: 2 values of ξ from one inversion" in read.text
    rows = read.tables["The best of each model, by the validation users"]
    assert [row[4:6] for row in rows] == [["β", "α"], ["0", "0"], ["0.7", "0.3"]]
    assert "models without norms had only 1 inversion" in read.text


def test_a_large_search_stays_small(data):
    points = [
        Point(data.point | {"dropout": 0.1, "xi": float(xi)}, {name: float(value) for name in data.front[0].metrics})
        for xi, value in zip(np.linspace(0, 1, 20_000), np.linspace(0.5, 0.9, 20_000), strict=True)
    ]
    page = render(
        replace(
            data,
            trials=[*data.trials, replace(data.trials[0], parameters=fitted(data) | {"dropout": 0.1}, points=points)],
        )
    )
    assert len(page.encode()) < 3_000_000


def test_a_large_catalog_has_short_curves():
    rng = np.random.default_rng(0)
    matrix = np.zeros((40, 5000), np.float32)
    matrix[rng.integers(0, 40, 9000), rng.zipf(1.3, 9000) % 5000] = 1
    facts = data_facts(Interactions(matrix))
    assert len(facts.popularity) <= 400
    assert facts.popularity[0] == (0.0, 0.0)
    assert facts.popularity[-1] == pytest.approx((1.0, 1.0))
    shares = [share for _, share in facts.popularity]
    assert shares == sorted(shares)
    assert sum(count for *_, count in facts.histories) == np.count_nonzero(matrix.sum(axis=1))
    counts = np.sort(matrix.sum(axis=0))[::-1]
    assert facts.top_share == pytest.approx(counts[:1000].sum() / counts.sum())
