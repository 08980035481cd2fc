"""HMLET: linear or non-linear, chosen for each node and layer (Kong et al., WSDM 2022).

With Â of `Graph` and the activation σ = ELU, a layer with a gate has two candidates,

    linear  Â Eˡ⁻¹        non-linear  σ(Â Fˡ⁻¹)

F being the last gated output (E⁰ at the first gate). A small network looks at both, (linear, non-linear) → 2 logits,
and a Gumbel softmax of temperature τ turns them into weights (g, 1 − g), which are 0 and 1 when scores are computed:

    Eˡ = g · linear + (1 − g) · non-linear        Eˡ = Â Eˡ⁻¹ in layers without a gate
    E = (E⁰ + E¹ + … + E^L) / (L + 1)

The gates are in the last half of the layers (`end`), in the `middle`, in the first half (`front`) or in `all`. They are
learned only after `warm_up` epochs, at a rate of their own; from then on τ falls by e^(−0.005) per epoch, from 0.7 to
0.01 at the least. In training, a share of the edges may be left out of Â (`edge_dropout`), drawn for each batch.
"""

from collections.abc import Sequence
from math import exp
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from relae.baselines.neural._graph import Graph
from relae.baselines.neural._pairs import PairNetwork
from relae.baselines.neural._training import Found

_HOT, _COLD, _COOLING = 0.7, 0.01, 0.005


def gated_layers(layers: int, gates: str) -> Sequence[int]:
    """Return the layers that have a gate, counted from 0."""
    half = max(1, layers // 2)
    first = {"front": 0, "middle": (layers - half) // 2, "end": layers - half, "all": 0}[gates]
    return range(layers) if gates == "all" else range(first, first + half)


class Gate(nn.Module):
    """Two numbers per node that sum to 1: how much linear, how much non-linear."""

    def __init__(self, dim: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2 * dim, hidden), nn.BatchNorm1d(hidden), nn.Dropout(dropout), nn.ReLU(), nn.Linear(hidden, 2)
        )

    def forward(self, linear: Tensor, bent: Tensor, temperature: float) -> Tensor:
        """Return weights : (nodes, 2); exactly 0 and 1 outside of training."""
        logits = self.layers(torch.cat([linear, bent], dim=1))
        if not self.training:
            return functional.one_hot(logits.argmax(dim=1), 2).to(logits.dtype)
        return functional.gumbel_softmax(logits, tau=temperature)


class HMLETNetwork(PairNetwork):
    """The mean of the layers, some of which choose."""

    def __init__(
        self,
        graph: Graph,
        dim: int,
        layers: int,
        gates: str,
        warm_up: int,
        dropout: float,
        edge_dropout: float,
        gate_learning_rate: float,
        l2: float,
        seed: int,
    ) -> None:
        super().__init__(graph, dim, l2, seed)
        self.depth, self.warm_up, self.temperature = layers, warm_up, _HOT
        self.edge_dropout, self.gate_learning_rate = edge_dropout, gate_learning_rate
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.gates = nn.ModuleDict({str(at): Gate(dim, dim, dropout) for at in gated_layers(layers, gates)})

    def groups(self, learning_rate: float) -> list[dict[str, Any]]:
        """Return vectors and gates."""
        return [
            {"params": [self.nodes], "lr": learning_rate},
            {"params": list(self.gates.parameters()), "lr": self.gate_learning_rate},
        ]

    def start(self, epoch: int) -> None:
        """Let the gates learn after the warm-up, and cool."""
        learns = epoch > self.warm_up
        for parameter in self.gates.parameters():
            parameter.requires_grad_(learns)
        self.temperature = max(_COLD, _HOT * exp(-_COOLING * max(0, epoch - self.warm_up)))

    def forward(self) -> Tensor:
        """Return E : (nodes, dim)."""
        total, _ = self._travel()
        return total

    @torch.no_grad()
    def score_arrays(self) -> Found:
        """Return the vectors that score, and the shares of users and items for which each gate is linear."""
        self.eval()
        nodes, choices = self._travel()
        shares = [[float(side.mean()) for side in self.graph.sides(chosen)] for chosen in choices]
        return {**self.scoring(nodes), "linear_shares": np.array(shares, np.float32)}

    def _travel(self) -> tuple[Tensor, list[Tensor]]:
        """Return E, and how linear each gate has made each node."""
        graph = self.graph.thinned(1 - self.edge_dropout) if self.training and self.edge_dropout else self.graph
        layer = total = gated = self.nodes
        choices = []
        for at in range(self.depth):
            linear = graph.propagate(layer)
            if str(at) in self.gates:
                # where the last layer had a gate, both candidates travel from the same vectors
                bent = functional.elu(linear if gated is layer else graph.propagate(gated))
                share = self.gates[str(at)](linear, bent, self.temperature)
                layer = gated = share[:, :1] * linear + share[:, 1:] * bent
                choices.append(share[:, 0])
            else:
                layer = linear
            total = total + layer
        return total / (self.depth + 1), choices
