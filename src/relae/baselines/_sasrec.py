"""SASRec, whose equations are in `relae.baselines.neural.sasrec`; scores need no torch."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from relae._common.checks import refuse
from relae.baselines._parameters import AVERAGE, DIM, LEARNING_RATE, TRAINING
from relae.baselines._trained import Trained, Training
from relae.data import Ids, Interactions, entries_of_rows
from relae.evaluation import Split, leave_last_out
from relae.linalg import FLOAT32, Arrays, Csr, Dense, Expected, Layout, Sequences, time_order, time_ranks
from relae.recommender import Parameter, Range, SequenceRecommender, State, whole

if TYPE_CHECKING:
    from relae.baselines.neural import Network

_BATCH_BYTES = 64e6
_EPS = 1e-5  # of the norms, as torch has it
_NORMS = ("attention_norm", "layer_norm")
_LAYERS = ("query", "key", "value", "out", "inner", "outer")
_SHAPES: dict[str, tuple[str, ...]] = {
    "item_vectors": ("items", "dim"),
    "place_vectors": ("places", "dim"),
    "norm_weight": ("dim",),
    "norm_bias": ("dim",),
    **{f"{name}_weight": ("blocks", "dim") for name in _NORMS},
    **{f"{name}_weight": ("blocks of rows", "dim") for name in _LAYERS},
    **{f"{name}_bias": ("blocks", "dim") for name in (*_NORMS, *_LAYERS)},
}


class SASRec(SequenceRecommender, Trained):
    """Self-attention over the sequence of a user's items (Kang and McAuley 2018); new users fold in.

    Needs times. Only the order of a history counts, not its weights; a history without times is taken by column.

    Parameters
    ----------
    dim : int
        Length of the vectors of items.
    length : int
        The latest items of a history that count.
    blocks : int
        Blocks of self-attention.
    heads : int
        Parts of the vectors, each with an attention of its own.
    dropout : float
        In training, of vectors and layers.
    negatives : int
        Items drawn for each place, which the next item is compared with; the paper has 1. 0 compares it with all items,
        which takes longer and finds more.
    **training
        See `Trained`. Without `batch_size`, 64 users. The validation hides the last item of every user, and
        `validation_share` is the share of the users who are judged.

    Attributes
    ----------
    layers_ : mapping of str to arrays
        Vectors of items and positions, and the weights of the blocks.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        DIM.with_default(64, help="the length of the vectors of items"),
        Parameter("length", 200, "the number of latest items of a history that count", low=1, whole=True),
        Parameter("blocks", 2, "the number of blocks of self-attention", low=1, whole=True),
        Parameter("heads", 1, "the number of heads of the attention", low=1, whole=True),
        Parameter(
            "dropout",
            0.2,
            "the dropout rate of vectors and layers",
            low=0,
            high=1,
            below=True,
            search=Range(0.1, 0.6),
            option=True,
        ),
        Parameter(
            "negatives", 0, "the number of items drawn for each place; 0 compares with all items", low=0, whole=True
        ),
        LEARNING_RATE.with_default(1e-3, search=Range(3e-4, 5e-3, log=True)),
        AVERAGE.with_default(0.98),
        *(parameter for parameter in TRAINING if parameter not in (LEARNING_RATE, AVERAGE)),
    )

    layers_: Mapping[str, Dense]
    heads_: int

    def __init__(
        self,
        dim: int = 64,
        length: int = 200,
        blocks: int = 2,
        heads: int = 1,
        dropout: float = 0.2,
        negatives: int = 0,
        *,
        learning_rate: float = 1e-3,
        average: float = 0.98,
        **training: Unpack[Training],
    ) -> None:
        super().__init__(learning_rate=learning_rate, average=average, **training)
        self.dim, self.length, self.blocks, self.heads = dim, length, blocks, heads
        self.dropout, self.negatives = dropout, negatives

    def _check(self) -> None:
        super()._check()
        if self.dim % self.heads:
            refuse("heads", self.heads, f"divide the {self.dim} numbers of a vector (dim)")

    def _network(self, data: Interactions) -> "Network":
        from relae.baselines.neural.sasrec import SASRecNetwork

        assert data.times is not None
        return SASRecNetwork(
            Sequences.of(data.matrix, data.times, np.ones(1)),
            self.dim,
            self.length,
            self.blocks,
            self.heads,
            self.dropout,
            self.negatives,
            self.seed,
        )

    def _divide(self, data: Interactions) -> Split:
        split = leave_last_out(data)
        count = max(1, round(self.validation_share * len(split.users)))
        rows = np.sort(np.random.default_rng(self.seed).choice(len(split.users), count, replace=False))
        times = [
            None if part is None else part[entries_of_rows(matrix.indptr, rows)]
            for part, matrix in ((split.history_times, split.histories), (split.truth_times, split.truth))
        ]
        return replace(
            split,
            users=Ids(split.users.values[rows]),
            histories=split.histories[rows],
            truth=split.truth[rows],
            seen=None if split.seen is None else split.seen[rows],
            history_times=times[0],
            truth_times=times[1],
        )

    def _take(self, arrays: Arrays, data: Interactions) -> None:
        self.remember(data)
        self.layers_, self.heads_ = dict(arrays), int(self.heads)

    def weigh(self, batch: Csr, times: NDArray[np.int64] | None) -> Csr:
        """Return each item with its place, 1 for the latest; by column if there are no times."""
        ranks = time_ranks(batch, np.zeros(batch.nnz, np.int64) if times is None else times)
        return type(batch)((ranks.astype(np.float32), batch.indices, batch.indptr), shape=batch.shape)

    def project(self, batch: Csr) -> Dense:
        layers, (longest, dim) = self.layers_, self.layers_["place_vectors"].shape
        ordered = batch.indices[time_order(batch, -batch.data.astype(np.int64))]
        lengths = np.minimum(np.diff(batch.indptr), longest)
        positions = np.arange(max(int(lengths.max(initial=0)), 1))
        is_real = positions < lengths[:, None]
        at = np.where(is_real, batch.indptr[1:, None] - lengths[:, None] + positions, 0)
        items = ordered[at] if len(ordered) else np.zeros(at.shape, np.int64)
        from_end = np.where(is_real, longest - lengths[:, None] + positions, 0)
        h: Dense = layers["item_vectors"][items] * np.float32(np.sqrt(dim)) + layers["place_vectors"][from_end]
        last = np.maximum(lengths - 1, 0)
        blocks = len(layers["query_bias"])
        for block in range(blocks):
            h = self._block(block, h, last if block == blocks - 1 else None)
        final = _norm(h[:, 0], layers["norm_weight"], layers["norm_bias"])
        return np.asarray(final @ layers["item_vectors"].T)

    def _block(self, block: int, h: Dense, last: NDArray[np.int64] | None) -> Dense:
        """Return the output of a block for h : (users, positions, dim); the last block only at the last positions."""
        rows = slice(block * h.shape[2], (block + 1) * h.shape[2])
        parts = {name: (self.layers_[f"{name}_weight"][rows], self.layers_[f"{name}_bias"][block]) for name in _LAYERS}
        norms = {name: (self.layers_[f"{name}_weight"][block], self.layers_[f"{name}_bias"][block]) for name in _NORMS}
        normed = _norm(h, *norms["attention_norm"])
        asking, positions = normed, np.arange(h.shape[1])[None]  # (users or 1, positions)
        if last is not None:
            users = np.arange(len(h))[:, None]
            h, asking, positions = h[users, last[:, None]], normed[users, last[:, None]], last[:, None]
        query, key, value = (
            self._by_head(source @ parts[name][0] + parts[name][1])
            for name, source in (("query", asking), ("key", normed), ("value", normed))
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(query.shape[-1]))
        hidden = np.arange(normed.shape[1]) > positions[..., None]  # later places : (users or 1, positions, positions)
        scores = np.where(hidden[:, None], np.float32(-np.inf), scores)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = (shares @ value).transpose(0, 2, 1, 3).reshape(h.shape)
        h = h + mixed @ parts["out"][0] + parts["out"][1]
        inner = np.maximum(_norm(h, *norms["layer_norm"]) @ parts["inner"][0] + parts["inner"][1], 0.0)
        return np.asarray(h + inner @ parts["outer"][0] + parts["outer"][1])

    def _by_head(self, h: Dense) -> Dense:
        return h.reshape(*h.shape[:2], self.heads_, -1).transpose(0, 2, 1, 3)

    def users_at_once(self) -> int:
        longest, dim = self.layers_["place_vectors"].shape
        return int(_BATCH_BYTES / (4 * (len(self.items_) + 8 * longest * dim + 3 * self.heads_ * longest**2)))

    @property
    def score_dtype(self) -> np.dtype[np.floating]:
        return np.dtype(np.float32)

    def state(self, form: str) -> State:
        state = super().state(form)
        return State({**state.facts, "heads": self.heads_}, {**state.arrays, **self.layers_})

    @classmethod
    def layout(cls, facts: Mapping[str, Any], names: Collection[str]) -> Layout:
        own = {name: Expected(FLOAT32, shape) for name, shape in _SHAPES.items()}
        return {**super().layout(facts, names), **own}

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        self.layers_ = {name: arrays[name] for name in _SHAPES}
        self.heads_ = whole(facts, "heads", 1)
        dim, blocks = self.layers_["item_vectors"].shape[1], len(self.layers_["query_bias"])
        if dim % self.heads_:
            raise ValueError(f"heads is {self.heads_}, and does not divide the length of the vectors, {dim}")
        if len(self.layers_["query_weight"]) != blocks * dim:
            raise ValueError(f"the layers of {blocks} blocks do not have {dim} rows each")


def _norm(h: Dense, weight: Dense, bias: Dense) -> Dense:
    """Return h with mean 0 and variance 1 at each place, scaled and moved."""
    centred = h - h.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(_EPS))
    return np.asarray(centred / spread * weight + bias)
