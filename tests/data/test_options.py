"""The options of a table: declared once, and the same wherever they are shown."""

import typing

import pytest

from relae.data import Interactions, TableKeywords, TableOptions, options_of

NAMES = list(options_of(TableOptions))


def test_the_types_for_checkers_are_those_of_the_declaration():
    assert typing.get_type_hints(TableKeywords) == typing.get_type_hints(TableOptions)


def test_keywords_are_those_that_were_given():
    options = TableOptions.checked(user="who", rating="stars", min_rating=4, k_core=2)
    assert TableOptions.checked(**options.keywords()) == options
    assert list(options.keywords()) == NAMES
    assert set(options.keywords(by_row=True)) == {"user", "item", "rating", "min_rating", "weight", "weighting"}


def test_every_option_is_explained():
    for name, option in options_of(TableOptions).items():
        assert option.help.endswith("."), name
        assert name in TableOptions.__doc__


def test_a_misspelled_option_names_the_nearest(tmp_path):
    with pytest.raises(TypeError, match="no option 'min_ratings': did you mean 'min_rating'"):
        Interactions.read(tmp_path, min_ratings=4)
    with pytest.raises(TypeError, match="no option 'xyz': the options are user, item, rating"):
        Interactions.from_frame({}, xyz=1)
