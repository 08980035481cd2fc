"""Whom and what a recommendation rests on, beside real refits and brute force."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relae import DataError
from relae.models import DAN, RDLAE, NextItem
from relae.solvers import Local

from .test_living import FORMS, MODELS, NAMES, PEOPLE, USERS, any_rank, copy_of, world  # noqa: F401

HISTORY = ["item 0", "item 2", "item 14", "item 20", "item 31"]


# --- users ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("name", [*MODELS, "norms"])
def test_influence_is_the_change_by_a_refit(name, form):
    data = world(1, weighted=True)
    kind = DAN(5.0, 0.3, 0.2, user_norm=0.4, item_norm=0.3, propensity=0.5) if name == "norms" else MODELS[name]
    model = copy_of(kind).fit(data, solver=FORMS[form])
    found = model.influence(HISTORY, "item 1", data, k=USERS)
    assert found.score == pytest.approx(float(model.score(HISTORY)[1]))
    assert set(found.users) == set(PEOPLE)
    assert (np.diff(np.abs(found.changes)) <= 1e-12).all()
    for user, change in list(zip(found.users, found.changes, strict=True))[::6]:
        refit = copy_of(kind).fit(data.without_users([user]), solver=FORMS[form])
        assert float(refit.score(HISTORY)[1]) - found.score == pytest.approx(change, abs=1e-9)
    few = model.influence(HISTORY, "item 1", data, k=3)
    assert few.users == found.users[:3]
    assert few.complete == (model.dropout_ == 0)
    if form == "dual":
        assert np.allclose(model.influence(HISTORY, "item 1", k=3).changes, few.changes)


def test_what_influence_refuses():
    data = world(1)
    with pytest.raises(DataError, match="give it as data"):
        RDLAE(5.0).fit(data, solver="primal").influence(HISTORY, "item 1")
    with pytest.raises(DataError, match="needs an exact model"):
        RDLAE(5.0).fit(data, solver=Local(9)).influence(HISTORY, "item 1", data)
    with pytest.raises(DataError, match="one history"):
        RDLAE(5.0).fit(data, solver="primal").influence([HISTORY, HISTORY], "item 1", data)


# --- items ---------------------------------------------------------------------------------------------------------


def brute(model, history, item, k):
    """Return the size of the smallest set, by all sets; None if there is none."""
    had = {name: at for at, name in enumerate(history)}
    for size in range(len(history) + 1):
        for gone in combinations(history, size):
            left = [name for name in history if name not in gone]
            if not left:
                continue
            ids, _ = model.recommend(left, k, deny=list(had))
            if item not in ids:
                return size
    return None


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 4),
    st.lists(st.sampled_from(NAMES), min_size=2, max_size=6, unique=True),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.7]),
)
def test_the_smallest_set_by_all_sets(seed, history, k, fading):
    model = RDLAE(5.0, 0.3, 0.4, fading=fading).fit(world(seed), solver=FORMS["primal"])
    ids, _ = model.recommend(history, k)
    explained = model.explain(history, ids[-1], counterfactual=True, k=k)
    found = explained.counterfactual
    assert found.rank == k
    expected = brute(model, history, ids[-1], k)
    if found.exact and found.items is not None and len(found.items) < len(history):
        assert len(found.items) == expected
        left = [name for name in history if name not in found.items]
        assert ids[-1] not in model.recommend(left, k, deny=history)[0]
    elif expected is not None:
        assert found.items is not None
        assert len(found.items) >= expected


def test_sets_that_are_grown(monkeypatch):
    monkeypatch.setattr("relae.models._counterfactual._WORK", 0.0)
    model = RDLAE(5.0, 0.3, 0.4).fit(world(1), solver=FORMS["primal"])
    ids, _ = model.recommend(HISTORY, 3)
    found = model.explain(HISTORY, ids[0], counterfactual=True, k=3).counterfactual
    assert not found.exact
    left = [name for name in HISTORY if name not in found.items]
    assert not left or ids[0] not in model.recommend(left, 3, deny=HISTORY)[0]


def test_an_item_that_is_not_in_the_list_and_one_that_is_in_the_history():
    model = RDLAE(5.0, 0.3, 0.4).fit(world(1), solver=FORMS["primal"])
    ids, _ = model.recommend(HISTORY, 30)
    found = model.explain(HISTORY, ids[20], counterfactual=True, k=3).counterfactual
    assert (found.items, found.rank, found.exact) == ([], 21, True)
    assert model.explain(HISTORY, ids[20]).counterfactual is None
    with pytest.raises(DataError, match="is in the history"):
        model.explain(HISTORY, HISTORY[0], counterfactual=True)


def test_a_model_of_sequences_too():
    model = NextItem(5.0).fit(world(1))
    ids, _ = model.recommend(HISTORY, 3)
    found = model.explain(HISTORY, ids[2], counterfactual=True, k=3).counterfactual
    assert len(found.items) == brute(model, HISTORY, ids[2], 3)
