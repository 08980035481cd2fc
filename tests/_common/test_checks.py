import numpy as np
import pytest

from relae._common.checks import check_between, check_finite, check_share, check_whole


@pytest.mark.parametrize("value", [1, np.int32(3), 9])
def test_whole_numbers(value):
    checked = check_whole("k", value, 1, 10)
    assert (type(checked), checked) == (int, value)


@pytest.mark.parametrize("value", [True, 1.0, "3", None, 0, 10, np.float64(2)])
def test_what_is_no_whole_number_within_bounds(value):
    with pytest.raises(ValueError, match=r"k must be a whole number of at least 1 and below 10, got "):
        check_whole("k", value, 1, 10)


@pytest.mark.parametrize(
    ("check", "values", "message"),
    [
        (lambda value: check_finite("l2", value), [-1, np.nan, np.inf, True, "1", None], "of at least 0"),
        (lambda value: check_finite("l2", value, above_zero=True), [0, -1.0, np.inf, False], "above 0"),
        (lambda value: check_between("xi", value, 0, 1), [-0.1, 1.1, np.nan, True, "0"], r"lie in \[0, 1\]"),
        (lambda value: check_share("dropout", value), [1, -0.1, np.nan, False, None], r"lie in \[0, 1\)"),
    ],
)
def test_numbers_that_are_refused(check, values, message):
    for value in values:
        with pytest.raises(ValueError, match=message):
            check(value)


@pytest.mark.parametrize("value", [0, 0.5, np.float32(0.25), np.int64(0)])
def test_numbers_that_pass(value):
    for checked in (check_finite("a", value), check_between("a", value, 0, 1), check_share("a", value)):
        assert (type(checked), checked) == (float, value)
