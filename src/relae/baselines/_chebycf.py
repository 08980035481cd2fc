"""ChebyCF (Kim et al., SIGIR 2025): a plateau-shaped graph filter by Chebyshev interpolation."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from relae.baselines._graph_filter import RANK, GraphFilter
from relae.linalg import Csr, Dense, scaled_columns
from relae.recommender import Parameter, Range


class ChebyCF(GraphFilter):
    """A polynomial filter of low and middle frequencies, plus α times an ideal low-pass filter, degrees divided out.

    With R̃ = D_U^−½ X D_I^−½, V its first right singular vectors, and L = I − 2 R̃ᵀR̃, whose eigenvalues t lie between
    −1 (lowest frequency) and 1, a history x gets the scores

        x D_I^−β (Σ_k c_k T_k(L) + α V Vᵀ) D_I^β

    T_k are Chebyshev polynomials, k up to `order`; c_k are the coefficients that interpolate the plateau

        h(t) = ½ (1 − sign(t) |t|^flatness)

    Parameters
    ----------
    order : int
        The degree of the polynomial. Each costs two sparse products per history.
    flatness : float
        How flat the filter is for middle frequencies; 1 is a straight line.
    alpha : float
        The weight of the low-pass filter; 0 needs no singular vectors.
    beta : float
        The power of the number of users that items are normalized by.
    rank : int
        Singular vectors of the low-pass filter.

    Attributes
    ----------
    filter_ : (users, items) sparse
        R̃.
    vectors_ : (items, rank), or None if alpha is 0
        V, in the order of falling singular values.
    order_, flatness_, alpha_, beta_ : float
        Those of the fit.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("order", 8, "the degree of the polynomial", low=1, high=101, below=True, whole=True),
        Parameter(
            "flatness",
            1.5,
            "how flat the filter is for middle frequencies",
            "φ",
            low=0,
            above=True,
            search=Range(1.0, 20.0, log=True),
        ),
        Parameter("alpha", 0.2, "the weight of the low-pass filter", "α", low=0, search=Range(0.0, 1.0), option=True),
        Parameter("beta", 0.4, "the power of item degrees that is divided out", "β", low=0, search=Range(0.0, 0.6)),
        RANK.with_default(512),
    )
    LOW_PASS: ClassVar[str] = "alpha"
    SCORES_BY: ClassVar[tuple[str, ...]] = ("order", "flatness", "alpha", "beta")

    order_: float
    flatness_: float
    alpha_: float
    beta_: float

    def __init__(
        self, order: int = 8, flatness: float = 1.5, alpha: float = 0.2, beta: float = 0.4, rank: int = 512
    ) -> None:
        self.order, self.flatness, self.alpha, self.beta, self.rank = order, flatness, alpha, beta, rank

    def project(self, batch: Csr) -> Dense:
        scaled = scaled_columns(batch, self.degree_power(-self.beta_))
        coefficients = plateau_coefficients(int(self.order_), self.flatness_)
        before: Dense = scaled.toarray().astype(np.float32, copy=False)  # T_0(L)
        last: Dense = before - 2 * self.smooth(before)  # T_1(L)
        scores: Dense = coefficients[0] * before + coefficients[1] * last
        for coefficient in coefficients[2:]:
            following = self.smooth(last)
            following *= -4
            following += 2 * last
            following -= before
            before, last = last, following
            scores += coefficient * last
        if self.vectors_ is not None:
            scores += np.float32(self.alpha_) * self.low_pass(scaled)
        scores *= self.degree_power(self.beta_)
        return scores

    def users_at_once(self) -> int:
        return super().users_at_once() // 2  # more signals at a time


def plateau_coefficients(order: int, flatness: float) -> NDArray[np.float32]:
    """Return the Chebyshev coefficients of the polynomial that is the plateau at order + 1 nodes : (order + 1,)."""
    count = order + 1
    angles = np.pi * (np.arange(count) + 0.5) / count
    nodes = np.cos(angles)
    target = 0.5 * (1.0 - np.sign(nodes) * np.abs(nodes) ** flatness)
    coefficients: NDArray[np.float64] = 2.0 / count * np.cos(np.outer(np.arange(count), angles)) @ target
    coefficients[0] /= 2.0
    return coefficients.astype(np.float32)
