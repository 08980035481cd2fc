"""Every way to give a history, and what comes back."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from relae import DataError, Interactions, UnknownItemsWarning

from ..oracles import csr
from .suite import INTEGERS, ITEMS, NEW, STRINGS, USERS, B, X, fitted, raw

IDS = {"int": INTEGERS, "str": STRINGS}


@pytest.fixture(params=["int", "str"])
def kind(request):
    return request.param


@pytest.fixture
def ids(kind):
    return IDS[kind]


@pytest.fixture(params=["primal", "dual"])
def model(request, kind):
    return fitted("RDLAE", request.param, kind)


def binary(columns):
    history = np.zeros(ITEMS)
    history[columns] = 1
    return history


def test_one_history_or_a_batch(model, ids):
    history = [ids[column] for column in (4, 7, 11)]
    expected = binary([4, 7, 11]) @ B["RDLAE"]
    names, scores = model.recommend(history, 5)
    assert names.shape == scores.shape == (5,)
    assert model.score(history).shape == (ITEMS,)
    assert np.allclose(model.score(history), expected, atol=1e-6)
    batch_names, batch_scores = model.recommend([history, [ids[1]]], 5)
    assert batch_names.shape == batch_scores.shape == (2, 5)
    assert batch_names[0].tolist() == names.tolist()
    assert np.allclose(batch_scores[0], scores)
    assert model.recommend([history], 5)[0].shape == (1, 5)
    assert model.score([history]).shape == (1, ITEMS)


def test_raw_ids_are_python_objects_of_the_models_kind(model, kind, ids):
    names, _ = model.recommend([ids[0]], 4)
    assert {type(name) for name in names} == {{"int": int, "str": str}[kind]}
    assert set(names) <= set(ids)


def test_raw_ids_and_columns_agree(model, ids):
    columns, scores = model.recommend(csr(NEW), 6)
    names, raw_scores = model.recommend([raw(history, ids) for history in NEW], 6)
    assert names.tolist() == [[ids[column] for column in row] for row in columns]
    assert np.allclose(scores, raw_scores)


def test_padding_is_none_for_raw_ids_and_minus_one_for_columns(model, ids):
    names, scores = model.recommend([ids[0], ids[1]], ITEMS + 2)
    assert names[-4:].tolist() == [None] * 4
    assert None not in names[:-4]
    assert (scores[-4:] == -np.inf).all()
    columns, _ = model.recommend(csr(binary([0, 1])[None]), ITEMS + 2)
    assert columns[0, -4:].tolist() == [-1] * 4


@pytest.mark.parametrize("make", [list, tuple, np.array, lambda history: np.array(history, dtype=object)])
def test_sequences(model, ids, make):
    history = [ids[column] for column in (4, 7, 11)]
    expected = model.score(history)
    assert np.array_equal(model.score(make(history)), expected)
    for nested in ([make(history)], (make(history),), [set(history)], [frozenset(history)]):
        assert np.array_equal(model.score(nested)[0], expected)


def test_a_mapping_has_weights(model, ids):
    history = {ids[4]: 2.0, ids[7]: 0.5, ids[9]: 1}
    dense = np.zeros(ITEMS)
    dense[[4, 7, 9]] = 2.0, 0.5, 1.0
    assert np.allclose(model.score(history), dense @ B["RDLAE"], atol=1e-6)
    assert np.allclose(model.score([history, history])[1], dense @ B["RDLAE"], atol=1e-6)
    names, _ = model.recommend(history, ITEMS)
    assert not set(history) & set(names)


def test_an_item_named_twice_is_seen_once(model, ids):
    twice = [ids[3], ids[5], ids[5]]
    assert np.array_equal(model.score(twice), model.score([ids[3], ids[5]]))
    assert np.allclose(model.score([twice, [ids[0]]])[0], model.score([ids[3], ids[5]]))


def test_an_item_named_twice_is_seen_once_beside_a_mapping(model, ids):
    twice = [ids[4], ids[5], ids[5]]
    assert np.allclose(model.score([twice, {ids[0]: 2.0}])[0], model.score(twice))


def test_ids_are_taken_lightly(kind):
    model = fitted("EASE", "primal", kind)
    if kind == "int":
        assert np.array_equal(model.score([str(INTEGERS[2]), float(INTEGERS[3])]), model.score(INTEGERS[2:4]))
    else:
        assert np.array_equal(model.score([STRINGS[2].encode()]), model.score([STRINGS[2]]))


def test_interactions_with_the_models_columns(model, ids):
    data = Interactions(csr(NEW), items=ids)
    names, scores = model.recommend(data, 5)
    columns, expected = model.recommend(csr(NEW), 5)
    assert names.tolist() == [[ids[column] for column in row] for row in columns]
    assert np.array_equal(scores, expected)


def test_interactions_with_other_columns(model, ids):
    order = np.random.default_rng(0).permutation(ITEMS)[:12]
    strangers = {1000: [1, 2], "item 0": ["x", "y"]}[ids[0]]
    dense = np.concatenate([np.ones((len(NEW), 1)), NEW[:, order], np.full((len(NEW), 1), 2.0)], axis=1)
    data = Interactions(dense, items=[strangers[0], *(ids[column] for column in order), strangers[1]])
    with pytest.warns(UnknownItemsWarning, match=rf"^14 of {14 + np.count_nonzero(NEW[:, order])} items"):
        scores = model.score(data)
    moved = np.zeros_like(NEW)
    moved[:, order] = NEW[:, order]
    assert np.allclose(scores, moved @ B["RDLAE"], atol=1e-6)


def test_unknown_ids_are_ignored_and_counted(model, ids):
    strangers = [-5, "nothing", None, 2.5]
    with pytest.warns(UnknownItemsWarning, match="^4 of 6 items in the histories are unknown to the model"):
        found = model.score([ids[4], *strangers, ids[7]])
    assert np.array_equal(found, model.score([ids[4], ids[7]]))
    with pytest.warns(UnknownItemsWarning, match="^2 of 3 items"):
        model.recommend([["nothing"], [ids[0]], {"nothing": 3.0}], 3)


def test_only_strangers_get_the_popular_items(model):
    with pytest.warns(UnknownItemsWarning, match="^1 of 1 items"):
        names, scores = model.recommend(["nothing"], 4)
    assert names.tolist() == model.recommend([], 4)[0].tolist()
    assert scores.tolist() == [0, 0, 0, 0]


def test_an_empty_list_is_one_empty_history(model):
    counts = (X > 0).sum(axis=0)
    names, scores = model.recommend([], 3)
    popular = sorted(range(ITEMS), key=lambda column: (-counts[column], column))[:3]
    assert names.tolist() == [model.items_.values[column] for column in popular]
    assert scores.tolist() == [0, 0, 0]
    assert model.recommend([[]], 3)[0].tolist() == [names.tolist()]
    assert model.recommend({}, 3)[0].tolist() == names.tolist()


def blamed(model, call):
    """The file that a warning of unknown items points at, for a call made in the file caller.py."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(f"model.{call}", "caller.py", "exec"), {"model": model})
    [warning] = caught
    assert warning.category is UnknownItemsWarning
    return warning.filename


def test_the_warning_of_recommend_points_at_the_caller(model):
    assert blamed(model, "recommend(['nothing'], 3)") == "caller.py"


@pytest.mark.parametrize("call", ["score(['nothing'])", "recommend_path(['nothing'], [0.5])", "encode(['nothing'])"])
def test_the_warning_points_at_the_caller(model, call):
    assert blamed(model, call) == "caller.py"


def test_the_warning_of_explain_points_at_the_caller(model, ids):
    assert blamed(model, f"explain(['nothing'], {ids[0]!r})") == "caller.py"


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csc_array, sp.coo_array, lambda h: csr(h).astype(int)])
def test_matrices_of_every_kind(model, make):
    dense = (NEW > 0).astype(np.float32)
    assert np.array_equal(model.recommend(make(dense), 4)[0], model.recommend(csr(dense), 4)[0])


def test_matrices_are_left_alone(model):
    histories = csr(NEW)
    parts = [part.copy() for part in (histories.data, histories.indices, histories.indptr)]
    model.recommend(histories, 4, exclude_seen=False)
    model.score(histories)
    model.recommend_path(histories, [0.1, 0.6], 4)
    for part, before in zip((histories.data, histories.indices, histories.indptr), parts, strict=True):
        assert np.array_equal(part, before)


def test_a_row_of_a_matrix_kept_two_dimensional(model):
    ids, scores = model.recommend(csr(NEW)[[2]], 4)
    assert ids.shape == scores.shape == (1, 4)
    assert ids[0].tolist() == model.recommend(csr(NEW), 4)[0][2].tolist()


def test_a_row_of_a_csr_array_is_a_single_history(model):
    row = csr(NEW)[2]
    assert row.ndim == 1
    ids, scores = model.recommend(row, 4)
    assert ids.shape == scores.shape == (4,)
    assert ids.tolist() == model.recommend(csr(NEW), 4)[0][2].tolist()


# --- allow and deny ----------------------------------------------------------------------------------------------


def test_allow_and_deny_by_raw_ids(model, ids):
    history = [ids[4]]
    full = model.recommend(history, ITEMS - 1)[0].tolist()
    allow, deny = [*full[3:9], "nothing", ids[4]], [full[4], "nobody"]
    names, scores = model.recommend(history, 7, allow=allow, deny=deny)
    assert names.tolist() == [full[3], *full[5:9], None, None]
    assert (scores[-2:] == -np.inf).all()
    names, _ = model.recommend(history, 3, deny=full[:2])
    assert names.tolist() == full[2:5]
    names, _ = model.recommend(history, 2, allow=full[2:], exclude_seen=False)
    assert set(names) <= set(full[2:])


def test_allowing_nothing_recommends_nothing(model, ids):
    assert model.recommend([ids[4]], 2, allow=[])[0].tolist() == [None, None]
    assert model.recommend(csr(NEW), 2, allow=[])[0].tolist() == [[-1, -1]] * len(NEW)
    assert model.recommend([ids[4]], 2, deny=[])[0].tolist() == model.recommend([ids[4]], 2)[0].tolist()


@pytest.mark.parametrize("columns", [[ITEMS], [-1], [0, 99]])
def test_columns_that_do_not_exist(model, columns):
    for name in ("allow", "deny"):
        with pytest.raises(DataError, match=rf"columns from 0 to {ITEMS - 1}, got \[{columns[0]}"):
            model.recommend(csr(NEW), 3, **{name: columns})


@pytest.mark.parametrize("columns", [np.arange(ITEMS) > 5, [1.7], ["a"]], ids=["booleans", "fractions", "strings"])
def test_columns_that_are_no_columns(model, columns):
    with pytest.raises(DataError, match="allow and deny"):
        model.recommend(csr(NEW), 3, allow=columns)


# --- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [ITEMS - 1, ITEMS + 1])
def test_wrong_number_of_columns(model, columns):
    for histories in (np.ones((2, columns)), sp.csr_array(np.ones((2, columns)))):
        with pytest.raises(DataError, match=f"have {columns} columns and the model has {ITEMS} items"):
            model.recommend(histories, 3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_values_that_cannot_be_used(model, ids, value):
    histories = NEW.copy()
    histories[3, 2] = value
    with pytest.raises(DataError, match="row 3, column 2"):
        model.recommend(histories, 3)
    with pytest.raises(DataError, match=r"the weight of item .* finite number of at least 0"):
        model.recommend({ids[0]: 1.0, ids[1]: value}, 3)


def test_weights_that_are_no_numbers(model, ids):
    with pytest.raises(DataError, match="weight"):
        model.recommend({ids[0]: "many"}, 3)


@pytest.mark.parametrize("histories", ["item 3", b"item 3", None, 3, 2.5, object()])
def test_what_is_no_history(model, histories):
    with pytest.raises(DataError, match="histories must be"):
        model.recommend(histories, 3)


def test_ids_and_lists_of_ids_do_not_mix(model, ids):
    with pytest.raises(DataError, match="mix item ids with lists"):
        model.recommend([ids[0], [ids[1]]], 3)


@pytest.mark.parametrize("k", [0, -1, 2.5, 3.0, True, "3", None])
def test_bad_k(model, ids, k):
    for call in (
        lambda: model.recommend(csr(NEW), k),
        lambda: model.recommend([ids[0]], k),
        lambda: model.recommend_path(csr(NEW), [0.5], k),
        lambda: model.similar_items(ids[0], k),
    ):
        with pytest.raises(ValueError, match=f"k must be a whole number of at least 1, got {k!r}"):
            call()


def test_a_numpy_integer_is_a_good_k(model, ids):
    assert model.recommend([ids[0]], np.int32(3))[0].shape == (3,)


def test_unknown_item(model, ids):
    for call in (lambda: model.similar_items("nothing"), lambda: model.explain([ids[0]], "nothing")):
        with pytest.raises(DataError, match=rf"item 'nothing' is unknown to the model: it has {ITEMS} items"):
            call()


def test_explain_takes_one_history(model, ids):
    with pytest.raises(DataError, match="an explanation is of one history, got 2"):
        model.explain([[ids[0]], [ids[1]]], ids[2])
    assert model.explain([[ids[0]]], ids[2]).items == [ids[0]]


def test_similar_items_by_raw_id(model, ids):
    names, scores = model.similar_items(ids[4], ITEMS + 1)
    assert len(names) == ITEMS + 1
    assert set(names[: ITEMS - 1]) == set(ids) - {ids[4]}
    assert names[-2:].tolist() == [None, None]
    assert (scores[-2:] == -np.inf).all()


def test_training_users_need_not_be_named(model):
    ids, _ = model.recommend(csr(X), 3)
    assert ids.shape == (USERS, 3)
    shuffled = np.random.default_rng(1).permutation(USERS)
    assert np.array_equal(model.recommend(csr(X[shuffled]), 3)[0], ids[shuffled])
