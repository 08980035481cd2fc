import pytest

from relae._common.words import in_bytes, in_count, in_time


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1 kB"),
        (1.5e6, "2 MB"),
        (198_702_078, "199 MB"),
        (1e9, "1.0 GB"),
        (33.5e9, "33.5 GB"),
    ],
)
def test_bytes(count, words):
    assert in_bytes(count) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.01, "0.0 s"), (0.2, "0.2 s"), (12.3, "12 s"), (99.4, "99 s"), (600, "10 min"), (7200, "2.0 h")],
)
def test_times(seconds, words):
    assert in_time(seconds) == words


@pytest.mark.parametrize(("number", "words"), [(0, "0 users"), (1, "1 user"), (2000, "2,000 users")])
def test_counts(number, words):
    assert in_count(number, "user") == words
