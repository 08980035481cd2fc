"""LightGCN (He et al., SIGIR 2020).

With Â = D^−½ A D^−½ of the graph of users and items (`Graph`), and E⁰ the vectors that are learned,

    Eˡ = Â Eˡ⁻¹,  l = 1 … L        E = (E⁰ + E¹ + … + E^L) / (L + 1)        s_ui = e_u · e_i

trained by pairs (`_pairs`), with the penalty on E⁰.
"""

from torch import Tensor

from relae.baselines.neural._graph import Graph
from relae.baselines.neural._pairs import PairNetwork


class LightGCNNetwork(PairNetwork):
    """The mean of the layers."""

    def __init__(self, graph: Graph, dim: int, layers: int, l2: float, seed: int) -> None:
        super().__init__(graph, dim, l2, seed)
        self.layers = layers

    def forward(self) -> Tensor:
        """Return E : (nodes, dim)."""
        layer = total = self.nodes
        for _ in range(self.layers):
            layer = self.graph.propagate(layer)
            total = total + layer
        return total / (self.layers + 1)
