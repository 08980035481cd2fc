"""GRMF: matrix factorization with a graph regularizer (Rao et al., NeurIPS 2015), trained by pairs (`_pairs`).

Vectors of a user and of an item of that user shall be alike:

    GRMF        loss + λ_g · mean of ‖e_u − e_i‖²                = loss + λ_g/E · eᵀ(D − A)e
    GRMF-Norm   loss + λ_g · mean of ‖e_u/√d_u − e_i/√d_i‖²      = loss + λ_g/E · eᵀ(I − Â)e

over the E edges of the graph, with d the number of neighbours. A batch draws users evenly, so that the edges of a user
are drawn the more rarely, the more the user has; each draw counts as many times more. (Users who have every item are
never drawn, and have no part in the mean.) The vectors are learned as they are; nothing travels through the graph.
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
        activity = degrees[: graph.n_users].float()
        self.times_rarer = activity / activity[self.sampler.able].mean()
        self.scale = (1.0 / degrees.float().sqrt() if normalized else torch.ones(len(degrees)))[:, None]

    def forward(self) -> Tensor:
        """Return the vectors : (nodes, dim)."""
        return self.nodes

    def loss(self, batch: Triples) -> Tensor:
        """Return the loss of pairs, plus the mean of the regularizer over all edges, estimated on the batch."""
        users, items = self.graph.sides(self.nodes * self.scale)
        steps = functional.embedding(batch.users, users) - functional.embedding(batch.liked, items)
        rough = self.times_rarer[batch.users] * (steps**2).sum(dim=1)
        return super().loss(batch) + self.smoothness * rough.mean()
