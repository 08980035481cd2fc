"""Search items by the words of their titles, as people type them."""

import re
import unicodedata
from collections.abc import Sequence
from itertools import compress, repeat
from operator import contains

import numpy as np
from numpy.typing import NDArray

# Letters that Unicode does not take apart into a letter and an accent.
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})
MAX_QUERY = 500  # characters of a query
MAX_WORDS = 10  # of a query that count
_NOT_WORDS = re.compile(r"[\W_]+")


def fold(text: str) -> str:
    """Return a text without case, accents and punctuation, which people leave out when they search."""
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text.casefold())
        text = "".join(letter for letter in decomposed if not unicodedata.combining(letter)).translate(_LETTERS)
    folded = _NOT_WORDS.sub(" ", text.casefold()).strip()
    return folded or " ".join(text.casefold().split())  # "!!!" is a name, too


class TitleIndex:
    """Titles in the order of their items' popularity, folded once.

    Parameters
    ----------
    titles : (items,)
        The title of each item.
    order : (items,)
        Columns, the most popular first.
    """

    def __init__(self, titles: Sequence[str], order: NDArray[np.int64]) -> None:
        self._order = order
        # a space on either side, so that " word" is a start and " word " a whole word, wherever it stands
        self._texts = [f" {fold(titles[column])} " for column in order.tolist()]

    def find(self, query: str) -> NDArray[np.int64]:
        """Return the columns whose titles have all the words of a query.

        Titles that have every word as a whole word come first, then those that have every word at the start of a word,
        then the others; each by popularity. Each word costs one pass over the titles that are left, so that only the
        ten longest of the distinct words count.
        """
        columns, wholes, starts = self._find(query)
        return np.concatenate([columns[wholes], columns[starts & ~wholes], columns[~starts]])

    def find_whole(self, query: str) -> NDArray[np.int64]:
        """Return the columns whose titles have all the words of a query as whole words, the most popular first."""
        columns, wholes, _ = self._find(query)
        return columns[wholes]

    def _find(self, query: str) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the columns with all words; and which of them have whole words, and which have starts of words."""
        # the longest leaves the fewest for the others
        words = sorted(dict.fromkeys(fold(query).split()), key=len, reverse=True)[:MAX_WORDS]
        columns, texts = self._order, self._texts
        for word in words:
            matches = _contain(texts, word)
            columns, texts = columns[matches], list(compress(texts, matches))
        starts, wholes = np.ones(len(texts), bool), np.ones(len(texts), bool)
        for word in words:
            starts &= _contain(texts, f" {word}")
            wholes &= _contain(texts, f" {word} ")
        return columns, wholes, starts


def _contain(texts: Sequence[str], part: str) -> NDArray[np.bool_]:
    return np.fromiter(map(contains, texts, repeat(part)), bool, len(texts))
