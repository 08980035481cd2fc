"""Bayesian personalized ranking (Rendle et al., UAI 2009): what a user has shall score above what the user has not.

    loss = mean of softplus(s_uj − s_ui) + l2/2 · mean of (‖e_u‖² + ‖e_i‖² + ‖e_j‖²)

over draws of a user u, an item i of u, and an item j that u has not. s are the scores of the vectors that a network
makes of its own ones, e; the penalty is on the latter.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from relae.baselines.neural._graph import Graph
from relae.baselines.neural._training import Found, Network, even_parts
from relae.errors import DataError
from relae.linalg import Csr

_START = 0.1  # the spread of vectors in the beginning


class Triples(NamedTuple):
    """Users, an item of each, and an item that each has not : (batch,) each."""

    users: Tensor
    liked: Tensor
    others: Tensor


class Sampler:
    """Draws users evenly, then one of their items evenly, then one of the other items evenly."""

    def __init__(self, x: Csr) -> None:
        sizes = np.diff(x.indptr)
        self.able = np.flatnonzero((sizes > 0) & (sizes < x.shape[1]))
        if not len(self.able):
            raise DataError(
                f"none of the {x.shape[0]:,} users has both an item and an item less than all {x.shape[1]:,}: there "
                "is nothing to compare"
            )
        self.indptr, self.indices, self.n_items = x.indptr.astype(np.int64), x.indices, x.shape[1]
        self.sizes = sizes
        self.keys = np.repeat(np.arange(x.shape[0]), sizes) * np.int64(x.shape[1]) + x.indices

    def draw(self, rng: np.random.Generator, count: int) -> tuple[NDArray[np.int64], ...]:
        """Draw users (sorted, for the cache), an item of each, and another item : (count,) each."""
        users = np.sort(rng.choice(self.able, count))
        liked = self.indices[self.indptr[users] + (rng.random(count) * self.sizes[users]).astype(np.int64)]
        others = rng.integers(self.n_items, size=count)
        wrong = np.flatnonzero(self._has(users, others))
        while len(wrong):
            others[wrong] = rng.integers(self.n_items, size=len(wrong))
            wrong = wrong[self._has(users[wrong], others[wrong])]
        return users, liked.astype(np.int64), others

    def _has(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.bool_]:
        keys = users * self.n_items + items
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.asarray(self.keys[at] == keys)


class PairNetwork(Network):
    """A vector per node, made into others by `forward`, and compared in pairs."""

    def __init__(self, graph: Graph, dim: int, l2: float, seed: int) -> None:
        super().__init__()
        self.graph, self.l2 = graph, l2
        self.sampler = Sampler(graph.x)
        generator = torch.Generator().manual_seed(seed)
        nodes = graph.n_users + graph.n_items
        self.nodes = nn.Parameter(torch.randn(nodes, dim, generator=generator) * _START)

    def forward(self) -> Tensor:
        """Return the vectors that score : (nodes, dim)."""
        raise NotImplementedError

    def batches(self, rng: np.random.Generator, size: int | None) -> Iterator[tuple[Triples, float]]:
        """Yield batches of as many draws as there are interactions."""
        draws = len(self.sampler.keys)
        for start, stop in even_parts(draws, size or self.batch_size()):
            drawn = (torch.from_numpy(part) for part in self.sampler.draw(rng, stop - start))
            yield Triples(*drawn), stop / draws

    def batch_size(self) -> int:
        """Return a batch size whose own cost is about that of the propagation, which is done once per batch."""
        return max(2048, -(-len(self.sampler.keys) // 8))

    def loss(self, batch: Triples) -> Tensor:
        """Return the loss of pairs, and the penalty."""
        users, items = self.graph.sides(self.forward())
        better = (
            functional.embedding(batch.users, users)
            * (functional.embedding(batch.others, items) - functional.embedding(batch.liked, items))
        ).sum(dim=1)
        return functional.softplus(better).mean() + self.penalty(batch)

    def penalty(self, batch: Triples) -> Tensor:
        """Return l2/2 times the mean of ‖e_u‖² + ‖e_i‖² + ‖e_j‖², summed by node instead of by draw."""
        n_users, n_items = self.graph.n_users, self.graph.n_items
        counts = torch.cat(
            [
                torch.bincount(batch.users, minlength=n_users),
                torch.bincount(batch.liked, minlength=n_items) + torch.bincount(batch.others, minlength=n_items),
            ]
        )
        return self.l2 / 2 / len(batch.users) * (counts.to(self.nodes.dtype) @ (self.nodes**2).sum(dim=1))

    @torch.no_grad()
    def score_arrays(self) -> Found:
        """Return the vectors that score."""
        self.eval()
        return self.scoring(self.forward())

    def scoring(self, nodes: Tensor) -> Found:
        """Return the vectors of users and items as NumPy arrays."""
        users, items = self.graph.sides(nodes)
        return {"users": users.numpy().copy(), "items": items.numpy().copy()}
