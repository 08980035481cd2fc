"""One registry of models: by name, imported when first asked for, open to models of one's own."""

import pytest

from relae import DataError, baselines, models, registry
from relae.baselines import Popularity
from relae.recommender import HistoryRecommender
from relae.registry import KINDS, kind, register


@pytest.fixture
def own(monkeypatch):
    """Leave the registry as it was."""
    for name in ("_names", "_own"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    monkeypatch.setattr(registry, "KINDS", registry._names)
    return registry


def test_every_model_is_found_by_its_name_and_every_public_model_is_there():
    assert all(kind(name).__name__ == called and name == called.lower() for name, called in KINDS.items())
    assert kind("RdLaE") is models.RDLAE
    public = {name for room in (models, baselines) for name in room.__all__}
    bases = {"LinearAutoencoder", "Trained"}
    kinds = {
        name
        for name in public - bases
        for room in (models, baselines)
        if isinstance(getattr(room, name, None), type) and issubclass(getattr(room, name), HistoryRecommender)
    }
    assert kinds == set(KINDS.values())


def test_what_is_not_there():
    with pytest.raises(DataError, match=r"there is no model 'easy' \(did you mean ease\?\): the models are dan, rdlae"):
        kind("easy")


def test_a_model_of_ones_own(own):
    @register
    class Mine(Popularity):
        pass

    assert own.kind("mine") is Mine
    assert own.KINDS["mine"] == "Mine"

    @register
    class Mine(Popularity):  # the cell of a notebook, run again
        pass

    assert own.kind("mine") is Mine
    with pytest.raises(ValueError, match="there is another model Popularity"):
        register(type("popularity", (Popularity,), {}))
