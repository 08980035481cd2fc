"""Items are found by what people type."""

import time
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relae.catalog import TitleIndex, _search, fold


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Amélie (2001)", "amelie 2001"),
        ("AMELIE", "amelie"),
        ("Spider-Man: Into the Spider-Verse", "spider man into the spider verse"),
        ("Straße", "strasse"),
        ("Łódź, Smørrebrød, Æon", "lodz smorrebrod aeon"),
        ("ﬁne №5", "fine no5"),
        ("  two\t words ", "two words"),
        ("日本語", "日本語"),
        ("snake_case", "snake case"),
        ("!!!", "!!!"),
        ("", ""),
    ],
)
def test_folding(text, folded):
    assert fold(text) == folded


@given(st.text())
def test_folding_leaves_out_case_and_accents(text):
    folded = fold(text)
    assert fold(folded) == folded
    assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text))


words = st.sampled_from(["star", "stars", "wars", "war", "gate", "the", "Le", "Ésta", "a"])
titles = st.lists(st.lists(words, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=12)


def by_hand(titles, order, query):
    """The rule itself: whole words, then starts of words, then anywhere; each by popularity."""
    asked = fold(query).split()

    def grade(title):
        has = fold(title).split()
        if all(word in has for word in asked):
            return 0
        if all(any(own.startswith(word) for own in has) for word in asked):
            return 1
        return 2 if all(any(word in own for own in has) for word in asked) else None

    found = [(grade(titles[column]), place, column) for place, column in enumerate(order)]
    return [column for graded, _, column in sorted(entry for entry in found if entry[0] is not None)]


@given(titles, st.lists(words | st.sampled_from(["st", "ar", "e", "zzz"]), max_size=3).map(" ".join), st.randoms())
def test_a_search_follows_the_rule(titles, query, random):
    order = list(range(len(titles)))
    random.shuffle(order)
    assert TitleIndex(titles, np.array(order)).find(query).tolist() == by_hand(titles, order, query)


def test_a_search_in_many_titles_is_quick():
    rng = np.random.default_rng(0)
    syllables = ["ba", "ne", "ki", "lo", "mu", "sta", "wor", "tri", "é", "ß"]
    chosen = rng.choice(syllables, (50_000, 4, 3)).tolist()
    titles = [" ".join(map("".join, words)) for words in chosen]
    index = TitleIndex(titles, np.arange(50_000))
    times = []
    for query in ("ba", "stawor", "ki lo", "nothing", "sta wor tri"):
        started = time.perf_counter()
        index.find(query)
        times.append(time.perf_counter() - started)
    assert np.median(times) < 0.2  # a few milliseconds; the rest is for a busy machine


def test_a_search_looks_for_ten_distinct_words(monkeypatch):
    scans, plain = [], _search._contain

    def counting(texts, part):
        scans.append(part)
        return plain(texts, part)

    monkeypatch.setattr(_search, "_contain", counting)
    ten = "alpha bravo charlie delta echo foxtrot golf hotel india juliet"
    index = TitleIndex([f"{ten} {at}" for at in range(50)], np.arange(50))
    assert len(index.find(f"{ten} 7 {ten} 7 " * 20)) == 50  # the 7 is the shortest, and one too many
    assert len(scans) == 3 * 10
    assert len(index.find("alpha 7 alpha 7")) == 5  # 7, 17, 27, 37, 47
    assert len(scans) == 3 * 10 + 3 * 2
