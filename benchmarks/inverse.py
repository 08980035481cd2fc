"""The inverse of a symmetric positive definite matrix: ours, NumPy's and SciPy's, in one process.

`python -m benchmarks.inverse [n …]`
"""

import json
import sys
from functools import partial

import numpy as np
import scipy.linalg

from benchmarks._machine import seconds, sgemm_floor
from relae.linalg import invert_spd


def gram_like(n: int) -> np.ndarray:
    """A symmetric positive definite float32 matrix with the spread of eigenvalues of a Gram matrix plus a penalty."""
    factor = np.random.default_rng(n).standard_normal((n, n // 4), dtype=np.float32)
    square = factor @ factor.T
    square.flat[:: n + 1] += n / 10
    return square


def compare(n: int) -> dict[str, object]:
    square = gram_like(n)
    repeats = 3
    work = np.empty_like(square)
    floors, ours = [], []
    for _ in range(repeats):  # alternating, so that a slow minute meets both
        floors.append(sgemm_floor(n, 1))
        np.copyto(work, square)
        ours.append(seconds(partial(invert_spd, work)))
    floor, our = float(np.median(floors)), float(np.median(ours))
    probe = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    residual = float(np.linalg.norm(square @ (work @ probe) - probe) / np.linalg.norm(probe))
    numpy32 = seconds(lambda: np.linalg.inv(square), 1 if n > 8000 else repeats)
    scipy32 = seconds(lambda: scipy.linalg.inv(square), 1 if n > 8000 else repeats)
    double = square.astype(np.float64)
    numpy64 = seconds(lambda: np.linalg.inv(double), 1 if n > 8000 else repeats)
    return {
        "benchmark": "inverse",
        "n": n,
        "sgemm_n3_s": round(floor, 3),
        "relae_s": round(our, 3),
        "numpy_float32_s": round(numpy32, 3),
        "scipy_float32_s": round(scipy32, 3),
        "numpy_float64_s": round(numpy64, 3),
        "relae_over_sgemm": round(our / floor, 3),
        "numpy_float32_over_relae": round(numpy32 / our, 2),
        "scipy_float32_over_relae": round(scipy32 / our, 2),
        "numpy_float64_over_relae": round(numpy64 / our, 2),
        "residual": residual,
    }


def main(sizes: list[int]) -> None:
    for n in sizes or [4_000, 8_000, 16_000]:
        print(json.dumps(compare(n)), flush=True)


if __name__ == "__main__":
    main([int(n) for n in sys.argv[1:]])
