"""What comes in is typed: every model says the same of its data and of histories."""

import typing

import pytest

from relae.data import InteractionsLike, SparseMatrix
from relae.recommender import HistoriesLike, HistoryRecommender, RawHistories, encode
from relae.registry import KINDS, kind


@pytest.mark.parametrize("name", KINDS)
def test_every_fit_takes_interactions_or_a_matrix(name):
    taken = typing.get_args(typing.get_type_hints(kind(name).fit)["data"])
    assert set(taken) >= set(typing.get_args(InteractionsLike))


def test_what_is_recommended_is_typed_by_the_histories():
    overloads = typing.get_overloads(HistoryRecommender.recommend)
    assert [typing.get_type_hints(each)["histories"] for each in overloads] == [SparseMatrix, RawHistories]
    assert set(typing.get_args(HistoriesLike)) >= {*typing.get_args(SparseMatrix), *typing.get_args(RawHistories)}
    assert typing.get_type_hints(encode)["histories"] == HistoriesLike
