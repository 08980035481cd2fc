"""A model in a notebook."""

from html.parser import HTMLParser

import pytest

from relae import EASE
from relae.baselines import GFCF

from ..models.suite import ITEMS, MODELS, USERS, X, fitted
from ..oracles import csr


class Rows(HTMLParser):
    """A table as a dictionary from its headings."""

    def __init__(self, page):
        super().__init__()
        self.rows, self.tags, self.title, self._inside, self._name = {}, [], "", None, None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._inside = tag

    def handle_data(self, data):
        if self._inside == "b":
            self.title += data
        elif self._inside == "th":
            self._name = data
        elif self._inside == "td":
            self.rows[self._name] = self.rows.get(self._name, "") + data


@pytest.mark.parametrize("name", MODELS)
def test_an_unfitted_model_shows_its_parameters(name):
    kind, parameters, _ = MODELS[name]
    shown = Rows(kind(**parameters)._repr_html_())
    assert shown.title == name
    assert shown.rows["fitted to"] == "nothing yet"
    assert {key: shown.rows[key] for key in parameters} == {key: repr(value) for key, value in parameters.items()}
    assert Rows(kind()._repr_html_()).rows["l2"] == "None"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_a_fitted_model_shows_what_was_fitted(name, solver):
    model = fitted(name, solver)
    shown = Rows(model._repr_html_()).rows
    assert shown["fitted to"] == f"{USERS} users × {ITEMS} items"
    assert shown["l2 used"] == f"{model.l2_:g}"
    assert solver in shown["solver"].split(", ")[0]
    low, high = model.xi_interval_
    assert shown["ξ that matter"] == f"{low:.3f} to {high:.3f}"


def test_the_baseline_too():
    assert Rows(GFCF(0.2)._repr_html_()).rows == {"alpha": "0.2", "rank": "256", "fitted to": "nothing yet"}
    shown = Rows(GFCF(0.2, 4).fit(csr(X))._repr_html_())
    assert shown.title == "GFCF"
    assert shown.rows["fitted to"] == f"{USERS} users × {ITEMS} items"


def test_parameters_cannot_break_out_of_the_page():
    nasty = "<script>alert('1')</script>"
    shown = Rows(EASE(l2=nasty)._repr_html_())
    assert "script" not in shown.tags
    assert shown.rows["l2"] == repr(nasty)
    odd = type("<img src=x>", (EASE,), {})
    assert "img" not in Rows(odd()._repr_html_()).tags
