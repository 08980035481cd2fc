"""Finding items by their titles, as people type them."""

import re
import unicodedata
from collections.abc import Sequence
from itertools import compress, repeat
from operator import contains

import numpy as np
from numpy.typing import NDArray

# Letters that Unicode does not take apart into a letter and an accent.
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})
MAX_WORDS = 10  # of a search
_NOT_WORDS = re.compile(r"[\W_]+")


def fold(text: str) -> str:
    """Return a text without what people leave out when they search: case, accents, punctuation."""
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
        What each item is called.
    order : (items,)
        Columns, the most popular first.
    """

    def __init__(self, titles: Sequence[str], order: NDArray[np.int64]) -> None:
        self._order = order
        # a space on either side, so that " word" is a start and " word " a whole word, wherever it stands
        self._texts = [f" {fold(titles[column])} " for column in order.tolist()]

    def find(self, query: str) -> NDArray[np.int64]:
        """Return the columns whose titles have all the words of a query.

        Those come first that have every word as a whole, then those that have every word at a word's start, then those
        that have them anywhere; each by popularity. Every word is looked for in all titles that are left, so
        that of more than ten distinct words only the longest ten count.
        """
        columns, wholes, starts = self._find(query)
        return np.concatenate([columns[wholes], columns[starts & ~wholes], columns[~starts]])

    def find_whole(self, query: str) -> NDArray[np.int64]:
        """Return the columns whose titles have all the words of a query as whole words, the most popular first."""
        columns, wholes, _ = self._find(query)
        return columns[wholes]

    def _find(self, query: str) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the columns that have all words, and which have them as whole words, and at the start of words."""
        # the longest leaves the fewest for the others
        words = sorted(dict.fromkeys(fold(query).split()), key=len, reverse=True)[:MAX_WORDS]
        columns, texts = self._order, self._texts
        for word in words:
            found = _contain(texts, word)
            columns, texts = columns[found], list(compress(texts, found))
        starts, wholes = np.ones(len(texts), bool), np.ones(len(texts), bool)
        for word in words:
            starts &= _contain(texts, f" {word}")
            wholes &= _contain(texts, f" {word} ")
        return columns, wholes, starts


def _contain(texts: Sequence[str], part: str) -> NDArray[np.bool_]:
    return np.fromiter(map(contains, texts, repeat(part)), bool, len(texts))
