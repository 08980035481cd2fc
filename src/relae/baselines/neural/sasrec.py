"""SASRec (Kang and McAuley, ICDM 2018): self-attention over the sequence of a user's items.

For the latest items i_1, …, i_T of a user, at most `length`, with E the vectors of items and p those of places counted
from the end,

    h = √d · E[i] + p,    then for each block    h ← h + Attention(norm(h)),    h ← h + W₂ relu(W₁ norm(h) + b₁) + b₂

where attention looks only at the same and earlier places. Scores after place t are norm(h_t) Eᵀ. The loss of a place is
the cross-entropy of the next item among all items or, with `negatives`, that of the next item and so many drawn ones,
each judged by itself (the paper has one).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from relae.baselines.neural._training import Found, Network, even_parts
from relae.linalg import Sequences

_SORTED = 8  # batches whose users are sorted by length, so that little of a batch is padding


class Places(NamedTuple):
    """A batch of sequences, filled up with item 0 at the end : (users, positions) each."""

    items: Tensor
    nexts: Tensor
    is_real: Tensor
    lengths: Tensor  # (users,)


class Block(nn.Module):
    """Self-attention and a layer of its own for every place, each added to what goes in."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.attention_norm, self.layer_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.query, self.key, self.value, self.out = (nn.Linear(dim, dim) for _ in range(4))
        self.inner, self.outer = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, h: Tensor) -> Tensor:
        """Return the next h : (users, positions, dim)."""
        dropout = self.dropout if self.training else 0.0
        h = h + functional.dropout(self.attend(self.attention_norm(h), dropout), dropout)
        inner = functional.dropout(functional.relu(self.inner(self.layer_norm(h))), dropout)
        return h + functional.dropout(self.outer(inner), dropout)

    def attend(self, h: Tensor, dropout: float) -> Tensor:
        """Return what each place takes from itself and earlier ones : (users, positions, dim)."""
        query, key, value = (self._by_head(layer(h)) for layer in (self.query, self.key, self.value))
        mixed = functional.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(h.shape))
        return out

    def _by_head(self, h: Tensor) -> Tensor:
        users, positions, dim = h.shape
        return h.view(users, positions, self.heads, dim // self.heads).transpose(1, 2)


class SASRecNetwork(Network):
    """Vectors of items and positions, and blocks of self-attention."""

    def __init__(
        self,
        sequences: Sequences,
        dim: int,
        length: int,
        blocks: int,
        heads: int,
        dropout: float,
        negatives: int,
        seed: int,
    ) -> None:
        super().__init__()
        self.sequences, self.length, self.dropout, self.negatives = sequences, length, dropout, negatives
        self.users = np.flatnonzero(np.diff(sequences.starts) > 1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.items = nn.Parameter(torch.randn(sequences.n_items, dim) * dim**-0.5)
            self.places = nn.Parameter(torch.randn(length, dim) * 0.02)
            self.blocks = nn.ModuleList([Block(dim, heads, dropout) for _ in range(blocks)])
            self.norm = nn.LayerNorm(dim)

    def batches(self, rng: np.random.Generator, size: int | None) -> Iterator[tuple[Places, float]]:
        """Yield batches of all users with at least two items, in a random order."""
        lengths = np.diff(self.sequences.starts)
        bounds = list(even_parts(len(self.users), size or 64))
        users = rng.permutation(self.users)
        for at in range(0, len(bounds), _SORTED):
            chunk = slice(bounds[at][0], bounds[min(at + _SORTED, len(bounds)) - 1][1])
            users[chunk] = users[chunk][np.argsort(lengths[users[chunk]], kind="stable")]
        order = rng.permutation(len(bounds))
        for done, at in enumerate(order, 1):
            yield self.gather(users[slice(*bounds[at])]), done / len(order)

    def gather(self, users: Any) -> Places:
        """Return the sequences of some users: all but the last item, and what came next."""
        starts, items = self.sequences.starts, self.sequences.items
        lengths = np.minimum(np.diff(starts)[users] - 1, self.length)
        positions = np.arange(int(lengths.max()))
        is_real = positions < lengths[:, None]
        at = np.where(is_real, starts[users + 1][:, None] - 1 - lengths[:, None] + positions, 0)
        known, nexts = items[at] * is_real, items[np.where(is_real, at + 1, 0)] * is_real
        before, after = (torch.from_numpy(array.astype(np.int64)) for array in (known, nexts))
        return Places(before, after, torch.from_numpy(is_real), torch.from_numpy(lengths))

    def forward(self, batch: Places) -> Tensor:
        """Return norm(h) : (users, positions, dim)."""
        dim = self.items.shape[1]
        from_end = self.length - batch.lengths[:, None] + torch.arange(batch.items.shape[1])
        h = functional.embedding(batch.items, self.items) * dim**0.5
        h = h + functional.embedding(from_end.clamp(max=self.length - 1), self.places)
        h = functional.dropout(h, self.dropout, self.training)
        for block in self.blocks:
            h = block(h)
        normed: Tensor = self.norm(h)
        return normed

    def loss(self, batch: Places) -> Tensor:
        """Return the mean loss of all places."""
        h, nexts = self(batch)[batch.is_real], batch.nexts[batch.is_real]
        if self.negatives == 0:
            return functional.cross_entropy(h @ self.items.T, nexts)
        drawn = torch.randint(self.items.shape[0], (len(nexts), self.negatives))
        of_next = (h * functional.embedding(nexts, self.items)).sum(dim=1)
        of_drawn = torch.einsum("td,tnd->tn", h, functional.embedding(drawn, self.items))
        missed = functional.softplus(of_drawn).masked_fill(drawn == nexts[:, None], 0.0)
        return (functional.softplus(-of_next) + missed.sum(dim=1)).mean()

    def score_arrays(self) -> Found:
        """Return all weights: matrices as (in, out), those of a layer one below the other, and vectors as rows."""
        self.eval()
        arrays = {
            "item_vectors": self.items.detach().numpy().copy(),
            "place_vectors": self.places.detach().numpy().copy(),
            "norm_weight": self.norm.weight.detach().numpy().copy(),
            "norm_bias": self.norm.bias.detach().numpy().copy(),
        }
        for layer in ("attention_norm", "query", "key", "value", "out", "layer_norm", "inner", "outer"):
            for part in ("weight", "bias"):
                each = [getattr(getattr(block, layer), part).detach().numpy().T for block in self.blocks]
                arrays[f"{layer}_{part}"] = np.vstack(each)
        return arrays
