"""The exact inverse over tiles that stay on the workers: A = L Lᵀ, W = L⁻¹, A⁻¹ = WᵀW, n³ flops in all.

With A in b × b tiles, of which only the lower triangle exists:

    W_kk from A_kk      L_ik = A_ik W_kkᵀ      A_ij ← A_ij − L_ik L_jkᵀ          for k < j ≤ i
    W_ij = −W_ii Σ_k L_ik W_kj                 P_ij = Σ_k W_kiᵀ W_kj             for k ≥ i ≥ j

Row i of W takes the place of row i of L, and row i of P that of row i of W: half a square at any time, beside copies of
the tiles that are just used elsewhere. Each task is one product and changes nothing that it is given, so that what a
worker has lost can be made again.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae.distributed._blocks import own
from relae.distributed._cluster import FAN_IN, Job, finish, one_core
from relae.linalg import Csr, Dense, sparse_sparse, transpose
from relae.linalg.spd import clear_above_diagonal, inverse_workspace_bytes, invert_factor

Tiles = dict[tuple[int, int], Any]
Report = Callable[[float], None]

_AHEAD = 3  # steps that wait at the scheduler while one is worked on


def edges(n: int, tile: int) -> list[tuple[int, int]]:
    """Return where each row of tiles starts and ends; the last one may be smaller."""
    return [(start, min(start + tile, n)) for start in range(0, n, tile)]


def gram_tiles(job: Job, blocks: Sequence[Any], penalty: NDArray[np.float64], tile: int, dtype: str) -> Tiles:
    """Return the lower triangle of G + Λ as futures; sums over blocks of rows go through a tree."""
    spans = edges(len(penalty), tile)
    turned = [job.submit("turn", (at,), transpose, block) for at, block in enumerate(blocks)]
    stripes = [
        [job.submit("stripe", (at, i), _stripe, each, *span) for at, each in enumerate(turned)]
        for i, span in enumerate(spans)
    ]
    tiles: Tiles = {}
    for i, (start, stop) in enumerate(spans):
        for j in range(i + 1):
            parts = [
                job.submit("gram", (i, j, at), _gram, stripes[i][at : at + FAN_IN], stripes[j][at : at + FAN_IN])
                for at in range(0, len(blocks), FAN_IN)
            ]
            total = parts[0] if len(parts) == 1 else job.reduce(f"sum-{i}-{j}", _sum, parts)
            if i == j:
                total = job.submit("penalty", (i,), _add_to_diagonal, total, penalty[start:stop].astype(dtype))
            tiles[i, j] = total
    return tiles


def _stripe(by_item: Csr, start: int, stop: int) -> Csr:
    return by_item[start:stop]


def _gram(left: list[Csr], right: list[Csr]) -> Dense:
    """Σ A_f B_fᵀ over some blocks of rows f."""
    with one_core(kernels=True):
        total = sparse_sparse(own(left[0]), transpose(right[0]))
        for a, b in zip(left[1:], right[1:], strict=True):
            total += sparse_sparse(own(a), transpose(b))
        return total


def _sum(parts: list[Dense]) -> Dense:
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def _add_to_diagonal(tile: Dense, penalty: Dense) -> Dense:
    result = tile.copy()
    result.flat[:: len(tile) + 1] += penalty
    return result


def invert(job: Job, tiles: Tiles, spans: Sequence[tuple[int, int]], out: Dense, report: Report) -> Dense:
    """Write the inverse into `out`, tile by tile as the workers finish them; the futures in `tiles` are used up."""
    count = len(spans)
    total = float(count) * (count + 1) * (count + 2) / 2  # products of tiles, a third of them in each part
    _factor(job, tiles, count, lambda done: report(done / total))
    third = total / 3
    _invert_rows(job, tiles, count, lambda done: report((third + done) / total))
    _multiply(job, tiles, spans, out, lambda done: report((2 * third + done) / total))
    return out


def _factor(job: Job, tiles: Tiles, count: int, report: Report) -> None:
    """Tiles ← L below the diagonal, W_kk on it."""
    done, waiting = 0.0, deque[tuple[Any, float]]()
    for k in range(count):
        tiles[k, k] = job.submit("cholesky", (k, k), _inverse_of_factor, tiles[k, k])
        for i in range(k + 1, count):
            tiles[i, k] = job.submit("solve", (i, k), _times_transposed, tiles[i, k], tiles[k, k])
        for i in range(k + 1, count):
            for j in range(k + 1, i + 1):
                tiles[i, j] = job.submit("update", (i, j, k), _update, tiles[i, j], tiles[i, k], tiles[j, k])
        waiting.append((tiles[k, k], (count - k) * (count - k + 1) / 2))
        while len(waiting) > (_AHEAD if k + 1 < count else 0):
            future, products = waiting.popleft()
            finish([future])
            report(done := done + products)


def _invert_rows(job: Job, tiles: Tiles, count: int, report: Report) -> None:
    """Tiles ← W, row after row."""
    done, waiting = 0.0, deque[tuple[list[Any], float]]()
    for i in range(1, count):
        row = []
        for j in range(i):
            total = None
            for k in range(j, i):
                total = job.submit("invert", (i, j, k), _add_product, total, tiles[i, k], tiles[k, j])
            row.append(job.submit("finish", (i, j), _minus_product, tiles[i, i], total))
        tiles.update({(i, j): future for j, future in enumerate(row)})
        waiting.append((row, i * (i + 3) / 2))
        while len(waiting) > (_AHEAD if i + 1 < count else 0):
            futures, products = waiting.popleft()
            finish(futures)
            report(done := done + products)


def _multiply(job: Job, tiles: Tiles, spans: Sequence[tuple[int, int]], out: Dense, report: Report) -> None:
    """Out ← WᵀW: a row of the result needs no row of W above it, which can go."""
    count, done = len(spans), 0.0
    waiting = deque[tuple[int, list[Any]]]()
    for i in range(count):
        row = []
        for j in range(i + 1):
            total = None
            for k in range(i, count):
                total = job.submit("product", (i, j, k), _add_transposed_product, total, tiles[k, i], tiles[k, j])
            row.append(total)
        for j in range(i + 1):
            del tiles[i, j]
        waiting.append((i, row))
        while len(waiting) > (_AHEAD if i + 1 < count else 0):
            at, futures = waiting.popleft()
            for j in range(at + 1):
                _place(out, spans[at], spans[j], futures[j].result())
                futures[j] = None
            report(done := done + (at + 1) * (count - at))


def _place(out: Dense, rows: tuple[int, int], columns: tuple[int, int], tile: Dense) -> None:
    """Write a tile and its mirror image."""
    out[slice(*rows), slice(*columns)] = tile
    if rows == columns:
        lower = np.tril(tile)
        out[slice(*rows), slice(*rows)] = lower + np.tril(tile, -1).T
    else:
        out[slice(*columns), slice(*rows)] = tile.T


# --- tasks -------------------------------------------------------------------------------------------------------


def _inverse_of_factor(tile: Dense) -> Dense:
    """W_kk = L_kk⁻¹ with L_kk L_kkᵀ = A_kk."""
    result = np.array(tile, order="C")
    with one_core(), np.errstate(all="ignore"):
        clear_above_diagonal(result)
        invert_factor(result, np.empty(inverse_workspace_bytes(len(result), 1), result.dtype), lambda flops: None)
        return np.tril(result)


def _times_transposed(left: Dense, right: Dense) -> Dense:
    return _product(left, right, right_turned=True)


def _update(tile: Dense, left: Dense, right: Dense) -> Dense:
    product = _product(left, right, right_turned=True)
    return np.subtract(tile, product, out=product)


def _add_product(total: Dense | None, left: Dense, right: Dense) -> Dense:
    product = _product(left, right)
    return product if total is None else np.add(total, product, out=product)


def _minus_product(left: Dense, right: Dense) -> Dense:
    product = _product(left, right)
    return np.negative(product, out=product)


def _add_transposed_product(total: Dense | None, left: Dense, right: Dense) -> Dense:
    product = _product(left, right, left_turned=True)
    return product if total is None else np.add(total, product, out=product)


def _product(left: Dense, right: Dense, *, left_turned: bool = False, right_turned: bool = False) -> Dense:
    """A product that has the same bits wherever it is made.

    NumPy multiplies a tile by its own transpose in another way than two tiles, but notices only where it need not copy
    them first, as it has to with some that came over the network.
    """
    same = left is right
    left = np.require(left, requirements=["A", "C"])
    right = left if same else np.require(right, requirements=["A", "C"])
    with one_core():
        return np.asarray((left.T if left_turned else left) @ (right.T if right_turned else right))
