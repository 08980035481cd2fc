"""Check a model against the contract of every recommender: `check_recommender(model)`.

It is for models of your own as for those of relae, and needs no test framework: what does not hold is an AssertionError
that says what was expected.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from relae.data import Features, Interactions
from relae.errors import DataError, NotFittedError, UnknownItemsWarning
from relae.evaluation import evaluate, hold_out_items, hold_out_users
from relae.linalg import check_layout
from relae.recommender import HistoryRecommender
from relae.registry import KINDS, kind

__all__ = ["check_recommender", "example_data"]

_TRAINED = ("curve_", "epochs_", "best_epoch_", "stopped_")  # what a model that `trains` leaves


def example_data(users: int = 40, items: int = 24, seed: int = 0) -> Interactions:
    """Return small interactions with weights, string ids, titles, times and features; one item has no users."""
    rng = np.random.default_rng(seed)
    chance = np.linspace(0.6, 0.1, items)
    x = (rng.random((users, items)) < chance) * rng.uniform(0.5, 2.0, (users, items))
    x[:, items - 1] = 0.0
    x[np.arange(users), np.arange(users) % (items - 1)] = 1.0  # everybody has something, and every other item somebody
    names = [f"item {column * 5 % items}" for column in range(items)]
    features = Features(sp.csr_array(np.eye(4)[np.arange(items) % 4]))
    titles = [f"The {name}" for name in names]
    times = 1_700_000_000 + rng.integers(0, 60 * 86_400, np.count_nonzero(x))  # seconds, within 60 days
    return Interactions(x, [f"user {row}" for row in range(users)], names, titles, times, features)


def check_recommender(
    model: HistoryRecommender, data: Interactions | None = None, *, rtol: float = 1e-4, atol: float = 1e-5
) -> None:
    """Raise an AssertionError if a model does not keep the contract of `HistoryRecommender`.

    The declared parameters, the facts that the class states, what a fit leaves, lists, filters, batches, empty and
    unknown histories, evaluation, and, if the class is registered, what a folder of it restores. The model is fitted a
    few times; a trained one should have few epochs.

    Parameters
    ----------
    model
        A model with parameters that suit the data. It is not changed: copies of it are fitted.
    data
        What to fit to; `example_data()` if not given.
    rtol, atol
        How far scores may be apart that should be equal.
    """
    data = example_data() if data is None else data
    _check_parameters(model)
    fresh = _copy(model)
    _raises(NotFittedError, lambda: fresh.recommend(data.matrix), "recommend before fit")
    before = fresh.get_params()
    assert fresh.fit(data) is fresh, "fit must return the model itself"
    assert fresh.get_params() == before, "fit must leave the parameters as they are: fitted values end in _"
    suite = _Suite(fresh, data, rtol, atol)
    for check in (
        suite.check_memory,
        suite.check_facts,
        suite.check_lists,
        suite.check_filters,
        suite.check_batches,
        suite.check_histories,
        suite.check_dials,
        suite.check_explanations,
        suite.check_evaluation,
        suite.check_second_fit,
        suite.check_state,
    ):
        check()


def _check_parameters(model: HistoryRecommender) -> None:
    kind_, names = type(model), [parameter.name for parameter in type(model).PARAMETERS]
    assert len(set(names)) == len(names), f"PARAMETERS of {kind_.__name__} names a parameter twice: {names}"
    missing = [name for name in names if name not in vars(model)]
    assert not missing, f"the constructor of {kind_.__name__} must keep {', '.join(missing)} as attributes of this name"
    undeclared = [name for name in vars(model) if name not in names and not name.startswith("_") and name[-1] != "_"]
    assert not undeclared, f"{', '.join(undeclared)} is an attribute of the constructor and not declared in PARAMETERS"
    default = kind_()
    for parameter in kind_.PARAMETERS:
        value = getattr(default, parameter.name)
        message = f"the constructor has {parameter.name}={value!r}, declared {parameter.default!r}"
        assert value == parameter.default, message
        parameter.check(value)
        if parameter.search is not None:
            for end in (parameter.search.low, parameter.search.high):
                parameter.check(int(end) if parameter.whole else end)
    model.check_params()
    assert _copy(model).get_params() == model.get_params(), "the constructor must take what get_params gives"
    _raises(ValueError, lambda: _copy(model).set_params(no_such_parameter=1), "set_params of an unknown name")
    assert repr(model).startswith(f"{kind_.__name__}("), repr(model)


class _Suite:
    """The checks of a fitted model."""

    def __init__(self, model: HistoryRecommender, data: Interactions, rtol: float, atol: float) -> None:
        self.model, self.data, self.rtol, self.atol = model, data, rtol, atol
        self.n_items = data.n_items
        new = data.matrix.copy()
        new.data = np.linspace(0.5, 1.5, len(new.data)).astype(new.data.dtype)
        self.histories = new[:7, :] if model.folds_in else data.matrix[:7]  # others' histories, or their own
        self.scores = model.score(self.histories)

    def same(self, actual: Any, expected: Any, what: str) -> None:
        """Check that scores are the same."""
        assert np.allclose(actual, expected, rtol=self.rtol, atol=self.atol), f"{what} differ"

    def check_memory(self) -> None:
        """Check that a fit remembers items, titles, counts and users."""
        model, data = self.model, self.data
        assert model.items_ == data.items, "items_ must be the ids of the data: call remember(interactions)"
        assert model.n_users_ == data.n_users, f"n_users_ is {model.n_users_}, the data has {data.n_users}"
        counts = np.bincount(data.matrix.indices, minlength=self.n_items)
        assert np.array_equal(model.item_counts_, counts), "item_counts_ must be the users of each item"
        extra = [name for name in vars(model) if name not in model.get_params() and not name.endswith("_")]
        assert not extra, f"what a fit leaves must end in _: {', '.join(extra)}"
        assert all(isinstance(text, str) for text in model.facts().values()), "facts must be texts"

    def check_facts(self) -> None:
        """Check that what the class states is so."""
        model = self.model
        for name in ("folds_in", "trains", "uses_features", "closed_form", "explains", "holds_histories"):
            assert isinstance(getattr(model, name), bool), f"{name} must be True or False"
        dials = {parameter.name for parameter in model.PARAMETERS if parameter.kind == "dial"}
        assert dials <= set(model.dials), f"dials lacks {', '.join(dials - set(model.dials))}"
        missing = [name for name in _TRAINED if model.trains and name not in vars(model)]
        assert not missing, f"a model that trains leaves {', '.join(missing)}"
        limits = model.limits(self.data)
        assert set(limits) <= set(model.get_params()), f"limits names what is no parameter: {sorted(limits)}"
        assert set(model.search_space()) <= set(model.get_params()), "search_space names what is no parameter"
        if not model.folds_in:
            stranger = sp.csr_array(np.full((1, self.n_items), 3.0, np.float32))
            _raises(
                DataError, lambda: model.recommend(stranger), "a history of nobody, for a model that does not fold in"
            )

    def check_lists(self) -> None:
        """Check that lists have the best k unseen items, the best first, and nothing twice."""
        for k in (1, 5, self.n_items + 3):
            ids, scores = self.model.recommend(self.histories, k)
            assert ids.shape == scores.shape == (7, k), f"recommend(…, {k}) returned {ids.shape}"
            for row in range(7):
                self._check_list(row, ids[row], scores[row], self._seen(row), k)
        ids, scores = self.model.recommend(self.histories, self.n_items, exclude_seen=False)
        for row in range(7):
            self._check_list(row, ids[row], scores[row], set(), self.n_items)

    def check_filters(self) -> None:
        """Check that `allow`, `deny` and `seen` are respected."""
        allow, deny = list(range(0, self.n_items, 2)), [0, 4]
        barred = set(range(self.n_items)) - set(allow) | set(deny)
        ids, scores = self.model.recommend(self.histories, 5, allow=allow, deny=deny)
        for row in range(7):
            self._check_list(row, ids[row], scores[row], self._seen(row) | barred, 5)
        beside = sp.csr_array(np.eye(7, self.n_items, k=3, dtype=bool))
        ids, scores = self.model.recommend(self.histories, 5, seen=beside)
        for row in range(7):
            self._check_list(row, ids[row], scores[row], self._seen(row) | {row + 3}, 5)

    def _seen(self, row: int) -> set[int]:
        return set(self.histories[[row]].indices.tolist())

    def _check_list(self, row: int, ids: Any, scores: Any, barred: set[int], k: int) -> None:
        listed = ids[ids >= 0].tolist()
        free = [column for column in range(self.n_items) if column not in barred]
        assert len(set(listed)) == len(listed), f"an item is twice in the list of history {row}"
        assert not set(listed) & barred, f"history {row} got items that are seen or not allowed"
        assert len(listed) == min(k, len(free)), f"history {row} got {len(listed)} of {min(k, len(free))} items"
        assert (scores[len(listed) :] == -np.inf).all(), "places without an item have a score of -inf"
        assert (np.diff(scores[: len(listed)]) <= 0).all(), f"the scores of history {row} do not fall"
        own = self.scores[row]
        self.same(scores[: len(listed)], own[listed], "the scores of recommend and score")
        left = [column for column in free if column not in listed]
        if left and listed:
            margin = self.atol + self.rtol * abs(float(own[listed[-1]]))
            assert own[left].max() <= own[listed[-1]] + margin, f"history {row} did not get the best items"

    def check_batches(self) -> None:
        """Check that one history at a time gives the same as all at once; no histories give nothing."""
        for row in range(7):
            self.same(
                self.model.score(self.histories[[row]])[0], self.scores[row], "scores of one history and of several"
            )
        nobody = self.histories[:0]
        assert self.model.recommend(nobody, 3)[0].shape == (0, 3), "no histories give no lists"
        assert self.model.score(nobody).shape == (0, self.n_items), "no histories give no scores"

    def check_histories(self) -> None:
        """Check raw ids, a single history, unknown items, and empty histories."""
        model, items = self.model, self.data.items.values
        history = {items[column]: float(weight) for column, weight in _pairs(self.histories, 0)}
        ids, scores = model.recommend(history, 4)
        expected, best = model.recommend(self.histories[[0]], 4)
        assert ids.shape == (4,), "one history gives one list"
        assert ids.tolist() == items[expected[0]].tolist(), "raw ids in, raw ids out"
        self.same(scores, best[0], "scores of a history of raw ids")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.recommend({**history, "no such item": 1.0}, 4)
        warned = any(issubclass(each.category, UnknownItemsWarning) for each in caught)
        assert warned, "unknown items must be warned of"
        ids, scores = model.recommend(sp.csr_array((1, self.n_items), dtype=np.float32), 3)
        popular = np.lexsort((np.arange(self.n_items), -model.item_counts_))[:3]
        assert ids[0].tolist() == popular.tolist(), "an empty history gets the items with the most users"
        assert (scores == 0).all(), "with a score of 0"

    def check_dials(self) -> None:
        """Check that a dial that is changed on a fitted model gives what `recommend_path` gives."""
        model = self.model
        if not model.dials:
            _raises(ValueError, lambda: model.recommend_path(self.histories, [0.5]), "recommend_path without dials")
            return
        own = {name: float(getattr(model, name)) for name in model.dials}
        same = {parameter.name: own[parameter.name] for parameter in model.PARAMETERS if parameter.kind == "dial"}
        self.same(model.with_dials(**same).score(self.histories), self.scores, "scores with the same dials")
        for name in model.dials:
            other = model.with_dials(**{name: 0.25})
            assert getattr(other, name) == 0.25, f"with_dials({name}=0.25) has {name}={getattr(other, name)!r}"
            assert float(getattr(model, name)) == own[name], "with_dials must leave the model as it is"
        turned = model.with_dials(**{model.dials[0]: 0.25})
        [(ids, _)] = model.recommend_path(self.histories, [0.25], 5)
        assert np.array_equal(ids, turned.recommend(self.histories, 5)[0]), "recommend_path and with_dials differ"

    def check_explanations(self) -> None:
        """Check that contributions sum to the score."""
        model: Any = self.model
        if not model.explains:
            return
        items = self.data.items.values
        for column in (0, self.n_items // 2):
            why = model.explain(self.histories[[0]], items[column])
            self.same(why.contributions.sum(), self.scores[0, column], "an explanation and its score")
            similar, values = model.similar_items(items[column], 3)
            assert items[column] not in similar, "an item is not similar to itself"
            assert (np.diff(values) <= 0).all(), "similar items come the most similar first"

    def check_evaluation(self) -> None:
        """Check that the model can be evaluated."""
        rng = np.random.default_rng(0)
        split = (hold_out_users if self.model.folds_in else hold_out_items)(self.data, 0.3, rng=rng)
        model = _copy(self.model).fit(split.train)
        evaluation = evaluate(model, split, ["ndcg", "recall"], [5])
        assert all(0 <= evaluation[f"{name}@5"] <= 1 for name in ("ndcg", "recall")), (
            f"evaluate returned {evaluation.means}"
        )

    def check_second_fit(self) -> None:
        """Check that the same fit gives the same scores, and a fit to other data forgets the first."""
        again = _copy(self.model).fit(self.data)
        self.same(again.score(self.histories), self.scores, "the scores of two fits to the same data")
        other = example_data(30, self.n_items, seed=1)
        again.fit(other)
        expected = _copy(self.model).fit(other)
        self.same(again.score(other.matrix[:3]), expected.score(other.matrix[:3]), "the scores after a second fit")
        assert again.n_users_ == other.n_users, "a second fit must remember its own data"

    def check_state(self) -> None:
        """Check that a saved folder is enough to restore the model; models that are not registered cannot be saved."""
        model, name = self.model, type(self.model).__name__.lower()
        if name not in KINDS or kind(name) is not type(model):
            return
        state = model.state("fitted")
        layout = model.layout(state.facts, state.arrays.keys())
        shapes = {key: (np.dtype(array.dtype).str, tuple(array.shape)) for key, array in state.arrays.items()}
        check_layout(layout, shapes, {"users": model.n_users_})
        restored = _copy(model)
        restored.restore(state.facts, {key: np.asarray(array) for key, array in state.arrays.items()})
        self.same(restored.score(self.histories), self.scores, "the scores of a restored model")
        assert restored.facts() == model.facts(), "a restored model has other facts"


def _copy(model: HistoryRecommender) -> HistoryRecommender:
    return type(model)(**model.get_params())


def _pairs(matrix: Any, row: int) -> list[tuple[int, float]]:
    one = matrix[[row]]
    return list(zip(one.indices.tolist(), one.data.tolist(), strict=True))


def _raises(error: type[Exception], call: Callable[[], Any], what: str) -> None:
    try:
        call()
    except error:
        return
    except Exception as other:
        raise AssertionError(f"{what} must raise {error.__name__}, and raised {other!r}") from other
    raise AssertionError(f"{what} must raise {error.__name__}")
