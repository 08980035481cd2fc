"""The big fits: time against sgemm's floor, and the peak of memory seen from outside, beside the forecast.

`python -m benchmarks.large [data set …]`. Each fit runs in a process of its own; the parent reads the high-water
mark of its memory when the fit is done, and again at its end.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

from benchmarks._machine import sgemm_floor
from benchmarks.data import load

RECOMMEND_USERS = 10_000
FLOOR_SIZE = 12_000  # sgemm's rate is the same for anything larger


def timed(work: Callable[..., object], seconds: list[float], *arguments: object, **keywords: object) -> object:
    start = time.perf_counter()
    result = work(*arguments, **keywords)
    seconds.append(time.perf_counter() - start)
    return result


def work(dataset: str) -> None:
    from relae import EASE
    from relae.solvers import _dual, _primal, plan

    matrix = load(dataset)
    EASE(1.0).fit(matrix[:200, :][:, :50] + 0)  # warm up: what follows measures work, not the compiler
    forecast = plan(*matrix.shape, matrix.nnz)
    model = EASE(100.0)
    gram_seconds: list[float] = []
    for module in (_primal, _dual):
        module.gram = partial(timed, module.gram, gram_seconds)
    start = time.perf_counter()
    model.fit(matrix)
    fit_seconds = time.perf_counter() - start
    line = {
        "solver": model.plan_.solver,
        "square": model.plan_.chosen.square,
        "fit_s": fit_seconds,
        "gram_s": gram_seconds[-1],
        "residual": model.residual_,
        "forecast_peak_bytes": forecast.peak_bytes,
    }
    print(json.dumps(line), flush=True)
    sys.stdin.readline()  # the parent looks at our memory now
    users = min(RECOMMEND_USERS, matrix.shape[0])
    start = time.perf_counter()
    model.recommend(matrix[:users], k=100)
    known = time.perf_counter() - start
    new = matrix[:500].copy()
    new.data[:] = 1.0
    new = new[:, ::-1]  # histories that no training user has
    start = time.perf_counter()
    model.recommend(new, k=100)
    print(json.dumps({"recommend_users": users, "recommend_s": known, "new_500_users_s": time.perf_counter() - start}))


def high_water_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/status") as lines:
        [line] = [line for line in lines if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def measure(dataset: str) -> dict[str, object]:
    floor_before = sgemm_floor(FLOOR_SIZE)
    command = [sys.executable, "-m", "benchmarks.large", "--work", dataset]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None
    fit = json.loads(child.stdout.readline())
    fit_peak = high_water_bytes(child.pid)
    child.stdin.write("\n")
    child.stdin.flush()
    recommend = json.loads(child.stdout.readline())
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        raise SystemExit(f"{dataset}: the fit's process ended with status {status}")
    floor_rate = 2 * FLOOR_SIZE**3 / (floor_before + sgemm_floor(FLOOR_SIZE))
    square = fit["square"]
    floor = square**3 / floor_rate
    return {
        "benchmark": "large",
        "data": dataset,
        "solver": fit["solver"],
        "square": square,
        "fit_s": round(fit["fit_s"], 1),
        "sgemm_floor_s": round(floor, 1),
        "fit_over_sgemm": round(fit["fit_s"] / floor, 3),
        "gram_s": round(fit["gram_s"], 2),
        "gram_share_of_fit": round(fit["gram_s"] / fit["fit_s"], 4),
        "residual": fit["residual"],
        "fit_peak_gib": round(fit_peak / 2**30, 2),
        "square_gib": round(4 * square**2 / 2**30, 2),
        "forecast_gib": round(fit["forecast_peak_bytes"] / 2**30, 2),
        "forecast_over_peak": round(fit["forecast_peak_bytes"] / fit_peak, 3),
        "recommend_users": recommend["recommend_users"],
        "recommend_s": round(recommend["recommend_s"], 1),
        "new_500_users_s": round(recommend["new_500_users_s"], 1),
        "whole_peak_gib": round(usage.ru_maxrss * 1024 / 2**30, 2),
    }


def main(datasets: list[str]) -> None:
    for dataset in datasets or ["gowalla", "ml-20m-shaped", "amazon-book-shaped"]:
        load(dataset)  # made once, outside of what is measured
        print(json.dumps(measure(dataset)), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2])
    else:
        main(sys.argv[1:])
