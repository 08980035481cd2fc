"""SLIM (Ning and Karypis, ICDM 2011): a sparse linear model by the elastic net, on the nearest items of each item."""

from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from relae._common.progress import Progress
from relae.baselines._knn import Neighbours
from relae.baselines._parameters import NEIGHBOURS
from relae.data import InteractionsLike
from relae.linalg import BLOCK, SQUARE_BYTES, as_csr, elastic_columns, gram, labelled, nearest, transpose
from relae.recommender import Parameter, Range
from relae.solvers import closeness


class SLIM(Neighbours):
    """Weights of other items that together rebuild an item, none below 0, and most of them 0.

    Column j of S is the w of least

        ½ |x_j − X w|² + l1 Σ w + l2/2 |w|²,    w ≥ 0, w_j = 0

    where only the `neighbours` items nearest to item j by cosine may have a weight (fsSLIM of the publication). A
    history x gets the scores x S.

    Parameters
    ----------
    l1 : float
        The penalty that makes weights 0.
    l2 : float
        The penalty on squared weights.
    neighbours : int
        Others that may have a weight; ties go to the lower column.

    Attributes
    ----------
    similarity_ : (items, items) sparse
        S.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("l1", 0.5, "the penalty that makes weights 0", "λ₁", low=0, search=Range(0.01, 20.0, log=True)),
        Parameter(
            "l2", 10.0, "the penalty on squared weights", "λ", low=0, search=Range(0.1, 1000.0, log=True), option=True
        ),
        NEIGHBOURS.with_default(200),
    )

    def __init__(self, l1: float = 0.5, l2: float = 10.0, neighbours: int = 200) -> None:
        self.l1, self.l2, self.neighbours = l1, l2, neighbours

    def fit(self, data: InteractionsLike, *, progress: Progress | None = None) -> Self:
        """Fit to interactions, or to a sparse matrix (users × items); an earlier fit is kept until this one is done."""
        self.check_params()
        interactions = self.to_interactions(data)
        x = as_csr(interactions.matrix, np.float32)
        n, by_item = x.shape[1], transpose(x)
        count = self._count(n)
        square = gram(by_item, x, np.zeros((n, n), np.float32)) if 4 * n * n <= SQUARE_BYTES else None
        others = labelled(x, closeness(x, "cosine"))
        columns, values, sizes = [np.empty(0, np.int32)], [np.empty(0, np.float32)], [np.zeros(1, np.int64)]
        step = min(BLOCK, max(1, n // 20))
        for start in range(0, n, step):
            items = np.arange(start, min(start + step, n))
            members, counts, _ = nearest(by_item, others, items, count + 1)
            weights = elastic_columns(items, members, counts, by_item, self.l1, self.l2, square)
            taken = (np.arange(count + 1) < counts[:, None]) & (weights > 0)
            columns.append(members[taken])
            values.append(weights[taken].astype(np.float32))
            sizes.append(taken.sum(axis=1))
            if progress is not None:
                progress("elastic net", (start + len(items)) / n)
        rows = (np.concatenate(values), np.concatenate(columns), np.cumsum(np.concatenate(sizes)))
        self.similarity_ = transpose(sp.csr_array(rows, shape=(n, n)))  # from rows to columns
        self.remember(interactions)
        return self
