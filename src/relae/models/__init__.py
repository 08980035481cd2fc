"""The six linear autoencoders: one kernel, each with its own free parameters.

| model | dropout | ξ |   | model | dropout | ξ |
|---|---|---|---|---|---|---|
| LAE  | 0 | 1    |   | DLAE  | free | 1    |
| EASE | 0 | 0    |   | EDLAE | free | 0    |
| RLAE | 0 | free |   | RDLAE | free | free |

`l2` is the penalty λ on all weights; without it a rule of thumb is used (`suggested_l2`), and tuning does better.
`solver` ("auto", "exact", "primal", "dual", "local") and `dtype` ("float32", "float64") say how it is computed. With
the local solver each item is explained by its `neighbours` nearest items only (`nearest_by` "cosine" or "count"): an
approximation for catalogs of which no square fits into memory.
"""

from relae.models._linear import Explanation, LinearAutoencoder, suggested_l2
from relae.solvers import NEIGHBOURS

__all__ = [
    "DLAE",
    "EASE",
    "EDLAE",
    "LAE",
    "RDLAE",
    "RLAE",
    "Explanation",
    "LinearAutoencoder",
    "suggested_l2",
]


class _Plain(LinearAutoencoder):
    """The three models without dropout."""

    dropout = 0.0

    def with_xi(self, xi: float) -> "RLAE":
        """Return this model with another ξ. It shares the fitted inverse: no refit, no copy."""
        return self._share(RLAE(self.l2, xi, **self._how()))


class _Denoising(LinearAutoencoder):
    """The three models with dropout."""

    def with_xi(self, xi: float) -> "RDLAE":
        """Return this model with another ξ. It shares the fitted inverse: no refit, no copy."""
        return self._share(RDLAE(self.l2, self.dropout, xi, **self._how()))


class LAE(_Plain):
    """Linear autoencoder: ridge regression of the matrix on itself, with nothing said about the diagonal."""

    xi = 1.0

    def __init__(
        self,
        l2: float | None = None,
        *,
        solver: str = "auto",
        dtype: str = "float32",
        neighbours: int = NEIGHBOURS,
        nearest_by: str = "cosine",
    ) -> None:
        self.l2 = l2
        self.solver, self.dtype, self.neighbours, self.nearest_by = solver, dtype, neighbours, nearest_by


class EASE(_Plain):
    """Linear autoencoder with a zero diagonal: no item explains itself."""

    xi = 0.0

    def __init__(
        self,
        l2: float | None = None,
        *,
        solver: str = "auto",
        dtype: str = "float32",
        neighbours: int = NEIGHBOURS,
        nearest_by: str = "cosine",
    ) -> None:
        self.l2 = l2
        self.solver, self.dtype, self.neighbours, self.nearest_by = solver, dtype, neighbours, nearest_by


class RLAE(_Plain):
    """Relaxed linear autoencoder: a diagonal of at most ξ (`eq:model_solution`)."""

    def __init__(
        self,
        l2: float | None = None,
        xi: float = 0.4,
        *,
        solver: str = "auto",
        dtype: str = "float32",
        neighbours: int = NEIGHBOURS,
        nearest_by: str = "cosine",
    ) -> None:
        self.l2, self.xi = l2, xi
        self.solver, self.dtype, self.neighbours, self.nearest_by = solver, dtype, neighbours, nearest_by


class DLAE(_Denoising):
    """Denoising linear autoencoder: dropout becomes a penalty in proportion to an item's popularity."""

    xi = 1.0

    def __init__(
        self,
        l2: float | None = None,
        dropout: float = 0.3,
        *,
        solver: str = "auto",
        dtype: str = "float32",
        neighbours: int = NEIGHBOURS,
        nearest_by: str = "cosine",
    ) -> None:
        self.l2, self.dropout = l2, dropout
        self.solver, self.dtype, self.neighbours, self.nearest_by = solver, dtype, neighbours, nearest_by


class EDLAE(_Denoising):
    """Denoising linear autoencoder with a zero diagonal."""

    xi = 0.0

    def __init__(
        self,
        l2: float | None = None,
        dropout: float = 0.3,
        *,
        solver: str = "auto",
        dtype: str = "float32",
        neighbours: int = NEIGHBOURS,
        nearest_by: str = "cosine",
    ) -> None:
        self.l2, self.dropout = l2, dropout
        self.solver, self.dtype, self.neighbours, self.nearest_by = solver, dtype, neighbours, nearest_by


class RDLAE(_Denoising):
    """Relaxed denoising linear autoencoder: dropout, and a diagonal of at most ξ (`eq:RDLAE_solution`)."""

    def __init__(
        self,
        l2: float | None = None,
        dropout: float = 0.3,
        xi: float = 0.4,
        *,
        solver: str = "auto",
        dtype: str = "float32",
        neighbours: int = NEIGHBOURS,
        nearest_by: str = "cosine",
    ) -> None:
        self.l2, self.dropout, self.xi = l2, dropout, xi
        self.solver, self.dtype, self.neighbours, self.nearest_by = solver, dtype, neighbours, nearest_by
