"""The text format of LightGCN."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relae.data import Ids, Interactions, Lists, read_lists, write_lists
from relae.errors import DataError

from ..real_data import real
from .tables import check_form

LISTS = st.dictionaries(st.integers(0, 30), st.lists(st.integers(0, 120), max_size=8), min_size=1, max_size=10)


@pytest.fixture
def file(tmp_path):
    def write(content, name="train.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@given(LISTS, st.sampled_from(["\n", "\r\n", " \n", "\n\n"]), st.booleans())
def test_lines_become_rows(tmp_path_factory, lists, end, ended):
    text = end.join(" ".join(map(str, [user, *items])) for user, items in lists.items()) + (end if ended else "")
    path = tmp_path_factory.mktemp("lists") / "train.txt"
    path.write_bytes(text.encode())
    data = Interactions.read_lists(path)
    check_form(data)
    assert data.n_users == max(lists) + 1
    assert data.n_items == max((item for items in lists.values() for item in items), default=-1) + 1
    assert (data.matrix.data == 1).all()
    for user in range(data.n_users):
        assert data.history(user) == sorted(set(lists.get(user, [])))


def test_ids_are_the_numbers(file):
    data = Interactions.read_lists(file("0 3\n2 1\n"))
    assert data.users == Ids.range(3)
    assert data.items == Ids.range(4)


def test_files_of_one_split_share_their_columns(file):
    path = file("0 1 2\n1 0\n")
    wide = Interactions.read_lists(path, n_users=5, n_items=10)
    assert wide.matrix.shape == (5, 10)
    assert wide.n_interactions == 3


def test_a_user_on_two_lines_has_the_items_of_both(file):
    data = Interactions.read_lists(file("1 4 2\n0 1\n1 2 3\n"))
    assert data.history(1) == [2, 3, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1\n1 2 x 3\n", r"train\.txt, line 2 is not made of non-negative integers: '1 2 x 3'"),
        ("0 1\n\n1 -2\n", "line 3 is not made of non-negative integers: '1 -2'"),
        ("0 1.5\n", "line 1 is not"),
        ("0,1\n", "line 1 is not"),
        (b"0 1\n\xff\xfe\n", "line 2 is not"),
        ("0 1\n1 2147483647\n", "line 2 has a number above 2,147,483,646"),
        ("0 99999999999999999999999\n", "line 1 has a number above"),
        ("", "is empty"),
        ("\n \n", "is empty"),
    ],
)
def test_broken_files_name_the_line(file, text, message):
    with pytest.raises(DataError, match=message):
        Interactions.read_lists(file(text))


def test_long_lines_are_cut_in_the_message(file):
    with pytest.raises(DataError, match="line 1") as caught:
        Interactions.read_lists(file("1 " * 5_000 + "x\n"))
    assert len(str(caught.value)) < 400


def test_sizes_that_do_not_suffice(file):
    path = file("0 7\n3 1\n")
    with pytest.raises(DataError, match="has the item 7, so n_items must be at least 8, got 7"):
        Interactions.read_lists(path, n_items=7)
    with pytest.raises(DataError, match="has the user 3, so n_users must be at least 4, got 2"):
        Interactions.read_lists(path, n_users=2)


def test_missing_files(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        Interactions.read_lists(tmp_path / "train.txt")
    with pytest.raises(DataError, match="is a folder"):
        Interactions.read_lists(tmp_path)


def test_a_user_without_items_counts(file):
    data = Interactions.read_lists(file("0 1\n5\n"))
    assert data.n_users == 6
    assert np.diff(data.matrix.indptr).tolist() == [1, 0, 0, 0, 0, 0]


def test_pairs_come_in_the_order_of_the_file(file):
    lists = read_lists(file("4 9 2\n1\n0 3\n"))
    assert lists.users.tolist() == [4, 4, 0]
    assert lists.items.tolist() == [9, 2, 3]
    assert lists.owners.tolist() == [4, 1, 0]


@given(LISTS)
def test_what_is_written_is_read_again(tmp_path_factory, lists):
    text = "".join(" ".join(map(str, [user, *items])) + "\n" for user, items in lists.items())
    path = tmp_path_factory.mktemp("lists") / "train.txt"
    path.write_text(text)
    write_lists(path, read_lists(path))
    assert path.read_text() == text
    assert [other.name for other in path.parent.iterdir()] == ["train.txt"]


@pytest.mark.parametrize(
    "name",
    ["gowalla/train", "gowalla/test"]
    + [f"gowalla-strong/{part}" for part in ("train", "valid_in", "valid", "test_in", "test", "head_items")],
)
def test_published_files_survive_byte_by_byte(tmp_path, name):
    published = real(f"{name}.txt")
    write_lists(tmp_path / "again.txt", read_lists(published))
    assert (tmp_path / "again.txt").read_bytes() == published.read_bytes()


def test_lines_follow_the_owners_and_pairs_their_order(tmp_path):
    pairs = np.array([[2, 9], [7, 1], [2, 4], [7, 0]])
    write_lists(tmp_path / "a.txt", Lists(pairs[:, 0], pairs[:, 1], np.array([7, 5, 2, 7])))
    assert (tmp_path / "a.txt").read_bytes() == b"7 1 0\n5\n2 9 4\n"


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("0 1\n")
    for users, owners in ([3], [1]), ([0], [1]), ([0], []):
        with pytest.raises(DataError, match=f"the user {users[0]} has an item but is not among the owners"):
            write_lists(path, Lists(np.array(users), np.array([1]), np.array(owners, dtype=np.int64)))
    assert path.read_text() == "0 1\n"
    with pytest.raises(DataError, match="cannot be written: "):
        write_lists(path / "a.txt", Lists(np.array([0]), np.array([1]), np.array([0])))
    assert path.read_text() == "0 1\n"
