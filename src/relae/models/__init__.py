"""The six linear autoencoders: one kernel, each with its own free parameters.

| model | dropout | ξ |   | model | dropout | ξ |
|---|---|---|---|---|---|---|
| LAE  | 0 | 1    |   | DLAE  | free | 1    |
| EASE | 0 | 0    |   | EDLAE | free | 0    |
| RLAE | 0 | free |   | RDLAE | free | free |

`l2` is the penalty λ on all weights; without it a rule of thumb is used (`suggested_l2`), and tuning does better.
`solver` ("auto", "primal", "dual") and `dtype` ("float32", "float64") say how, not what, is computed.
"""

from relae.models._linear import Explanation, LinearAutoencoder, suggested_l2

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
        return self._share(RLAE(self.l2, xi, solver=self.solver, dtype=self.dtype))


class _Denoising(LinearAutoencoder):
    """The three models with dropout."""

    def with_xi(self, xi: float) -> "RDLAE":
        """Return this model with another ξ. It shares the fitted inverse: no refit, no copy."""
        return self._share(RDLAE(self.l2, self.dropout, xi, solver=self.solver, dtype=self.dtype))


class LAE(_Plain):
    """Linear autoencoder: ridge regression of the matrix on itself, with nothing said about the diagonal."""

    xi = 1.0

    def __init__(self, l2: float | None = None, *, solver: str = "auto", dtype: str = "float32") -> None:
        self.l2, self.solver, self.dtype = l2, solver, dtype


class EASE(_Plain):
    """Linear autoencoder with a zero diagonal: no item explains itself."""

    xi = 0.0

    def __init__(self, l2: float | None = None, *, solver: str = "auto", dtype: str = "float32") -> None:
        self.l2, self.solver, self.dtype = l2, solver, dtype


class RLAE(_Plain):
    """Relaxed linear autoencoder: a diagonal of at most ξ (`eq:model_solution`)."""

    def __init__(
        self, l2: float | None = None, xi: float = 0.4, *, solver: str = "auto", dtype: str = "float32"
    ) -> None:
        self.l2, self.xi, self.solver, self.dtype = l2, xi, solver, dtype


class DLAE(_Denoising):
    """Denoising linear autoencoder: dropout becomes a penalty in proportion to an item's popularity."""

    xi = 1.0

    def __init__(
        self, l2: float | None = None, dropout: float = 0.3, *, solver: str = "auto", dtype: str = "float32"
    ) -> None:
        self.l2, self.dropout, self.solver, self.dtype = l2, dropout, solver, dtype


class EDLAE(_Denoising):
    """Denoising linear autoencoder with a zero diagonal."""

    xi = 0.0

    def __init__(
        self, l2: float | None = None, dropout: float = 0.3, *, solver: str = "auto", dtype: str = "float32"
    ) -> None:
        self.l2, self.dropout, self.solver, self.dtype = l2, dropout, solver, dtype


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
    ) -> None:
        self.l2, self.dropout, self.xi, self.solver, self.dtype = l2, dropout, xi, solver, dtype
