"""The graph of users and items, and what travels along its edges."""

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from relae.linalg import Csr, as_csr, sparse_dense, transpose


class Graph:
    """Â = D^−½ A D^−½ for the bipartite A = [0 X; Xᵀ 0]: users first, then items.

    Attributes
    ----------
    matrix : (nodes, nodes) sparse
        Â, symmetric; nodes without edges have an empty row.
    degrees : (nodes,)
    """

    def __init__(self, x: Csr) -> None:
        self.x = as_csr(x, np.float32)
        self.n_users, self.n_items = self.x.shape
        back = transpose(self.x)
        indices = np.concatenate([self.x.indices + self.n_users, back.indices])
        indptr = np.concatenate([self.x.indptr, back.indptr[1:] + self.x.indptr[-1]])
        nodes = self.n_users + self.n_items
        self.matrix = as_csr(
            sp.csr_array((np.ones(len(indices), np.float32), indices, indptr), (nodes, nodes)), np.float32
        )
        self.degrees = np.diff(self.matrix.indptr)
        root = np.sqrt(np.maximum(self.degrees, 1)).astype(np.float32)
        self.matrix.data /= np.repeat(root, self.degrees) * root[self.matrix.indices]

    def thinned(self, keep: float) -> "Graph":
        """Return the graph with a random share of its edges, whose weights are scaled up; torch's generator draws."""
        kept = (torch.rand(self.x.nnz) < keep).numpy() / np.float32(keep)
        thin = copy(self)
        thin.matrix = as_csr(
            sp.csr_array(
                (self.matrix.data * np.concatenate([kept, kept[self._back]]), self.matrix.indices, self.matrix.indptr),
                self.matrix.shape,
            ),
            np.float32,
        )
        return thin

    @cached_property
    def _back(self) -> NDArray[np.int64]:
        """For each edge from an item to a user, which interaction it is."""
        return np.argsort(self.x.indices, kind="stable")

    def sides(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Split the rows of an array into those of users and those of items."""
        return nodes[: self.n_users], nodes[self.n_users :]

    def propagate(self, x: Tensor) -> Tensor:
        """Return Â x : (nodes, dim)."""
        out: Tensor = _Product.apply(x, self.matrix)
        return out


class _Product(torch.autograd.Function):
    """A symmetric sparse matrix times a dense one, on all cores; its own gradient."""

    @staticmethod
    def forward(context: Any, x: Tensor, matrix: Csr) -> Tensor:
        context.matrix = matrix
        return torch.from_numpy(_product(matrix, x))

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return torch.from_numpy(_product(context.matrix, gradients[0])), None


def _product(matrix: Csr, x: Tensor) -> NDArray[Any]:
    return sparse_dense(matrix, np.ascontiguousarray(x.detach().numpy()))
