"""LT-OCF: learnable-time ODEs (Choi, Jeon, Park, CIKM 2021).

Layers become a time that runs from 0 to T. Users and items move each other (co-evolve), with Â of `Graph`:

    du/dt = Â_ui p(t),  dp/dt = Â_iu u(t)        in one: dE/dt = Â E

Between the times t_0 = 0, t_1, …, t_K = T, of which the inner ones are learned (nothing but their small learning rate
keeps them in order), each interval is solved by an ODE solver Φ, and

    E_k = Φ(E_{k−1}; t_{k−1} → t_k) − E_{k−1}    (or without the last term: `residual`)
    E = (E_0 + E_1 + … + E_K) / (K + 1)

trained by pairs (`_pairs`), with the penalty on E_0. The times have a learning rate of their own.
"""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torchdiffeq import odeint

from relae.baselines.neural._graph import Graph
from relae.baselines.neural._pairs import PairNetwork
from relae.baselines.neural._training import Found


class LTOCFNetwork(PairNetwork):
    """The mean of the states at learned times."""

    def __init__(
        self,
        graph: Graph,
        dim: int,
        intervals: int,
        duration: float,
        method: str,
        residual: bool,
        time_learning_rate: float,
        l2: float,
        seed: int,
    ) -> None:
        super().__init__(graph, dim, l2, seed)
        self.method, self.residual, self.time_learning_rate = method, residual, time_learning_rate
        times = torch.linspace(0.0, duration, intervals + 1)
        self.register_buffer("ends", times[[0, -1]].clone())
        self.times = nn.Parameter(times[1:-1].clone())

    def groups(self, learning_rate: float) -> list[dict[str, Any]]:
        """Return vectors and times."""
        return [
            {"params": [self.nodes], "lr": learning_rate},
            {"params": [self.times], "lr": self.time_learning_rate},
        ]

    def forward(self) -> Tensor:
        """Return E : (nodes, dim)."""
        times = self.all_times()
        state = total = self.nodes
        for start, end in pairwise(times):
            _, moved = odeint(self._speed, state, torch.stack([start, end]), method=self.method)
            state = moved if self.residual else moved - state
            total = total + state
        return total / len(times)

    def all_times(self) -> Tensor:
        """Return the times from 0 to T : (intervals + 1,)."""
        return torch.cat([self.ends[:1], self.times, self.ends[1:]])

    def score_arrays(self) -> Found:
        """Return the vectors that score, and the times."""
        return {**super().score_arrays(), "times": self.all_times().detach().numpy()}

    def _speed(self, time: Tensor, state: Tensor) -> Tensor:
        return self.graph.propagate(state)
