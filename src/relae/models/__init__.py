"""The six linear autoencoders: one kernel, each with its own free parameters.

| model | dropout | ξ |   | model | dropout | ξ |
|---|---|---|---|---|---|---|
| LAE  | 0 | 1    |   | DLAE  | free | 1    |
| EASE | 0 | 0    |   | EDLAE | free | 0    |
| RLAE | 0 | free |   | RDLAE | free | free |

`l2` is the penalty λ on all weights; without it a rule of thumb is used (`suggested_l2`), and tuning may do better.
How it is computed is no parameter of a model: `fit(data, solver=…)` takes "auto", "exact", "primal", "dual", "local",
or a solver with settings of its own, such as `Primal(dtype="float64")` or `Local(neighbours=100)`. The local solver is
an approximation for catalogs of which no square fits into memory: each item is explained by its nearest items only.

With times, all of them take `half_life` (interactions age), `fading` (the items of a history fade with each later one),
`freshness` (scores rise with recent demand) and `fresh_days` (the half-life of that demand); see `TimeParameters`.

Beyond the paper there are `DAN`, with users and items normalized by how active and popular they are, and `DEQL`, whose
loss counts what dropout has kept as well; and `NextItem`, which learns what comes next from the order of interactions.
"""

from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from relae import algebra
from relae.algebra import Dial
from relae.models._counterfactual import Counterfactual
from relae.models._explanation import Explanation
from relae.models._influence import Influence
from relae.models._linear import LinearAutoencoder, suggested_l2
from relae.models._next_item import NextItem
from relae.models._parameters import (
    DIALS,
    DROPOUT,
    FAMILY,
    ITEM_NORM,
    KEPT,
    L2,
    PROPENSITY,
    TIME,
    USER_NORM,
    XI,
    TimeParameters,
    dial_values,
)
from relae.recommender import Parameter, Range

__all__ = [
    "DAN",
    "DEQL",
    "DIALS",
    "DLAE",
    "EASE",
    "EDLAE",
    "FAMILY",
    "LAE",
    "RDLAE",
    "RLAE",
    "TIME",
    "Counterfactual",
    "Dial",
    "Explanation",
    "Influence",
    "LinearAutoencoder",
    "NextItem",
    "TimeParameters",
    "dial_values",
    "suggested_l2",
]


class _Plain(LinearAutoencoder):
    """The three models without dropout."""

    dropout = 0.0

    def _turned(self, dial: Dial) -> LinearAutoencoder:
        return self._with_dial(DAN if dial.item_norm or dial.propensity else RLAE, dial)


class _Denoising(LinearAutoencoder):
    """The three models with dropout."""

    def _turned(self, dial: Dial) -> LinearAutoencoder:
        return self._with_dial(DAN if dial.item_norm or dial.propensity else RDLAE, dial)


class LAE(_Plain):
    """Linear autoencoder: ridge regression of the matrix on itself, with nothing said about the diagonal."""

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (L2, *TIME)

    xi = 1.0

    def __init__(self, l2: float | None = None, **time: Unpack[TimeParameters]) -> None:
        self.l2 = l2
        self._set_time(time)


class EASE(_Plain):
    """Linear autoencoder with a zero diagonal: no item explains itself."""

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (L2, *TIME)

    xi = 0.0

    def __init__(self, l2: float | None = None, **time: Unpack[TimeParameters]) -> None:
        self.l2 = l2
        self._set_time(time)


class RLAE(_Plain):
    """Relaxed linear autoencoder: a diagonal of at most ξ (`eq:model_solution`)."""

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (L2, XI, *TIME)

    def __init__(
        self,
        l2: float | None = None,
        xi: float = 0.4,
        **time: Unpack[TimeParameters],
    ) -> None:
        self.l2, self.xi = l2, xi
        self._set_time(time)


class DLAE(_Denoising):
    """Denoising linear autoencoder: dropout becomes a penalty in proportion to an item's popularity."""

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (L2, DROPOUT, *TIME)

    xi = 1.0

    def __init__(
        self,
        l2: float | None = None,
        dropout: float = 0.3,
        **time: Unpack[TimeParameters],
    ) -> None:
        self.l2, self.dropout = l2, dropout
        self._set_time(time)


class EDLAE(_Denoising):
    """Denoising linear autoencoder with a zero diagonal."""

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (L2, DROPOUT, *TIME)

    xi = 0.0

    def __init__(
        self,
        l2: float | None = None,
        dropout: float = 0.3,
        **time: Unpack[TimeParameters],
    ) -> None:
        self.l2, self.dropout = l2, dropout
        self._set_time(time)


class RDLAE(_Denoising):
    """Relaxed denoising linear autoencoder: dropout, and a diagonal of at most ξ (`eq:RDLAE_solution`)."""

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (L2, DROPOUT, XI, *TIME)

    def __init__(
        self,
        l2: float | None = None,
        dropout: float = 0.3,
        xi: float = 0.4,
        **time: Unpack[TimeParameters],
    ) -> None:
        self.l2, self.dropout, self.xi = l2, dropout, xi
        self._set_time(time)


class DAN(LinearAutoencoder):
    """RDLAE with normalized users and items (Park et al. 2025), for the tail and against popularity.

    score_j = Σ_i x_i n_i^α B_ij n_j^−α · p_j^−γ with B from G = Xᵀ diag(d^−β) X. With zeros it is RDLAE.

    Parameters
    ----------
    l2, dropout, xi
        As of RDLAE. l2 is best where G is: smaller with a larger β.
    user_norm : float
        β: how much less a user counts who has many items. Only this one needs a fit of its own.
    item_norm : float
        α: how much popular items count in a history, and how much they are held back in scores. A dial, as ξ is.
    propensity : float
        γ: scores are divided by this power of an item's propensity, √(n/largest n). A dial.
    time
        half_life, fading, freshness and fresh_days, as of all linear autoencoders.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        L2,
        DROPOUT,
        XI.with_default(0.0),
        USER_NORM,
        ITEM_NORM,
        PROPENSITY,
        *TIME,
    )

    def __init__(
        self,
        l2: float | None = None,
        dropout: float = 0.3,
        xi: float = 0.0,
        user_norm: float = 0.3,
        item_norm: float = 0.0,
        propensity: float = 0.0,
        **time: Unpack[TimeParameters],
    ) -> None:
        self.l2, self.dropout, self.xi = l2, dropout, xi
        self.user_norm, self.item_norm, self.propensity = user_norm, item_norm, propensity
        self._set_time(time)

    def _turned(self, dial: Dial) -> "DAN":
        return self._with_dial(DAN, dial)


class DEQL(LinearAutoencoder):
    """EDLAE whose loss counts what dropout has kept, too (Guo et al. 2026): from EDLAE (0) to DLAE (1).

    Parameters
    ----------
    l2, dropout
        As of EDLAE; dropout is above 0.
    kept : float
        What an entry that dropout has kept counts in the loss, beside one that it has dropped. Like ξ, it only scales
        the columns of one inverse. A ξ that is asked for, be it 0, gives RDLAE or DAN, without it.
    item_norm, propensity
        As of DAN.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        L2.with_default(None, search=Range(1.0, 10_000.0, log=True)),
        DROPOUT.with_default(0.3, search=Range(0.05, 0.9)),
        KEPT,
        ITEM_NORM,
        PROPENSITY,
        *TIME,
    )

    xi = 0.0

    def __init__(
        self,
        l2: float | None = None,
        dropout: float = 0.3,
        kept: float = 0.1,
        *,
        item_norm: float = 0.0,
        propensity: float = 0.0,
        **time: Unpack[TimeParameters],
    ) -> None:
        self.l2, self.dropout, self.kept = l2, dropout, kept
        self.item_norm, self.propensity = item_norm, propensity
        self._set_time(time)

    def _check_dials(self, dropout: float) -> None:
        super()._check_dials(dropout)
        algebra.check_emphasis(dropout, self.kept)

    def column_weights(self, xi: float | None = None) -> NDArray[np.float64]:
        """Return w : (items,) of the emphasis `kept`, or of RDLAE for a ξ."""
        return super().column_weights(xi)

    def _weights_of(self, penalty: NDArray[np.float64], diagonal: NDArray[np.float64]) -> NDArray[np.float64]:
        return algebra.emphasis_weights(penalty, diagonal, self.l2_, self.dropout_, self.kept)

    def with_dials(self, **values: float | None) -> LinearAutoencoder:
        """Return this model with another α or γ, or that of a ξ, which has no emphasis: no refit, no copy."""
        dials = self._given_dials(values)
        own = self.get_params()
        return self._share(DEQL(**own | dials)) if dials.keys() <= own.keys() else super().with_dials(**dials)

    def _turned(self, dial: Dial) -> LinearAutoencoder:
        return self._with_dial(DAN if dial.item_norm or dial.propensity else RDLAE, dial)
