"""Each parameter is declared once: the constructors, written out, say the same as the declarations."""

import inspect

import numpy as np
import pytest

from relae.algebra import Dial, Fit
from relae.models import DIALS, FAMILY, RDLAE, TIME, TimeParameters
from relae.recommender import Parameter, Range
from relae.registry import KINDS, kind


def constructor(model):
    """The names and defaults of a constructor; where it hands on keywords, those of the next class as well."""
    found = {}
    for each in model.__mro__:
        if "__init__" not in each.__dict__:
            continue
        parameters = list(inspect.signature(each.__dict__["__init__"]).parameters.values())[1:]
        for parameter in parameters:
            if parameter.kind is not parameter.VAR_KEYWORD:
                found.setdefault(parameter.name, parameter.default)
            elif parameter.name == "time":
                assert list(TimeParameters.__annotations__) == [each.name for each in TIME]
                found |= {each.name: each.default for each in TIME}
        if not any(parameter.kind is parameter.VAR_KEYWORD and parameter.name != "time" for parameter in parameters):
            break
    return found


@pytest.mark.parametrize("name", KINDS)
def test_every_constructor_says_what_is_declared(name):
    model = kind(name)
    assert list(constructor(model).items()) == [(each.name, each.default) for each in model.PARAMETERS]
    assert model().get_params() == constructor(model)
    model().check_params()
    assert all(each.help and each.help[0] != " " and not each.help.endswith(".") for each in model.PARAMETERS)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_searched_is_allowed(name):
    model = kind(name)
    for each in model.PARAMETERS:
        if each.search is not None:
            for end in (each.search.low, each.search.high):
                each.check(int(end) if each.whole else end)
    assert set(model.SPACE) == {each.name for each in model.PARAMETERS if each.search is not None}


def test_the_dials_are_those_of_the_algebra():
    assert tuple(each.name for each in DIALS) == RDLAE().dials == Dial._fields
    assert tuple(each.name for each in FAMILY) == Fit._fields + Dial._fields
    assert all(each.kind == "dial" for each in DIALS)
    for name in KINDS:
        own = {each.name for each in kind(name).PARAMETERS if each.kind == "dial"}
        assert own <= set(kind(name)().dials)


@pytest.mark.parametrize(
    ("parameter", "good", "bad", "message"),
    [
        (
            Parameter("a", 1, low=1, whole=True),
            [1, np.int64(3)],
            [0, 1.0, True, None],
            "a must be a whole number of at",
        ),
        (Parameter("a", 1, whole=True), [-1, 5], [1.5, "1"], "a must be a whole number, got"),
        (Parameter("a", 0.5, low=0), [0, 1e9], [-1, np.nan, np.inf, True], "a must be a finite number of at least 0"),
        (Parameter("a", 0.5, low=0, above=True), [1e-9], [0], "a must be a finite number above 0, got 0"),
        (Parameter("a", 0.5, low=0, high=1, below=True), [0, 0.99], [1, -0.1], r"a must lie in \[0, 1\), got"),
        (Parameter("a", 0.5, low=-1, high=2), [-1, 2], [2.1, "x"], r"a must lie in \[-1, 2\], got"),
        (Parameter("a", None, low=0), [None, 1.0], ["none"], "a must be a finite number"),
        (Parameter("a", "x", choices=("x", "y", "z")), ["y"], ["w", 1], "a must be 'x', 'y' or 'z', got"),
        (Parameter("a", False), [True, np.False_], [0, None], "a must be True or False, got"),
    ],
)
def test_values_are_checked_by_the_declaration(parameter, good, bad, message):
    for value in good:
        parameter.check(value)
    for value in bad:
        with pytest.raises(ValueError, match=message):
            parameter.check(value)


def test_the_same_parameter_with_another_default():
    first = Parameter("rank", 8, "vectors", symbol="r", low=1, whole=True)
    other = first.with_default(16, search=Range(2, 32))
    assert (other.default, other.name, other.label, first.default, first.search) == (16, "rank", "r", 8, None)
    assert Parameter("two_words", 0).label == "two_words"
    assert Parameter("two_words", 0).flag == "--two-words"
    with pytest.raises(ValueError, match="rank has no limits on both sides"):
        _ = first.limits
