"""Ids: positions and take are inverse, types are taken lightly, nothing is pickled."""

import uuid

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relae.data import Ids
from relae.errors import DataError

INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
VALUES = st.one_of(st.lists(INT64, unique=True), st.lists(TEXT, unique=True, min_size=1))


@given(VALUES, st.randoms())
def test_positions_and_take_are_inverse_in_any_order(values, random):
    random.shuffle(values)
    ids = Ids(values)
    assert ids.positions(values).tolist() == list(range(len(values)))
    assert ids.take(np.arange(len(values))).tolist() == values


@given(VALUES)
def test_sorted_and_shuffled_ids_find_the_same(values):
    ordered, backwards = Ids(sorted(values)), Ids(sorted(values, reverse=True))
    wanted = [*values, "no such id", None]
    found, mirrored = ordered.positions(wanted), backwards.positions(wanted)
    assert (found[:-2] + mirrored[:-2] == len(values) - 1).all()
    assert found[-1] == mirrored[-1] == -1


@given(VALUES)
def test_the_type_of_a_look_up_does_not_matter(values):
    ids = Ids(values)
    assert ids.positions([str(value) for value in values]).tolist() == list(range(len(values)))
    as_text = Ids([str(value) for value in values] or np.empty(0, dtype=object))
    assert as_text.positions(values).tolist() == list(range(len(values)))


@given(VALUES)
def test_encoding_is_a_plain_array_that_decodes_to_the_same(values):
    ids = Ids(values)
    plain = ids.encode()
    assert plain.dtype in (np.int64, np.uint8)
    assert Ids.decode(plain, len(ids)) == ids


@given(st.lists(st.floats(allow_nan=True), max_size=20))
def test_float_arrays_and_lists_agree(numbers):
    ids = Ids(range(-5, 6))
    assert ids.positions(np.array(numbers, dtype=float)).tolist() == ids.positions(numbers).tolist()


@pytest.mark.parametrize("size", [3, 5_000])
def test_few_and_many_look_ups_agree(size):
    values = [f"item {i:05}" for i in range(0, 10_000, 2)]
    wanted = [f"item {i:05}" for i in range(size)]
    expected = [i // 2 if i % 2 == 0 else -1 for i in range(size)]
    assert Ids(values).positions(wanted).tolist() == expected


def test_what_cannot_be_an_id_is_unknown():
    strange = [
        "abc",
        None,
        2.5,
        float("nan"),
        True,
        np.True_,
        "0260",
        "+260",
        " 260",
        "2_60",
        2**70,
        b"\xff",
        object(),
        [1],
    ]
    assert (Ids([1, 2, 260]).positions(strange) == -1).all()
    assert (Ids(["1", "2", "260"]).positions([None, 2.5, True, b"\xff", object(), 2**70, "0260"]) == -1).all()


def test_what_stands_for_an_id_is_found():
    assert Ids([1, 260]).positions(["260", 260.0, np.int8(1), np.float32(260), b"260"]).tolist() == [
        1,
        1,
        0,
        1,
        1,
    ]
    assert Ids(["1", "260"]).positions([260, 260.0, np.uint16(1), b"260", np.str_("1")]).tolist() == [
        1,
        1,
        0,
        1,
        0,
    ]
    name = uuid.uuid4()
    assert Ids([name]).positions([name, str(name)]).tolist() == [0, 0]


def test_arrays_of_every_kind_are_looked_up():
    ids = Ids([10, 20, 30])
    for wanted in (
        [20, 99],
        (20, 99),
        np.array([20, 99], dtype=np.uint64),
        np.array(["20", "99"]),
        pl.Series([20, 99]),
    ):
        assert ids.positions(wanted).tolist() == [1, -1]
    assert ids.positions(np.array([2**64 - 1, 10], dtype=np.uint64)).tolist() == [-1, 0]
    assert ids.positions([]).tolist() == []
    assert ids.positions({10: "a", 30: "b"}.keys()).tolist() == [0, 2]
    assert Ids([]).positions([1, "a"]).tolist() == [-1, -1]


def test_shapes_are_kept():
    ids = Ids(["a", "b"])
    at = np.array([[0, -1], [1, 0]])
    assert ids.take(at).tolist() == [["a", None], ["b", "a"]]
    assert (ids.positions(ids.take(at)) == at).all()
    assert ids.take(1).item() == "b"
    assert ids.take(np.empty((0, 3))).shape == (0, 3)


def test_take_gives_python_values():
    assert type(Ids([5, 7]).take([1])[0]) is int
    assert type(Ids(np.array(["a", "b"])).take([1])[0]) is str


@pytest.mark.parametrize("position", [-2, 2])
def test_take_refuses_positions_that_do_not_exist(position):
    with pytest.raises(IndexError, match=r"\[-1, 2\)"):
        Ids([1, 2]).take([0, position])


def test_take_refuses_fractions():
    with pytest.raises(TypeError, match="float64"):
        Ids([1, 2]).take([0.5])


def test_a_single_string_is_not_a_sequence_of_ids():
    with pytest.raises(TypeError, match="put it in a list"):
        Ids(["2", "6", "0"]).positions("260")


def test_range_is_its_own_position():
    ids = Ids.range(4)
    assert ids.kind == "int"
    assert len(ids) == 4
    assert ids.positions([3, 0, 4, -1, "2"]).tolist() == [3, 0, -1, -1, 2]


def test_kinds():
    assert Ids([1]).kind == "int"
    assert Ids(np.array([1.0, 2.0])).kind == "int"
    assert Ids(["1"]).kind == "str"
    assert Ids([2**64]).kind == "str"
    assert Ids([b"x"]).values.tolist() == ["x"]
    assert Ids(str(i) for i in range(3)).values.tolist() == ["0", "1", "2"]


def test_the_values_are_read_only_and_the_callers_array_is_not():
    mine = np.array([1, 2, 3])
    ids = Ids(mine)
    mine[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        ids.values[0] = 5


def test_equality_and_repr():
    assert Ids([1, 2]) == Ids(np.array([1, 2]))
    assert Ids([1, 2]) != Ids(["1", "2"])
    assert Ids([1, 2]) != [1, 2]
    assert repr(Ids([1, 2, 3, 4])) == "Ids(4 int: 1, 2, 3, …)"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([3, 1, 3], "3 occurs more than once"),
        (["a", "b", "a"], "'a' occurs more than once"),
        ([1, 1], "1 occurs more than once"),
        ([1, "a"], r"all integers or all strings, got 1 and 'a' \(position 1\)"),
        (["a", None], "got None at position 1"),
        ([1, 2.5], "got 2.5 at position 1"),
        (np.array([1.0, 2.5]), "2.5 at position 1"),
        ([True], "got True at position 0"),
        (np.eye(2), r"one dimension, got an array of shape \(2, 2\)"),
        (["a\0b"], "NUL"),
        (["\ud800"], "valid text"),
    ],
)
def test_values_that_cannot_be_ids_are_refused(values, message):
    with pytest.raises(DataError, match=message):
        Ids(values)


@pytest.mark.parametrize(
    ("ids", "value", "alike"),
    [
        (["0155061224", "155061224X", "00a"], "155061224", ["0155061224"]),
        (["0155061224", "155061224x"], " 155061224X ", ["155061224x"]),
        (["007", "7", "0007"], "7.0", ["007", "7", "0007"]),
        (["7.0", "8"], 7, ["7.0"]),
        (["a", "b"], "c", []),
        ([7, 0, 12], "007", [7]),
        ([7, 0, 12], "12.00", [12]),
        ([7, 0, 12], "000", [0]),
        ([7, 0, 12], "1.2", []),
        ([7, 0, 12], "", []),
    ],
)
def test_ids_that_are_alike(ids, value, alike):
    assert Ids(ids).alike(value) == alike
