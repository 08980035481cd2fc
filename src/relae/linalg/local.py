"""Neighbourhoods of items, and the small systems on them, on all cores."""

import os
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relae.linalg._run import run, threads
from relae.linalg.sparse import Csr, Dense, Vector, parts


class Labelled(NamedTuple):
    """A matrix whose columns are numbered by falling frequency, and what is known of each column.

    What is added up over the columns of a few rows then lies close together: most of it stays in the cache.
    """

    by_user: Csr  # (users, items), with labels in the place of items
    weights: Vector  # of labels
    names: NDArray[np.int32]  # the item of each label
    all_ones: bool


def labelled(by_user: Csr, weights: Vector) -> Labelled:
    """Number the columns of a matrix by falling frequency, ties by column; weights : (items,)."""
    frequency = np.bincount(by_user.indices, minlength=by_user.shape[1])
    names = np.argsort(-frequency, kind="stable").astype(np.int32)
    labels = np.empty_like(names)
    labels[names] = np.arange(len(names), dtype=np.int32)
    columns = (by_user.data, labels[by_user.indices], by_user.indptr)
    ones = bool((by_user.data == 1).all())
    return Labelled(type(by_user)(columns, by_user.shape), weights[names].astype(by_user.dtype), names, ones)


def nearest(
    by_item: Csr, others: Labelled, items: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
    """Return for each item j: j itself, and the others with the largest G_ij · weights_i, at most `count` in all.

    by_item : (all items, users); `others` its transpose, labelled. Only others with G_ij > 0 are taken; ties go to the
    lower column. Returns members : (items, count), each row sorted, how many of the row count, and G_ij · weights_i of
    each, infinite for j itself.
    """
    members, close = np.zeros((len(items), count), np.int32), np.zeros((len(items), count))
    sizes = np.empty(len(items), np.int64)
    indptr, labels, values = parts(others.by_user)
    if others.all_ones:
        values = values[:0]  # half of what the kernel would read
    lists = (indptr, labels, values)
    run("nearest", items, *parts(by_item), *lists, others.weights, others.names, threads(), members, sizes, close)
    return members, sizes, close


def local_columns(
    items: NDArray[np.int64],
    members: NDArray[np.int32],
    sizes: NDArray[np.int64],
    by_item: Csr,
    penalty: Vector,
    square: Dense | None = None,
) -> Dense:
    """Return column j of (G_SS + Λ_S)⁻¹ on the support S = members[j, :sizes[j]] of each item j : (items, count).

    NaN where a matrix is not positive definite. The Gram is added up from the lists of users of the members, or
    looked up in `square`, whose lower triangle has that of all items.
    """
    values = np.zeros(members.shape, by_item.dtype)
    workspace = np.empty((0, 0), by_item.dtype) if square is None else square
    users = by_item.shape[1]
    scale = penalty.astype(by_item.dtype)
    run("local_columns", items, members, sizes, *parts(by_item), users, workspace, scale, threads(), values)
    return values


def elastic_columns(
    items: NDArray[np.int64],
    members: NDArray[np.int32],
    sizes: NDArray[np.int64],
    by_item: Csr,
    l1: float,
    l2: float,
    square: Dense | None = None,
    *,
    tolerance: float = 1e-5,
    most: int = 1000,
) -> Dense:
    """Return the b ≥ 0 of least ½|x_j − X_S b|² + l1 Σb + l2/2 |b|² for each item j : (items, count).

    S = members[j, :sizes[j]] is the support; b_j itself is 0. Coordinate descent, until no coordinate moves by more
    than `tolerance`, at most so many passes. The Gram comes from where `local_columns` has it.
    """
    values = np.zeros(members.shape, by_item.dtype)
    workspace = np.empty((0, 0), by_item.dtype) if square is None else square
    users, limits = by_item.shape[1], (float(l1), float(l2), tolerance, most)
    run("elastic_columns", items, members, sizes, *parts(by_item), users, workspace, *limits, threads(), values)
    return values


BLOCK = 16_384  # items at a time: their supports and solutions are a small part of the result
SQUARE_BYTES = 1.5e9  # a Gram matrix of all items up to this size is looked up rather than added up again


def local_workspace_bytes(users: int, items: int, count: int, itemsize: int) -> int:
    """Return the bytes that `nearest` and `local_columns` take for a block of items, with a Gram of all if kept."""
    block = min(BLOCK, items) * count * ((itemsize + 4) * 3 + 8)  # found, solved, and what is taken of them
    each = 4 * users + items * (itemsize + 5) + count * count * itemsize
    square = items * items * itemsize
    return block + (os.cpu_count() or 1) * each + (square if square <= SQUARE_BYTES else 0)
