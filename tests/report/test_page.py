"""The page: whole, harmless, the same twice, and true to what it was drawn from."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from relae import Interactions
from relae.evaluation.result import Difference
from relae.models import DAN
from relae.recommender import Range
from relae.report import Pick, Sample, describe_data, render
from relae.tuning import Point

from .suite import HOSTILE, Page

OUTSIDE = ("src", "srcset", "action", "data", "poster", "background", "xlink:href")


def test_the_same_data_give_the_same_page(report, page):
    assert render(report) == render(report) == page


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


def test_titles_cannot_break_out(report, page):
    everything = Page(render(_with_names(report, HOSTILE)))
    for read in (Page(page), everything):
        assert not read.crossed
        assert {tag for tag, _ in read.tags}.isdisjoint({"script", "img", "b"})
        assert read.tags.count(("title", {})) > 1  # the page's own, and those of drawings
    assert "<script>alert('1')</script>" in everything.text  # as words
    assert 'Tom & Jerry\'s "best" </title></style></svg>' in everything.text
    assert "&lt;b&gt; already escaped" in everything.text
    assert "\x00" not in everything.text
    assert "x" * 200 not in everything.text


def with_record(report, **changes):
    return replace(report, run=replace(report.run, record=report.run.record | changes))


def _with_names(report, names):
    items = [{"item": name, "title": name, "popularity": 3, "group": "tail"} for name in names]
    picks = [Pick(item, 0.5, True, [(item, 0.4), (items[0], 0.2)]) for item in items]
    named = with_record(report, title=names[0], protocol=names[1])
    return replace(named, samples=[Sample(names[1], items, 40, 2, picks)])


def test_a_lone_surrogate_can_be_written(report):
    assert render(with_record(report, title="half of \ud83d a face")).encode()


def test_figures_are_those_of_the_run(run, report, page):
    result = json.loads((run / "result.json").read_text())
    tables = Page(page).tables
    names = {"ndcg": "NDCG", "recall": "Recall", "tail_ndcg": "NDCG, tail", "unbiased_ndcg": "NDCG, unbiased"}
    table = tables["The first 10 places of each list"]
    assert [entry["role"] for entry in result["test"]] == [result.role for result in report.results]
    assert [head.strip() for head in table[0][1 : len(report.results) + 1]] == [
        report.model_name,
        *[result.role for result in report.results[1:]],
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


def test_the_page_says_what_was_done(report, page):
    text = Page(page).text
    for words in (
        report.run.record["model"],
        report.run.command,
        report.command,
        "2024-02-29",
        "exact to",
        report.versions["numpy"],
    ):
        assert words in text
    points = sum(len(trial.points) for trial in report.trials)
    assert f"chosen among {points} configurations" in text
    assert "not corrected" in text


def test_users_are_nameless_unless_asked_for(page):
    assert "mail.example" not in Page(page).text
    assert "User 1" in page


def test_samples_know_hits_and_reasons(report):
    assert 1 <= len(report.samples) <= 5
    sizes = [sample.history_size for sample in report.samples]
    assert sizes == sorted(sizes)
    for sample in report.samples:
        scores = [pick.score for pick in sample.picks]
        assert scores == sorted(scores, reverse=True)
        names = {item["item"] for item in sample.history}
        for pick in sample.picks:
            assert pick.item["item"] not in names
            shares = [share for _, share in pick.because]
            assert shares == sorted(shares, reverse=True)
            assert all(0 < share <= 1 + 1e-9 for share in shares)


def with_rival(report, users, differences):
    """The results of the chosen model, and of a rival with four fifths of its figures."""
    ours = replace(report.results[0], estimates=[row._replace(users=users) for row in report.results[0].estimates])
    worse = [row._replace(mean=row.mean / 1.25) for row in ours.estimates]
    return [ours, replace(ours, role="the defaults", estimates=worse, differences=differences)]


def test_a_difference_to_the_defaults_is_put_in_words(report):
    rows = [
        Difference("ndcg", 10, 0.1, 0.08, 0.02, 0.01, 0.03, 0.0001),
        Difference("tail_ndcg", 10, 0.1, 0.09, 0.01, -0.01, 0.03, 0.4),
        Difference("head_ndcg", 10, 0.1, 0.12, -0.02, -0.03, -0.01, 0.03),
    ]
    read = Page(render(replace(report, results=with_rival(report, 40, rows))))
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
def test_cards_have_intervals_and_percentages_only_where_they_are_known(report, users, p_value, big):
    rows = [Difference(name, 10, 0.1, 0.08, 0.02, 0.01, 0.03, p_value) for name in ("ndcg", "tail_ndcg")]
    found = cards(render(replace(report, results=with_rival(report, users, rows))))
    for title, name in (("against the defaults", "NDCG@10"), ("tail, against the defaults", "NDCG@10, tail")):
        assert found[title][0] == big
        assert f"in {name}: +0.0200 [+0.0100, +0.0300], {users} users" in found[title][1]


# --- odd data ----------------------------------------------------------------------------------------------------


def test_without_people_rivals_or_differences(report):
    bare = replace(report, samples=(), neighbours=(), results=report.results[:1])
    read = Page(render(bare))
    assert not read.crossed
    assert "What it recommends" not in read.text
    assert "paired user by user" not in read.text
    assert "against the defaults" not in read.text


def test_figures_that_are_no_numbers(report):
    nan = math.nan
    results = [
        replace(
            result,
            estimates=[row._replace(mean=nan, low=nan, high=nan) for row in result.estimates],
            differences=[row._replace(difference=nan, low=nan, high=nan, p_value=nan) for row in result.differences],
        )
        for result in report.results
    ]
    points = [replace(p, metrics=dict.fromkeys(p.metrics, nan)) for t in report.trials for p in t.points]
    trial = replace(report.trials[0], points=points)
    page = render(replace(with_trials(report, [trial, *report.trials[1:]]), results=results))
    assert not Page(page).crossed
    assert not re.search(r'="[^"]*\bnan\b', page)


def with_trials(report, trials, **changes):
    """The same report of a search with other trials."""
    return replace(report, tuning=replace(report.tuning, trials=trials, **changes))


def fitted(report):
    """Those parameters of the chosen point that needed a fit."""
    return {searched.name: report.point[searched.name] for searched in report.fitted}


def test_a_single_point_has_a_chart(report):
    point = Point(report.point, report.front[0].metrics)
    trial = replace(report.trials[0], parameters=fitted(report), points=[point])
    page = render(with_trials(report, [trial]))
    assert "chosen" in page
    assert not re.search(r'="[^"]*\bnan\b', page)


def test_norms_have_a_place_in_every_part_and_mislead_in_none(report):
    """Two inversions of one l2 and dropout are one circle, with the better of their values; ξ is at the chosen α."""
    names = list(report.front[0].metrics)

    def point(beta, alpha, xi, value):
        parameters = {**report.point, "dropout": 0.2, "xi": xi, "user_norm": beta, "item_norm": alpha}
        return Point(parameters, dict.fromkeys(names, value))

    trials = [
        replace(
            report.trials[0],
            parameters={**fitted(report), "dropout": 0.2, "user_norm": beta},
            points=[
                point(beta, alpha, xi, base + alpha / 10 - abs(xi - 0.4) / 50)
                for alpha in (0.0, 0.3)
                for xi in (0.2, 0.4)
            ],
        )
        for beta, base in ((0.0, 0.51), (0.7, 0.61))
    ]
    space = {**report.tuning.space, "user_norm": Range(0, 1), "item_norm": Range(-0.1, 0.4)}
    normed = with_trials(report, trials, model=DAN(), space=space, untuned=None, choose="best")
    assert normed.chosen is trials[1].points[3]
    page = render(replace(normed, run=replace(report.run, model=DAN())))
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


def test_a_large_search_stays_small(report):
    near = 0.999 * report.tuning.best()[report.objective]  # so that all are drawn, and none is chosen
    points = [
        Point(
            report.point | {"dropout": 0.1, "xi": float(xi)},
            {name: float(value) for name in report.front[0].metrics} | {report.objective: near},
        )
        for xi, value in zip(np.linspace(0, 1, 20_000), np.linspace(0.5, 0.9, 20_000), strict=True)
    ]
    trial = replace(report.trials[0], parameters=fitted(report) | {"dropout": 0.1}, points=points)
    page = render(with_trials(report, [*report.trials, trial], choose="best"))
    assert len(page.encode()) < 3_000_000


def test_a_large_catalog_has_short_curves():
    rng = np.random.default_rng(0)
    matrix = np.zeros((40, 5000), np.float32)
    matrix[rng.integers(0, 40, 9000), rng.zipf(1.3, 9000) % 5000] = 1
    facts = describe_data(Interactions(matrix))
    assert len(facts.popularity) <= 400
    assert facts.popularity[0] == (0.0, 0.0)
    assert facts.popularity[-1] == pytest.approx((1.0, 1.0))
    shares = [share for _, share in facts.popularity]
    assert shares == sorted(shares)
    assert sum(count for *_, count in facts.histories) == np.count_nonzero(matrix.sum(axis=1))
    counts = np.sort(matrix.sum(axis=0))[::-1]
    assert facts.top_share == pytest.approx(counts[:1000].sum() / counts.sum())
