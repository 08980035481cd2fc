"""Where to look next: on surfaces whose best point is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from relae.tuning import Auto, Constraint, GridSearch, Point, Trial, linear_space, paper_grid

NAME = "ndcg@100"


def trial(setting, metrics_of):
    l2, dropout = setting["l2"], setting["dropout"]
    points = tuple(Point({**setting, "xi": xi}, metrics_of(l2, dropout, xi)) for xi in (0.0, 0.25, 0.5, 1.0))
    return Trial(setting, points, 1.0, 0.1)


def auto(scale, *given, **options):
    return Auto(linear_space(scale), *given, **options)


def fitted(diagonal):
    """What a search asks of a fitted model."""
    return SimpleNamespace(free_diagonal_=np.asarray(diagonal))


def run(search, metrics_of):
    trials = []
    while (setting := search.next(trials)) is not None:
        trials.append(trial(setting, metrics_of))
    return trials


def hill(l2, dropout, xi, *, best_octave, best_dropout, best_xi=0.25, width=3.0):
    """A smooth hill of height 0.4 over log l2 and dropout, flat as real ones are."""
    off = ((np.log2(l2 / 100) - best_octave) / width) ** 2 + ((dropout - best_dropout) / 0.5) ** 2
    return {NAME: 0.4 / (1 + 0.3 * off) * (1 - 0.05 * abs(xi - best_xi))}


@pytest.mark.parametrize("best_octave", [-4.0, -1.3, 0.0, 2.2, 5.5])
@pytest.mark.parametrize("best_dropout", [0.0, 0.33, 0.6])
def test_sixteen_inversions_find_the_top_of_any_hill(best_octave, best_dropout):
    def surface(l2, dropout, xi):
        return hill(l2, dropout, xi, best_octave=best_octave, best_dropout=best_dropout)

    trials = run(auto(100.0, NAME), surface)
    assert len(trials) == 16
    assert max(point[NAME] for found in trials for point in found.points) >= 0.998 * 0.4


@pytest.mark.parametrize(
    ("best_octave", "best_dropout", "width"), [(6.5, 0.1, 1.5), (5.5, 0.85, 3.0), (-5.0, 0.85, 2.0)]
)
def test_hills_in_the_corners(best_octave, best_dropout, width):
    def surface(l2, dropout, xi):
        return hill(l2, dropout, xi, best_octave=best_octave, best_dropout=best_dropout, width=width)

    trials = run(auto(100.0, NAME), surface)
    assert max(point[NAME] for found in trials for point in found.points) >= 0.995 * 0.4


def test_noise_of_the_size_of_real_ones_does_no_harm():
    rng = np.random.default_rng(0)
    noise = {}

    def surface(l2, dropout, xi):
        clean = hill(l2, dropout, xi, best_octave=1.0, best_dropout=0.3)[NAME]
        return {NAME: clean + noise.setdefault((l2, dropout, xi), 2e-4 * rng.standard_normal())}

    trials = run(auto(100.0, NAME), surface)
    assert max(point[NAME] for found in trials for point in found.points) >= 0.997 * 0.4


@pytest.mark.parametrize("budget", [1, 2, 3, 6, 16, 40])
def test_the_budget_is_kept_and_nothing_is_tried_twice(budget):
    trials = run(auto(37.0, NAME, budget), lambda *place: hill(*place, best_octave=0.0, best_dropout=0.2))
    settings = [(found.parameters["l2"], found.parameters["dropout"]) for found in trials]
    assert len(settings) == len(set(settings)) == budget
    assert all(l2 > 0 and 0 <= dropout < 1 for l2, dropout in settings)


def test_every_model_of_the_family_is_looked_at():
    trials = run(auto(100.0, NAME), lambda *place: hill(*place, best_octave=0.0, best_dropout=0.4))
    assert sum(found.parameters["dropout"] == 0 for found in trials) >= 3
    assert sum(found.parameters["dropout"] > 0 for found in trials) >= 5


def test_the_same_trials_lead_to_the_same_next_one():
    surface = lambda *place: hill(*place, best_octave=1.0, best_dropout=0.2)  # noqa: E731
    one, other = run(auto(100.0, NAME), surface), run(auto(100.0, NAME), surface)
    assert one == other
    for count in range(16):
        assert auto(100.0, NAME).next(one[:count]) == one[count].parameters


def test_a_constraint_is_searched_for():
    """The objective grows where the kept metric falls: the best allowed point lies on the edge."""

    def surface(l2, dropout, xi):
        kept = hill(l2, dropout, xi, best_octave=2.0, best_dropout=0.3)[NAME]
        return {NAME: kept, "tail_recall@100": 0.5 - 0.05 * np.log2(l2 / 100)}

    constraint = Constraint(NAME, 0.02)
    trials = run(auto(100.0, "tail_recall@100", constraint=constraint), surface)
    points = [point for found in trials for point in found.points]
    best = max(point[NAME] for point in points)
    assert best >= 0.995 * 0.4
    allowed = max(point["tail_recall@100"] for point in points if constraint.allows(point, best))
    # off² ≤ 0.02/0.98/0.3 lets l2 come down to an octave of 2 − 3·√0.068 = 1.2, where the objective is 0.44
    assert allowed >= 0.97 * 0.44


def test_a_surface_that_is_flat_or_missing_is_no_trouble():
    assert len(run(auto(1.0, NAME), lambda *_: {NAME: 0.1})) == 16
    nothing = run(auto(1.0, "tail_ndcg@100", 6), lambda *_: {"tail_ndcg@100": float("nan")})
    assert len(nothing) == 6


def test_a_grid_has_every_pair_once():
    tenths = [round(0.1 * step, 1) for step in range(11)]
    search = GridSearch({"l2": [10, 100], "dropout": [0.0, 0.5]}, {"xi": tenths})
    trials = run(search, lambda *place: hill(*place, best_octave=0, best_dropout=0))
    pairs = [(found.parameters["l2"], found.parameters["dropout"]) for found in trials]
    assert pairs == [(10, 0), (100, 0), (10, 0.5), (100, 0.5)]
    assert search.size == 4
    assert search.dials(fitted([0.1, 0.2]))[:3] == [{"xi": 0.0}, {"xi": 0.1}, {"xi": 0.2}]
    assert paper_grid([10, 100]).dials(None) == search.dials(None)


def test_a_grid_of_norms():
    fits = {"l2": [10], "dropout": [0.5], "user_norm": [0.0, 0.4]}
    search = GridSearch(fits, {"xi": [0.0, 1.0], "item_norm": [0.0, 0.2]})
    trials = run(search, lambda *_: {NAME: 0.1})
    assert [tuple(found.parameters.values()) for found in trials] == [(10, 0.5, 0.0), (10, 0.5, 0.4)]
    assert search.size == 2
    dials = [(0.0, 0.0), (1.0, 0.0), (0.0, 0.2), (1.0, 0.2)]
    assert search.dials(fitted([0.1])) == [{"xi": xi, "item_norm": norm} for xi, norm in dials]


def test_a_grid_scales_l2_with_the_norm():
    search = paper_grid([10, 123.456], {0.0: 1.0, 0.4: 0.12345})
    trials = [found for found in run(search, lambda *_: {NAME: 0.1}) if found.parameters["dropout"] == 0.5]
    pairs = [(found.parameters["l2"], found.parameters["user_norm"]) for found in trials]
    assert pairs == [(10, 0.0), (123.456, 0.0), (1.23, 0.4), (15.2, 0.4)]
    assert search.size == 4 * 10


@pytest.mark.parametrize(
    ("best_octave", "best_dropout", "best_norm"), [(0.0, 0.6, 0.3), (-1.0, 0.3, 0.9), (2.0, 0.5, 0)]
)
def test_norms_of_users_are_found(best_octave, best_dropout, best_norm):
    shrinking = {round(0.1 * step, 1): 2.0 ** (-0.5 * step) for step in range(11)}

    def surface(setting):
        l2, dropout, norm = setting["l2"], setting["dropout"], setting["user_norm"]
        high = hill(l2 / shrinking[norm], dropout, 0.25, best_octave=best_octave, best_dropout=best_dropout)[NAME]
        return {NAME: high / (1 + 0.2 * ((norm - best_norm) / 0.7) ** 2)}

    search = Auto(linear_space(100.0, shrinking, (0.0, 0.2)), NAME, 16)
    trials = []
    while (setting := search.next(trials)) is not None:
        points = (Point({**setting, "xi": 0.25}, surface(setting)),)
        trials.append(Trial(setting, points, 1.0, 0.1))
    assert len({tuple(found.parameters.values()) for found in trials}) == 16
    assert max(found.points[0][NAME] for found in trials) >= 0.99 * 0.4
    dials = search.dials(fitted(np.linspace(0.1, 0.6, 50)))
    assert {dial["item_norm"] for dial in dials} == {0.0, 0.2}


def test_auto_looks_at_xi_where_it_matters():
    diagonal = np.array([0.05, 0.1, 0.12, 0.2, 0.3, 0.31, 0.5])
    dials = auto(1.0, NAME).dials(fitted(diagonal))
    assert {tuple(dial) for dial in dials} == {("xi",)}
    xis = [dial["xi"] for dial in dials]
    assert xis == sorted(set(xis))
    assert (xis[0], xis[-1]) == (0.0, 1.0)
    inside = [xi for xi in xis if 0.05 <= xi <= 0.5]
    assert len(inside) == len(xis) - 2
    assert max(np.diff([0.05, *inside, 0.5])) < 0.12


@pytest.mark.parametrize("budget", [0, -1, 2.5, True])
def test_a_bad_budget(budget):
    with pytest.raises(ValueError, match="budget"):
        auto(1.0, NAME, budget)


def test_a_trial_that_failed_counts_and_is_not_tried_again():
    trials = run(auto(100.0, NAME, 8), lambda *place: hill(*place, best_octave=0.0, best_dropout=0.2))[:6]
    failed = Trial(trials[5].parameters, (), 1.0, 0.0, failure="too large")
    following = auto(100.0, NAME, 8).next([*trials[:5], failed])
    assert following not in [found.parameters for found in trials]
    assert auto(100.0, NAME, 6).next([*trials[:5], failed]) is None
