"""The section of time: what it gains, and the best that was found for each value of its parameters."""

import csv
import re
from dataclasses import replace

import numpy as np
import pytest

from relae.experiments import Run, tune
from relae.report import Pick, Sample, make_report, render
from relae.tuning import Point

from .suite import DAY, Page

DAYS = 60


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    """The report of a search that is judged by time, on data where what is wanted changes from week to week."""
    folder, rng = tmp_path_factory.mktemp("time"), np.random.default_rng(1)
    table = folder / "plays.csv"
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["user", "item", "time"])
        for user in range(150):
            for day in np.sort(rng.integers(0, DAYS, 14)):
                trend = (day // 6 * 4 + rng.integers(4)) % 40
                item = trend if rng.random() < 0.6 else user % 4 + 4 * rng.integers(10)
                rows.writerow([f"u{user}", f"i{item}", 10**9 + int(day) * 86_400 + int(rng.integers(86_400))])
    tune(table, out=folder / "run", timestamp="time", split="time", budget=3, objective="ndcg@10", share=0.2)
    run = Run.read(folder / "run")
    return make_report(run, run.tuning, today=DAY)


def section(page):
    return re.search(r'<section id="time".*?</section>', page, re.DOTALL)


def captions(page):
    """How the section's figures are called, and the marks in each: what they say and how they look."""
    found = {}
    for figure in re.findall(r'<figure class="half">.*?</figure>', section(page).group(), re.DOTALL):
        name = re.search(r"<title>What (.*?) does</title>", figure).group(1)
        marks = re.findall(r'<circle [^>]*class="([^"]*)"[^>]*><title>(.*?)</title>', figure)
        found[name] = {says: css for css, says in marks}
    return found


def words_of(page):
    return " ".join(Page(section(page).group()).text.split())


def timeless(point):
    values = point.parameters
    return values["half_life"] is None and values["fading"] == values["freshness"] == 0


def with_points(report, points, **changes):
    """The same report of a search with one fit."""
    trial = replace(report.trials[0], points=points)
    tuning = replace(report.tuning, trials=[trial], choose="best", untuned=None, **changes)
    return replace(report, tuning=tuning)


def point(report, value, **changes):
    off = {"half_life": None, "fading": 0.0, "freshness": 0.0, "fresh_days": 7.0}
    return Point({**report.point, **off, **changes}, dict.fromkeys(report.chosen.metrics, value))


def test_the_best_of_each_value_is_shown(timed):
    figures = captions(render(timed))
    assert set(figures) >= {"fading", "freshness", "fresh days"}
    for name in ("fading", "freshness", "fresh_days"):
        best = {}
        for each in timed.tuning.points:
            value = each.parameters[name]
            if name != "fresh_days" or each.parameters["freshness"] > 0:
                best[value] = max(best.get(value, 0.0), each["ndcg@10"])
        label = name.replace("_", " ")
        expected = [f"{label} {value:.6g}: NDCG@10 up to {best[value]:.4f}" for value in sorted(best)]
        assert list(figures[label]) == expected
        [chosen] = [says for says, css in figures[label].items() if css == "mark chosen"]
        assert chosen.startswith(f"{label} {timed.point[name]:.6g}:")


def test_the_gain_is_that_of_the_search(timed):
    best = max(filter(timeless, timed.tuning.points), key=lambda each: each["ndcg@10"])
    assert not timeless(timed.chosen)
    gap = timed.tuning.gap(timed.chosen, best)
    low, high = (f"{gap.difference + sign * gap.margin:+.4f}".replace("-", "−") for sign in (-1, 1))
    text = words_of(render(timed))
    assert f"reaches {timed.chosen['ndcg@10']:.4f} in NDCG@10 on {timed.valid_users} validation users" in text
    assert f"the best without time {best['ndcg@10']:.4f}: time gains +" in text
    assert f"[{low}, {high}]" in text
    count = sum(map(timeless, timed.tuning.points))
    assert f"Of {timed.configurations} configurations {count} were without time" in text


def test_the_headline_names_time_in_words(timed):
    points = [
        point(timed, 0.3),
        point(timed, 0.4, half_life=90.0, fading=0.25, freshness=0.16, fresh_days=1.0),
    ]
    page = render(with_points(timed, points))
    named = (
        "a half-life of 90 days, a fading of 0.25 and a freshness of 0.16 by a demand that halves in 1 day was chosen"
    )
    assert named in Page(page).text
    assert "half_life" not in page.partition("<main>")[0]
    plain = render(with_points(timed, points[:1]))
    assert "fading" not in Page(plain.partition("<main>")[0]).text


def test_no_half_life_comes_first(timed):
    points = [point(timed, 0.2, half_life=value) for value in (30.0, None, 7.5)]
    figures = captions(render(with_points(timed, points)))
    assert [says.partition(":")[0] for says in figures["half life"]] == [
        "half life none",
        "half life 7.5",
        "half life 30",
    ]
    assert set(figures) == {"half life"}  # nothing else was tried with several values


def test_a_value_that_never_met_the_chosen_ones_is_pale(timed):
    points = [
        point(timed, 0.2),
        point(timed, 0.25, fading=1.0),
        point(timed, 0.4, freshness=0.16),
        point(timed, 0.39, freshness=0.16, fading=0.12),
    ]
    page = render(with_points(timed, points))
    looks = list(captions(page)["fading"].values())
    assert looks == ["mark chosen", "fill ease", "fill popularity"]
    assert "Pale: tried only with other parameters of time" in words_of(page)


def test_a_choice_without_time(timed):
    points = [point(timed, 0.4), *(point(timed, 0.3, freshness=0.16, fresh_days=days) for days in (2.0, 7.0))]
    page = render(with_points(timed, points))
    text = words_of(page)
    assert "The best configuration with time, with a freshness of 0.16 by a demand that halves in 2 days" in text
    assert "time gains −0.1000." in text  # and no interval, of which nothing is known
    assert "mark chosen" not in captions(page)["fresh days"].values()  # without freshness its days do not matter


def test_all_with_time(timed):
    points = [point(timed, 0.4, freshness=value) for value in (0.1, 0.2)]
    assert "All configurations were with time: what it gains is not known." in words_of(
        render(with_points(timed, points))
    )


def test_without_times_there_is_no_section(page):
    assert section(page) is None
    assert "half-life" not in page


def test_the_search_says_what_a_circle_is(timed):
    text = Page(render(timed)).text
    assert (
        "each l2, dropout and half-life costs one inversion, and all its ξ and parameters of time come with it" in text
    )
    assert "Each circle is a pair of l2 and dropout" in text


def test_demand_is_a_reason(timed):
    item = {"item": "i1", "title": "Played", "popularity": 3, "group": "head"}
    picks = [
        Pick(item, 0.5, False, [(item, 0.3), (item, 0.001)], 0.7),
        Pick(item, 0.5, False, [], 0.7),
        Pick(item, 0.5, False, [(item, 0.9), (item, 0.1)]),
    ]
    page = render(replace(timed, samples=[Sample("User 1", [item], 1, 2, picks)]))
    assert re.findall(r'<span class="why">(.*?)</span>', re.sub(r"</?bdi.*?>", "", page)) == [
        "in demand now (70%), because of Played (30%)",
        "in demand now (70%)",
        "because of Played (90%) and Played (10%)",
    ]
    shares = [pick.demand_share for sample in timed.samples for pick in sample.picks]
    assert (max(shares) > 0) == (timed.point["freshness"] > 0)
