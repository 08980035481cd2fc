"""The habits of a scikit-learn estimator, and errors of a fit."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from relae import EASE, RDLAE, RLAE, DataError, Interactions, NotFittedError
from relae.models import TIME
from relae.solvers import Auto, Primal

from ..oracles import csr
from .suite import ITEMS, MODELS, NEW, STRINGS, X, fitted

FREE = {
    "LAE": ["l2"],
    "EASE": ["l2"],
    "RLAE": ["l2", "xi"],
    "DLAE": ["l2", "dropout"],
    "EDLAE": ["l2", "dropout"],
    "RDLAE": ["l2", "dropout", "xi"],
}


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


def test_each_class_has_its_own_parameters(name):
    kind, parameters, _ = MODELS[name]
    model = kind(**parameters)
    assert list(model.get_params()) == [*FREE[name], *(each.name for each in TIME)]
    assert model.get_params() == parameters | {each.name: each.default for each in TIME}
    assert model.get_params(deep=False) == model.get_params()
    for other in {"l2", "dropout", "xi", "solver", "dtype", "neighbours", "nearest_by"} - set(FREE[name]):
        with pytest.raises(TypeError, match=other):
            kind(**{other: 0.5})


def test_the_constructor_takes_anything_and_keeps_it(name):
    kind = MODELS[name][0]
    strange = {parameter: object() for parameter in [*FREE[name], *(each.name for each in TIME)]}
    model = kind(**strange)
    assert all(getattr(model, parameter) is value for parameter, value in strange.items())
    assert set(vars(model)) == set(strange)


def test_parameters_in_order(name):
    kind = MODELS[name][0]
    model = kind(*range(len(FREE[name])))
    assert [getattr(model, parameter) for parameter in FREE[name]] == list(range(len(FREE[name])))


def test_set_params(name):
    model = MODELS[name][0]()
    assert model.set_params(l2=7) is model
    assert model.l2 == 7
    with pytest.raises(ValueError, match=rf"{name} has no parameter 'lambda_': its parameters are l2"):
        model.set_params(lambda_=3)


def test_clone(name):
    model = fitted(name)
    other = clone(model)
    assert type(other) is type(model)
    assert other.get_params() == model.get_params()
    assert not hasattr(other, "inverse_")
    with pytest.raises(NotFittedError):
        other.recommend(csr(X))
    assert np.array_equal(other.fit(csr(X), solver=Primal(dtype="float64")).weights(), model.weights())


def test_repr_shows_what_is_not_the_default(name):
    kind, parameters, _ = MODELS[name]
    assert repr(kind()) == f"{name}()"
    model = kind(**parameters)
    shown = ", ".join(f"{parameter}={value!r}" for parameter, value in parameters.items())
    assert repr(model) == f"{name}({shown})"
    assert eval(repr(model), {name: kind}).get_params() == model.get_params()


def test_pickle(name):
    model = fitted(name, "dual", "str")
    other = pickle.loads(pickle.dumps(model))
    assert np.array_equal(other.recommend([STRINGS[4]], 5)[0], model.recommend([STRINGS[4]], 5)[0])


def test_fitted_is_an_attribute_error_so_that_hasattr_works():
    assert not hasattr(EASE(), "xi_interval_")
    assert isinstance(NotFittedError("x"), AttributeError)


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_several_threads_share_a_model(solver):
    model = fitted("RDLAE", solver)
    expected = model.recommend(csr(X), 5)[0]
    with ThreadPoolExecutor(4) as pool:
        for ids, _ in pool.map(lambda _: model.recommend(csr(X), 5), range(12)):
            assert np.array_equal(ids, expected)


# --- errors of a fit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (EASE(-1), "l2 must be a finite number of at least 0, got -1"),
        (EASE(0), "20 of 20 items have no penalty"),
        (EASE(np.nan), "l2 must be"),
        (RDLAE(1, 1.0), r"dropout must lie in \[0, 1\), got 1.0"),
        (RDLAE(0, 0.5), "1 of 20 items have no penalty with l2=0, dropout=0.5"),
        (RLAE(1, 1.5), r"xi must lie in \[0, 1\], got 1.5"),
        (RLAE(1, -0.5), r"xi must lie in \[0, 1\], got -0.5"),
    ],
    ids=repr,
)
def test_bad_parameters(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(csr(X))


def test_bad_solver():
    with pytest.raises(ValueError, match="solver must be 'auto', 'exact', 'primal', 'dual' or 'local', got 'cg'"):
        EASE(1).fit(csr(X), solver="cg")


@pytest.mark.parametrize("dtype", ["float16", "int64", "double precision", None])
def test_bad_dtype(dtype):
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64'"):
        EASE(1.0).fit(csr(X), solver=Auto(dtype=dtype))


def test_bad_xi_of_a_fitted_model():
    model = fitted("RLAE")
    for call in (
        lambda: model.with_xi(1.1),
        lambda: model.recommend_path(csr(X), [0.5, -0.1]),
        lambda: model.column_weights(np.nan),
    ):
        with pytest.raises(ValueError, match="xi must lie in"):
            call()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((3, 4)), "nothing to fit: 3 users × 4 items, no interactions"),
        (np.zeros((0, 4)), "nothing to fit"),
        (np.zeros((3, 0)), "nothing to fit"),
        (np.array([[1.0, np.nan]]), "nan in row 0, column 1"),
        (np.array([[1.0, -2.0]]), "-2.0 in row 0, column 1"),
        (sp.csr_array(np.array([[np.inf]])), "inf in row 0, column 0"),
        ([[1, 0], [0, 1]], "a list is not a matrix"),
        (np.ones(3), "two dimensions"),
        ("ratings.csv", "a str is not a matrix"),
    ],
    ids=str,
)
def test_bad_data(data, message):
    with pytest.raises(DataError, match=message):
        EASE(1.0).fit(data)


def test_a_fit_that_fails_leaves_no_half_fitted_model():
    model = EASE(1.0).fit(csr(X), solver=Auto(dtype="float64"))
    with pytest.raises(DataError):
        model.fit(np.zeros((2, 2)))
    try:
        found = model.score(csr(NEW))
    except NotFittedError:
        return
    assert np.allclose(found, EASE(1.0).fit(csr(X), solver=Auto(dtype="float64")).score(csr(NEW)))


def test_titles_and_ids_come_from_the_data():
    titles = [f"The {j}" for j in range(ITEMS)]
    model = EASE(1.0).fit(Interactions(csr(X), items=STRINGS, titles=titles))
    assert model.titles_.tolist() == titles
    assert model.items_.values.tolist() == STRINGS
