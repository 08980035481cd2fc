"""GF-CF (Shen et al., CIKM 2021): graph filters with a closed form, no items × items matrix."""

from typing import ClassVar

from relae.baselines._graph_filter import RANK, GraphFilter
from relae.linalg import Csr, Dense, dense_sparse, scaled_columns, sparse_sparse
from relae.recommender import Parameter, Range


class GFCF(GraphFilter):
    """Graph filtering: a linear filter plus α times an ideal low-pass filter.

    With R̃ = D_U^−½ X D_I^−½ and V the first right singular vectors of R̃, a history x gets the scores

        x R̃ᵀR̃ + α · x D_I^−½ V Vᵀ D_I^½

    Only R̃ (sparse) and V (items × rank) are kept; users need not be known from training.

    Parameters
    ----------
    alpha : float
        The weight of the low-pass filter; 0 leaves the linear filter alone and needs no singular vectors.
    rank : int
        Singular vectors of the low-pass filter.

    Attributes
    ----------
    alpha_ : float
        α of the fit.
    filter_ : (users, items) sparse
        R̃.
    vectors_ : (items, rank), or None if alpha is 0
        V, in the order of falling singular values.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("alpha", 0.3, "the weight of the low-pass filter", "α", low=0, search=Range(0.0, 1.0), option=True),
        RANK,
    )
    LOW_PASS: ClassVar[str] = "alpha"
    SCORES_BY: ClassVar[tuple[str, ...]] = ("alpha",)

    alpha_: float

    def __init__(self, alpha: float = 0.3, rank: int = 256) -> None:
        self.alpha, self.rank = alpha, rank

    def project(self, batch: Csr) -> Dense:
        scores = dense_sparse(sparse_sparse(batch, self._filter_t_), self._filter_t_)
        if self.vectors_ is not None:
            low = self.low_pass(scaled_columns(batch, self.degree_power(-0.5)))
            low *= self.alpha_ * self.degree_power(0.5)
            scores += low
        return scores
