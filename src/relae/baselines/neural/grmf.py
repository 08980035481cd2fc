"""GRMF: matrix factorization with a graph regularizer (Rao et al., NeurIPS 2015), trained by pairs (`_pairs`).

Vectors of a user and of an item of that user shall be alike:

    GRMF        loss + λ_g · mean of ‖e_u − e_i‖²
    GRMF-Norm   loss + λ_g · mean of ‖e_u/√d_u − e_i/√d_i‖²

over the drawn users and items of theirs, with d the number of neighbours: eᵀ(D − A)e and eᵀ(I − Â)e, but for a factor,
when users are drawn by their activity. The vectors are learned as they are; nothing travels through the graph.
"""

import torch
from torch import Tensor
from torch.nn import functional

from relae.baselines.neural._graph import Graph
from relae.baselines.neural._pairs import PairNetwork, Triples


class GRMFNetwork(PairNetwork):
    """Vectors, drawn together along the edges."""

    def __init__(self, graph: Graph, dim: int, smoothness: float, normalized: bool, l2: float, seed: int) -> None:
        super().__init__(graph, dim, l2, seed)
        self.smoothness = smoothness
        degrees = torch.from_numpy(graph.degrees).clamp(min=1)
        self.scale = (1.0 / degrees.float().sqrt() if normalized else torch.ones(len(degrees)))[:, None]

    def forward(self) -> Tensor:
        """The vectors : (nodes, dim)."""
        return self.nodes

    def loss(self, batch: Triples) -> Tensor:
        """The loss of pairs, and how rough the vectors are along the edges."""
        users, items = (self.nodes * self.scale).split([self.graph.n_users, self.graph.n_items])
        steps = functional.embedding(batch.users, users) - functional.embedding(batch.liked, items)
        return super().loss(batch) + self.smoothness * (steps**2).sum(dim=1).mean()
