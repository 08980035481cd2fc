"""Mult-VAE (Liang et al., WWW 2018): a variational autoencoder with a multinomial likelihood.

For a history x, with its norm scaled to 1 and a share of it dropped out in training,

    h = tanh(W₁x + b₁)    (μ, log σ²) = W₂h + b₂    z = μ + σ·ε    f = W₄ tanh(W₃z + b₃) + b₄

and the loss of a user is

    − Σ_i x_i log softmax(f)_i  +  β · ½ Σ (σ² + μ² − 1 − log σ²)

β grows from 0 to its `anneal_cap` over the first `anneal_steps` steps. Scores are f at z = μ. Without hidden layers,
(μ, log σ²) = W₂x + b₂ and f = W₄z + b₄. Every step also takes `weight_decay` × the learning rate off all weights.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from relae.baselines.neural._training import Found, Network, even_parts
from relae.linalg import Csr


class MultVAENetwork(Network):
    """Encoder and decoder with one hidden layer each, or none."""

    def __init__(
        self,
        x: Csr,
        hidden: int,
        dim: int,
        dropout: float,
        anneal_cap: float,
        anneal_steps: int,
        weight_decay: float,
        seed: int,
    ) -> None:
        super().__init__()
        self.x, self.dim, self.dropout, self.weight_decay = x, dim, dropout, weight_decay
        self.filled = np.flatnonzero(np.diff(x.indptr))
        self.anneal_cap, self.anneal_steps = anneal_cap, anneal_steps
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        items = x.shape[1]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            inner = [hidden] * (hidden > 0)
            self.encoder = _layers([items, *inner, 2 * dim])
            self.decoder = _layers([dim, *inner, items])
            for layer in [*self.encoder, *self.decoder]:
                nn.init.xavier_normal_(layer.weight)
                nn.init.trunc_normal_(layer.bias, std=0.001)

    def batches(self, rng: np.random.Generator, size: int | None) -> Iterator[tuple[Tensor, float]]:
        """Yield batches of all users, in a random order : (users, items) each."""
        users = rng.permutation(self.filled)
        for start, stop in even_parts(len(users), size or 250):
            yield torch.from_numpy(self.x[users[start:stop]].toarray()), stop / len(users)

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return μ and log σ² : (users, dim) each."""
        scaled = functional.dropout(functional.normalize(x), self.dropout, self.training)
        mean, log_variance = _through(self.encoder, scaled).split(self.dim, dim=1)
        return mean, log_variance

    def decode(self, z: Tensor) -> Tensor:
        """Return f : (users, items)."""
        return _through(self.decoder, z)

    def elbo(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean over users of the negative log-likelihood, and of the divergence from the prior."""
        mean, log_variance = self.encode(x)
        scores = self.decode(mean + (log_variance / 2).exp() * noise)
        unlikely = -(x * functional.log_softmax(scores, dim=1)).sum(dim=1).mean()
        divergence = 0.5 * (log_variance.exp() + mean**2 - 1 - log_variance).sum(dim=1).mean()
        return unlikely, divergence

    def loss(self, batch: Tensor) -> Tensor:
        """Return the negative, annealed ELBO."""
        unlikely, divergence = self.elbo(batch, torch.randn(len(batch), self.dim, dtype=batch.dtype))
        beta = (
            self.anneal_cap * min(1.0, float(self.steps) / self.anneal_steps) if self.anneal_steps else self.anneal_cap
        )
        self.steps += 1
        return unlikely + beta * divergence

    def groups(self, learning_rate: float) -> list[dict[str, Any]]:
        """Return all weights, with weight decay."""
        return [{**group, "weight_decay": self.weight_decay} for group in super().groups(learning_rate)]

    def score_arrays(self) -> Found:
        """Return weights, each as (in, out), and biases, in order; of the encoder's last layer only the half of μ."""
        self.eval()
        arrays = {}
        for name, layers in (("encoder", self.encoder), ("decoder", self.decoder)):
            for at, layer in enumerate(layers):
                weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
                kept = self.dim if layer is self.encoder[-1] else len(bias)
                depth = "outer" if at == len(layers) - 1 else "hidden"
                arrays[f"{name}_{depth}_weight"] = np.array(weight[:kept].T, order="C")
                arrays[f"{name}_{depth}_bias"] = bias[:kept].copy()
        return arrays


def _layers(widths: list[int]) -> nn.ModuleList:
    return nn.ModuleList([nn.Linear(inputs, outputs) for inputs, outputs in pairwise(widths)])


def _through(layers: nn.ModuleList, x: Tensor) -> Tensor:
    """Apply all layers, with tanh between them."""
    for at, layer in enumerate(layers):
        x = layer(x if at == 0 else torch.tanh(x))
    return x
