"""What is read from an evaluation, and every way to show it."""

import io
import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

from relae import EASE, LAE, RDLAE, Interactions
from relae._common.tables import Grid
from relae.data import Ids
from relae.evaluation import (
    DEFAULT_METRICS,
    METRICS,
    Comparison,
    Estimate,
    Evaluation,
    Evaluations,
    evaluate,
    hold_out_users,
    statistics,
)

from .suite import blocks

SPLIT = hold_out_users(Interactions(blocks(120, 40)), 0.4, rng=np.random.default_rng(0))
FIRST = evaluate(RDLAE(3.0, 0.4, 0.42).fit(SPLIT.train), SPLIT, METRICS, (3, 10))
SECOND = evaluate(LAE(6.0).fit(SPLIT.train), SPLIT, METRICS, (3, 10))
PATH = evaluate(RDLAE(3.0, 0.4, 0.42).fit(SPLIT.train), SPLIT, ["ndcg", "coverage"], (3,), xis=[0.0, 0.5])


def hand_made(values, model="mine", users=None, **options):
    users = Ids.range(len(next(iter(values.values())))) if users is None else users
    return Evaluation(model, "by hand", "standard", users, {k: np.array(v) for k, v in values.items()}, **options)


def rendered(thing, width=80):
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(thing)
    return console.file.getvalue()


# --- one evaluation ----------------------------------------------------------------------------------------------


def test_means():
    for name, values in FIRST.values.items():
        assert FIRST[name] == pytest.approx(np.nanmean(values))
        assert FIRST.means[name] == pytest.approx(np.nanmean(values))
    for name, value in FIRST.overall.items():
        assert FIRST[name] == FIRST.means[name] == value
    assert list(FIRST.means) == [*FIRST.values, *FIRST.overall]


def test_an_unknown_metric_is_an_error_that_lists_what_there_is():
    with pytest.raises(KeyError, match="'ndcg@5' was not evaluated: there are recall@3"):
        FIRST["ndcg@5"]


def test_estimates():
    rows = {f"{row.metric}@{row.k}": row for row in FIRST.estimates()}
    assert list(rows) == list(FIRST.means)
    for name, row in rows.items():
        assert isinstance(row, Estimate)
        assert row.mean == pytest.approx(FIRST[name])
        if name in FIRST.overall:
            assert math.isnan(row.low)
            assert math.isnan(row.high)
            assert row.users == len(SPLIT.users)
        else:
            assert row.low <= row.mean <= row.high
            assert row.users == np.count_nonzero(~np.isnan(FIRST.values[name]))
    assert any(row.users < len(SPLIT.users) for row in rows.values())  # some have no truth in the head


def test_intervals_are_wider_for_higher_levels_and_the_same_twice():
    narrow, wide, again = FIRST.estimates(0.5), FIRST.estimates(0.99), FIRST.estimates(0.99)
    assert str(wide) == str(again)
    for one, other in zip(narrow, wide, strict=True):
        if not math.isnan(one.low):
            assert other.low <= one.low <= one.high <= other.high
    other = FIRST.estimates(0.99, rng=np.random.default_rng(5))
    assert str(wide) != str(other)


def test_estimates_where_nobody_counts():
    result = hand_made({"tail_ndcg@3": [np.nan, np.nan], "ndcg@3": [0.0, 1.0]})
    nobody, everybody = result.estimates()
    assert (nobody.users, everybody.users) == (0, 2)
    assert np.isnan([nobody.mean, nobody.low, nobody.high]).all()
    reason = "– of tail_ndcg@3: no user has anything to find among the items outside the head (the tail)"
    assert reason in result.to_markdown()
    assert reason in Evaluations([result, result]).to_markdown()
    assert list(result.undefined) == ["tail_ndcg@3"]
    assert math.isnan(result["tail_ndcg@3"])


def test_only_metrics_of_all_lists():
    result = evaluate(EASE(6.0).fit(SPLIT.train), SPLIT, ["coverage", "novelty"], (3,))
    assert list(result.means) == ["coverage@3", "novelty@3"]
    assert len(result.estimates()) == 2
    assert "bootstrap" not in result.to_markdown()
    assert result.to_polars().height == 2
    with pytest.raises(ValueError, match="no metric per user in common"):
        result.compare(result)


def test_per_user():
    frame = FIRST.per_user()
    assert frame["user"].to_list() == SPLIT.users.values.tolist()
    for name, values in FIRST.values.items():
        assert np.array_equal(frame[name].to_numpy(), values, equal_nan=True)


def test_repr_is_short():
    assert re.match(r"Evaluation\(RDLAE\(.*\); 48 users; recall@3 0\.\d{4}, ", repr(FIRST))
    assert "\n" not in repr(FIRST)


# --- several -----------------------------------------------------------------------------------------------------


def test_the_best_of_several():
    low, high = hand_made({"ndcg@3": [0.1, 0.2]}, "low"), hand_made({"ndcg@3": [0.1, 0.9]}, "high")
    several = Evaluations([low, high, low])
    assert several.best("ndcg@3") is high
    with pytest.raises(KeyError, match="was not evaluated"):
        several.best("recall@3")
    with pytest.raises(ValueError, match="no evaluation to choose from"):
        Evaluations([]).best("ndcg@3")


def test_what_is_not_a_number_is_never_the_best():
    nobody, some = hand_made({"tail_ndcg@3": [np.nan, np.nan]}), hand_made({"tail_ndcg@3": [0.1, 0.3]})
    for several in ([nobody, some], [some, nobody]):
        assert Evaluations(several).best("tail_ndcg@3") is some


def test_several_are_a_sequence():
    several = Evaluations([FIRST, SECOND, FIRST])
    assert len(several) == 3
    assert several[1] is SECOND
    assert several[-1] is FIRST
    assert isinstance(several[:2], Evaluations)
    assert list(several[1:]) == [SECOND, FIRST]
    assert SECOND in several
    assert "RDLAE" in repr(several)
    assert "ξ = 0.5" in repr(PATH)


def test_the_best_figures_are_pointed_out_where_more_is_better():
    several = Evaluations(
        [
            hand_made({"ndcg@3": [0.2], "recall@3": [0.5]}, "one", overall={"popularity@3": 3.0}),
            hand_made({"ndcg@3": [0.4], "recall@3": [0.5]}, "two", overall={"popularity@3": 5.0}),
        ]
    )
    grid = several.grid()
    assert grid.header == ["model", "ndcg@3", "recall@3", "popularity@3"]
    assert grid.strong == {(1, 1), (0, 2), (1, 2)}
    assert "| two | **0.4000** | **0.5000** | 5.0000 |" in several.to_markdown()


def test_different_metrics_side_by_side():
    several = Evaluations([hand_made({"ndcg@3": [0.2]}, "one"), hand_made({"recall@3": [0.5]}, "two")])
    assert "| one | **0.2000** | – |" in several.to_markdown()


# --- comparisons -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", ["permutation", "wilcoxon"])
def test_a_comparison(test):
    found = FIRST.compare(SECOND, test, resamples=500)
    assert isinstance(found, Comparison)
    assert [f"{row.metric}@{row.k}" for row in found.rows] == list(FIRST.values)
    differences = np.column_stack([FIRST.values[name] - SECOND.values[name] for name in FIRST.values])
    expected = statistics.wilcoxon_test(differences)
    for at, name in enumerate(FIRST.values):
        row = found[name]
        assert row.ours == FIRST[name]
        assert row.theirs == SECOND[name]
        assert row.difference == pytest.approx(row.ours - row.theirs)
        assert row.low <= row.difference + 1e-12
        assert row.high >= row.difference - 1e-12
        assert 0 < row.p_value <= 1
        if test == "wilcoxon":
            assert row.p_value == pytest.approx(expected[at])
    assert (found.test, found.ours, found.theirs) == (test, FIRST.label, SECOND.label)
    assert found.rows == FIRST.compare(SECOND, test, resamples=500).rows


def test_a_comparison_the_other_way_round():
    one, other = FIRST.compare(SECOND, resamples=500), SECOND.compare(FIRST, resamples=500)
    for ours, theirs in zip(one.rows, other.rows, strict=True):
        assert ours.difference == pytest.approx(-theirs.difference)
        assert ours.p_value == pytest.approx(theirs.p_value)
        assert ours.low == pytest.approx(-theirs.high)


def test_a_model_does_not_differ_from_itself():
    for test in ("permutation", "wilcoxon"):
        for row in FIRST.compare(FIRST, test, resamples=50).rows:
            assert (row.difference, row.low, row.high, row.p_value) == (0, 0, 0, 1)


def test_what_cannot_be_compared():
    values = {"ndcg@3": [0.1, 0.2]}
    mine = hand_made(values)
    with pytest.raises(ValueError, match="only evaluations of the same users"):
        mine.compare(hand_made(values, users=Ids([0, 7])))
    with pytest.raises(ValueError, match=r"same users.*2 users.*and 3"):
        mine.compare(hand_made({"ndcg@3": [0.1, 0.2, 0.3]}))
    with pytest.raises(ValueError, match="same users, truth and mode"):
        mine.compare(Evaluation("x", "by hand", "paper", mine.users, mine.values))
    with pytest.raises(ValueError, match="no metric per user in common"):
        mine.compare(hand_made({"recall@3": [0.1, 0.2]}))
    with pytest.raises(ValueError, match="test must be 'permutation' or 'wilcoxon', got 't'"):
        mine.compare(mine, "t")
    with pytest.raises(KeyError, match="'recall@3' was not compared: there are ndcg@3"):
        mine.compare(mine)["recall@3"]


def test_another_truth_of_the_same_users_cannot_be_compared():
    values = {"ndcg@3": np.array([0.1, 0.2])}
    one = Evaluation("x", "last item of each user", "standard", Ids.range(2), values)
    other = Evaluation("x", "held-out items", "standard", Ids.range(2), values)
    with pytest.raises(ValueError, match="last item of each user"):
        one.compare(other)


@pytest.mark.parametrize(("level", "shown"), [(0.95, "95%"), (0.9, "90%"), (0.999, "99.9%")])
def test_the_level_of_a_comparison_is_shown_as_it_is(level, shown):
    found = FIRST.compare(SECOND, resamples=50, level=level)
    assert f"{shown} interval" in found.grid().header


# --- handing on --------------------------------------------------------------------------------------------------

EVERYTHING = {
    "one": FIRST,
    "several": Evaluations([FIRST, SECOND]),
    "path": PATH,
    "comparison": FIRST.compare(SECOND, resamples=50),
}


@pytest.fixture(params=EVERYTHING)
def thing(request):
    return EVERYTHING[request.param]


def test_frames_and_json_have_a_row_per_figure(thing):
    records = thing.records()
    frame, pandas = thing.to_polars(), thing.to_pandas()
    parsed = json.loads(thing.to_json(), parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))
    assert frame.columns == list(pandas.columns) == list(records[0])
    assert frame.height == len(pandas) == len(parsed) == len(records)
    for name in records[0]:
        for row, given in zip(records, parsed, strict=True):
            missing = isinstance(row[name], float) and math.isnan(row[name])
            assert given[name] == (None if missing else row[name])
    assert "metric" in frame.columns
    assert set(frame["k"]) <= {3, 10}


def test_json_has_null_for_what_is_not_a_number():
    parsed = json.loads(hand_made({"ndcg@3": [1.0, 1.0]}, overall={"coverage@3": math.nan}).to_json())
    assert parsed[1]["mean"] is None
    assert parsed[1]["low"] is None


def test_figures_of_a_path_carry_their_xi():
    assert PATH.to_polars()["xi"].unique().sort().to_list() == [0.0, 0.5]
    mixed = Evaluations([FIRST, *PATH])
    assert mixed.to_polars()["xi"].null_count() == len(FIRST.means)
    assert json.loads(mixed.to_json())


class Cells(HTMLParser):
    """Text by cell, and the tags that were seen."""

    def __init__(self, page):
        super().__init__()
        self.cells, self.tags = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.cells.append(data)


def figures(thing):
    """Every figure, as four decimals."""
    keys = ("ours", "theirs") if isinstance(thing, Comparison) else ("mean",)
    return {f"{record[key]:.4f}" for record in thing.records() for key in keys if abs(record[key]) < 100}


def test_tables_show_every_figure(thing):
    markdown, page = thing.to_markdown(), thing._repr_html_()
    assert str(thing) == markdown
    text = " ".join(Cells(page).cells)
    for figure in figures(thing):
        assert figure in markdown
        assert figure in text


def test_markdown_is_a_table(thing):
    lines = [line for line in thing.to_markdown().splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    assert re.fullmatch(r"\| ---( \| ---:)+ \|", lines[1])


def test_names_cannot_break_out_of_a_page():
    nasty = "<script>alert('1')</script> & co"
    for thing in (
        hand_made({"ndcg@3": [0.5]}, nasty),
        Evaluations([hand_made({"ndcg@3": [0.5]}, nasty)]),
        hand_made({"ndcg@3": [0.5]}, nasty).compare(hand_made({"ndcg@3": [0.5]}, nasty), resamples=9),
        Grid(nasty, [nasty], [[nasty]], [nasty]),
    ):
        page = thing.html() if isinstance(thing, Grid) else thing._repr_html_()
        parsed = Cells(page)
        assert "script" not in parsed.tags
        assert any(nasty in cell for cell in parsed.cells)


def test_names_cannot_break_a_markdown_table():
    several = Evaluations([hand_made({"ndcg@3": [0.5]}, "mine | theirs\nours")])
    lines = [line for line in several.to_markdown().splitlines() if line.startswith("|")]
    assert len(lines) == 3
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 3 for line in lines)


def test_names_cannot_break_a_terminal():
    for name in ("[bold]mine[/bold]", "[/] mine", "mine [red"):
        text = rendered(Evaluations([hand_made({"ndcg@3": [0.25]}, name), hand_made({"ndcg@3": [0.5]}, name)]))
        assert name in text
        assert "0.5000" in text
        assert name in rendered(hand_made({"ndcg@3": [0.25]}, name))


def test_a_wide_terminal_shows_every_figure(thing):
    text = rendered(thing, 2000)
    for figure in figures(thing):
        assert figure in text


@pytest.mark.parametrize("ks", [(20,), (20, 100)])
@pytest.mark.parametrize("kind", ["one", "several", "comparison"])
def test_a_terminal_of_eighty_columns_shows_every_figure(kind, ks):
    """The default metrics of two models: what a reader sees first."""
    names = [f"{name}@{k}" for name in DEFAULT_METRICS for k in ks]
    one, other = (
        hand_made({name: [0.01 * at + shift] for at, name in enumerate(names)}, model)
        for shift, model in ((0.2, "RDLAE(l2=80, dropout=0.8, xi=0.09)"), (0.1, "EASE(l2=400)"))
    )
    thing = {"one": one, "several": Evaluations([one, other]), "comparison": one.compare(other, resamples=9)}[kind]
    text = rendered(thing, 80)
    assert max(map(len, text.splitlines())) <= 80
    for figure in figures(thing):
        assert figure in text
    for name in DEFAULT_METRICS:
        assert name in text
    assert "RDLAE" in text


def test_a_grid_without_notes_or_title():
    grid = Grid("", ["a", "b"], [["x", "1"]])
    assert grid.markdown() == "| a | b |\n| --- | ---: |\n| x | 1 |\n"
    assert "x" in rendered(grid)
    titled = Grid("T", ["a", "b"], [["x", "1"]], ["one", "two"], frozenset({(0, 1)}))
    assert titled.markdown() == "**T**\n\n| a | b |\n| --- | ---: |\n| x | **1** |\n\none\n\ntwo\n"
    assert "<b>1</b>" in titled.html()
