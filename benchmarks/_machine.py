"""What a figure was measured on, and the floors it is compared with."""

import os
import platform
import statistics
import time
from collections.abc import Callable

import numpy as np


def describe() -> dict[str, object]:
    """The machine in a few words."""
    import psutil
    import threadpoolctl

    np.ones((2, 2)) @ np.ones((2, 2))
    pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    blas = next((pool for pool in pools if "numpy" in pool["filepath"]), pools[0])
    cpu = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), cpu)
    return {
        "benchmark": "machine",
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "blas": f"{blas['internal_api']} {blas['version']} {blas.get('architecture', '')}".strip(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """The median time of some repeats."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def sgemm_floor(n: int, repeats: int = 3) -> float:
    """Seconds that sgemm takes for n³ flops: a product of (n/2, n) by (n, n)."""
    rng = np.random.default_rng(0)
    left, right = rng.random((n // 2, n), dtype=np.float32), rng.random((n, n), dtype=np.float32)
    out = np.empty((n // 2, n), np.float32)
    np.matmul(left[:64], right, out=out[:64])
    return seconds(lambda: np.matmul(left, right, out=out), repeats)
