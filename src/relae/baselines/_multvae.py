"""Mult-VAE, whose equations are in `relae.baselines.neural.multvae`; scores need no torch."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from relae.baselines._parameters import AVERAGE, DIM, LEARNING_RATE, TRAINING
from relae.baselines._trained import Trained, Training
from relae.data import Interactions
from relae.evaluation import Split, hold_out_users
from relae.linalg import FLOAT32, Arrays, Csr, Dense, Expected, Layout, as_csr, sparse_dense
from relae.recommender import Parameter, Range, State, search_ranges

if TYPE_CHECKING:
    from relae.baselines.neural import Network

_BATCH_BYTES = 128e6


class MultVAE(Trained):
    """A variational autoencoder with a multinomial likelihood (Liang et al. 2018); new users fold in.

    Parameters
    ----------
    dim : int
        Length of the code of a user.
    hidden : int
        Width of the layers before and after it; 0 for none. Liang et al. have 600 there, around a code of 200; where
        users are few, none is better.
    dropout : float
        Of the history, in training.
    anneal_cap : float
        The most that the divergence from the prior counts.
    anneal_steps : int
        Steps until it does.
    weight_decay : float
        What a step takes off all weights, in shares of the learning rate.
    **training
        See `Trained`. Without `batch_size`, 250 users.

    Attributes
    ----------
    layers_ : mapping of str to arrays
        Weights (in, out) and biases of the encoder, up to the mean of the code, and of the decoder.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        DIM.with_default(300, help="the length of the code of a user"),
        Parameter("hidden", 0, "the width of the layers before and after the code; 0 for none", low=0, whole=True),
        Parameter(
            "dropout",
            0.1,
            "the share of a history that training drops",
            low=0,
            high=1,
            below=True,
            search=Range(0.0, 0.7),
            option=True,
        ),
        Parameter(
            "anneal_cap",
            1.0,
            "the largest weight of the divergence from the prior",
            low=0,
            search=Range(0.05, 2.0, log=True),
        ),
        Parameter("anneal_steps", 2000, "the number of steps until that weight is reached", low=0, whole=True),
        Parameter(
            "weight_decay",
            0.2,
            "the weight decay, relative to the learning rate",
            low=0,
            search=Range(0.01, 1.0, log=True),
        ),
        LEARNING_RATE.with_default(2e-3, search=Range(5e-4, 5e-3, log=True)),
        AVERAGE.with_default(0.98),
        *(parameter for parameter in TRAINING if parameter not in (LEARNING_RATE, AVERAGE)),
    )
    SPACE: ClassVar[Mapping[str, Range]] = dict(sorted(search_ranges(PARAMETERS).items()))  # trials follow this order

    layers_: Mapping[str, Dense]

    def __init__(
        self,
        dim: int = 300,
        hidden: int = 0,
        dropout: float = 0.1,
        anneal_cap: float = 1.0,
        anneal_steps: int = 2000,
        weight_decay: float = 0.2,
        *,
        learning_rate: float = 2e-3,
        average: float = 0.98,
        **training: Unpack[Training],
    ) -> None:
        super().__init__(learning_rate=learning_rate, average=average, **training)
        self.dim, self.hidden, self.dropout = dim, hidden, dropout
        self.anneal_cap, self.anneal_steps, self.weight_decay = anneal_cap, anneal_steps, weight_decay

    def _network(self, data: Interactions) -> "Network":
        from relae.baselines.neural.multvae import MultVAENetwork

        x = as_csr(data.matrix, np.float32)
        cap, steps = self.anneal_cap, self.anneal_steps
        return MultVAENetwork(x, self.hidden, self.dim, self.dropout, cap, steps, self.weight_decay, self.seed)

    def _divide(self, data: Interactions) -> Split:
        return hold_out_users(data, self.validation_share, rng=np.random.default_rng(self.seed))

    def _take(self, arrays: Arrays, data: Interactions) -> None:
        self.remember(data)
        self.layers_ = dict(arrays)

    def project(self, batch: Csr) -> Dense:
        length = np.sqrt((batch * batch).sum(axis=1))
        scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
        values = (batch.data * np.repeat(scale, np.diff(batch.indptr))).astype(np.float32)
        scaled = as_csr(type(batch)((values, batch.indices, batch.indptr), shape=batch.shape), np.float32)
        state: Dense = np.empty((0, 0), np.float32)
        for at, (layer, weight, bias) in enumerate(_in_order(self.layers_)):
            state = (sparse_dense(scaled, weight) if at == 0 else state @ weight) + bias
            if layer.endswith("hidden"):
                np.tanh(state, out=state)
        return state

    def users_at_once(self) -> int:
        return int(_BATCH_BYTES / (4 * sum(len(bias) for _, _, bias in _in_order(self.layers_))))

    @property
    def score_dtype(self) -> np.dtype[np.floating]:
        return np.dtype(np.float32)

    def state(self, form: str) -> State:
        state = super().state(form)
        return State(state.facts, {**state.arrays, **self.layers_})

    @classmethod
    def layout(cls, facts: Mapping[str, Any], names: Collection[str]) -> Layout:
        layout, width = dict(super().layout(facts, names)), "items"
        for layer in _layer_names(names):
            before, width = width, "items" if layer == "decoder_outer" else f"width of {layer}"
            layout[f"{layer}_weight"] = Expected(FLOAT32, (before, width), mapped=True)
            layout[f"{layer}_bias"] = Expected(FLOAT32, (width,), mapped=True)
        return layout

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        parts = [f"{layer}_{part}" for layer in _layer_names(arrays) for part in ("weight", "bias")]
        self.layers_ = {name: arrays[name] for name in parts}


def _layer_names(names: Collection[str]) -> list[str]:
    """Return the layers that a score goes through; hidden ones if arrays of these names have any."""
    depths = ("hidden", "outer") if "encoder_hidden_weight" in names else ("outer",)
    return [f"{side}_{depth}" for side in ("encoder", "decoder") for depth in depths]


def _in_order(arrays: Arrays) -> list[tuple[str, Dense, Dense]]:
    """Return the layers that a score goes through, with their weights (in, out) and biases."""
    return [(name, arrays[f"{name}_weight"], arrays[f"{name}_bias"]) for name in _layer_names(arrays)]
