"""Mult-VAE without a training: what its layers make of a history, and what a folder keeps of them."""

import numpy as np
import pytest

import relae
from relae import Interactions, StoreError
from relae.baselines import Mark, MultVAE

from ..oracles import csr, example, new_histories

USERS, ITEMS, DIM = 12, 9, 4
DATA = Interactions(csr(example(USERS, ITEMS, weighted=False)))
NEW = new_histories(5, ITEMS, weighted=True)


def drawn(hidden):
    """A model whose layers were drawn, and not learned."""
    rng = np.random.default_rng(0)
    widths = {"encoder": [ITEMS, DIM], "decoder": [DIM, ITEMS]}
    arrays = {}
    for side, (given, made) in widths.items():
        steps = {"hidden": (given, hidden), "outer": (hidden, made)} if hidden else {"outer": (given, made)}
        for place, shape in steps.items():
            arrays[f"{side}_{place}_weight"] = rng.standard_normal(shape).astype(np.float32)
            arrays[f"{side}_{place}_bias"] = rng.standard_normal(shape[1]).astype(np.float32)
    model = MultVAE(DIM, hidden)
    model._take(arrays, DATA)
    model.curve_, model.epochs_, model.best_epoch_, model.stopped_ = [Mark(1, 0.1, 0.7, 0.2)], 1, 1, "epochs"
    return model


def dense_scores(layers, x):
    """tanh after the hidden layers, a code of the mean alone, and histories of length 1."""
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    state = np.divide(x, lengths, out=np.zeros_like(x), where=lengths > 0)
    for layer in ("encoder_hidden", "encoder_outer", "decoder_hidden", "decoder_outer"):
        if f"{layer}_weight" in layers:
            state = state @ layers[f"{layer}_weight"] + layers[f"{layer}_bias"]
            state = np.tanh(state) if layer.endswith("hidden") else state
    return state


@pytest.mark.parametrize(("hidden", "other"), [(3, 0), (0, 3), (3, 7)])
def test_parameters_are_for_the_next_fit_and_leave_this_one_alone(hidden, other, tmp_path):
    model = drawn(hidden).set_params(dim=DIM + 1, hidden=other)
    model.save(tmp_path / "model")
    opened = relae.load(tmp_path / "model")
    assert opened.get_params() == model.get_params()
    for found in (model, opened):
        assert np.allclose(found.score(csr(NEW)), dense_scores(drawn(hidden).layers_, NEW), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("encoder_hidden_weight", lambda array: array[:-1]),
        ("encoder_outer_weight", lambda array: array.T.copy()),
        ("decoder_outer_bias", lambda array: array[:-1]),
        ("decoder_hidden_weight", lambda array: array.astype(np.float64)),
    ],
)
def test_layers_that_do_not_go_together_are_not_taken_up(name, changed, tmp_path):
    model = drawn(3)
    model.layers_ = {**model.layers_, name: changed(model.layers_[name])}
    model.save(tmp_path / "model")
    with pytest.raises(StoreError, match=r"_(weight|bias) has the (shape|type) "):
        relae.load(tmp_path / "model")
