"""Fit, then top-100 for all users, on the same matrix: relae, irspack and implicit, each in its own process.

`python -m benchmarks.peers [data set …]`; a peer that is not installed is named and left out.
"""

import importlib.util
import json
import subprocess
import sys
import time

import numpy as np

from benchmarks.data import load

SYSTEMS = ("relae-ease", "relae-edlae", "irspack-ease", "irspack-edlae", "implicit-itemknn")
K, L2, DROPOUT = 100, 100.0, 0.3


def run_relae(matrix, edlae: bool) -> tuple[float, float]:
    from relae import EASE, EDLAE

    model = EDLAE(L2, DROPOUT) if edlae else EASE(L2)
    start = time.perf_counter()
    model.fit(matrix)
    fitted = time.perf_counter()
    ids, _ = model.recommend(matrix, k=K)
    done = time.perf_counter()
    assert ids.shape == (matrix.shape[0], K)
    return fitted - start, done - fitted


def run_irspack(matrix, edlae: bool) -> tuple[float, float]:
    import scipy.sparse as sp
    from irspack.recommenders import DenseSLIMRecommender, EDLAERecommender
    from irspack.utils.id_mapping import ItemIDMapper

    old_style = sp.csr_matrix(matrix)
    start = time.perf_counter()
    if edlae:
        model = EDLAERecommender(old_style, reg=L2, dropout_p=DROPOUT).learn()
    else:
        model = DenseSLIMRecommender(old_style, reg=L2).learn()
    fitted = time.perf_counter()
    mapper = ItemIDMapper(list(range(matrix.shape[1])))
    for lo in range(0, matrix.shape[0], 2048):
        scores = model.get_score_remove_seen_block(lo, min(lo + 2048, matrix.shape[0]))
        mapper.score_to_recommended_items_batch(scores, K, n_threads=2)
    return fitted - start, time.perf_counter() - fitted


def run_implicit(matrix) -> tuple[float, float]:
    import scipy.sparse as sp
    from implicit.nearest_neighbours import CosineRecommender

    old_style = sp.csr_matrix(matrix)
    start = time.perf_counter()
    model = CosineRecommender(K=20)
    model.fit(old_style, show_progress=False)
    fitted = time.perf_counter()
    ids, _ = model.recommend(np.arange(matrix.shape[0]), old_style, N=K)
    done = time.perf_counter()
    assert ids.shape == (matrix.shape[0], K)
    return fitted - start, done - fitted


def work(system: str, dataset: str) -> None:
    """Measure one system three times (the first one warms up caches and compilers), print the best."""
    matrix = load(dataset)
    package, _, model = system.partition("-")
    runs = []
    for _ in range(2 if package == "irspack" else 3):
        if package == "relae":
            runs.append(run_relae(matrix, model == "edlae"))
        elif package == "irspack":
            runs.append(run_irspack(matrix, model == "edlae"))
        else:
            runs.append(run_implicit(matrix))
    fit, recommend = (min(times) for times in zip(*runs, strict=True))
    print(json.dumps({"fit_s": round(fit, 3), "recommend_s": round(recommend, 3)}))


def main(datasets: list[str]) -> None:
    for dataset in datasets or ["ml-1m", "pinterest-shaped"]:
        users, items = load(dataset).shape
        line: dict[str, object] = {"benchmark": "peers", "data": dataset, "users": users, "items": items, "k": K}
        seconds: dict[str, dict[str, float]] = {}
        for system in SYSTEMS:
            if importlib.util.find_spec(system.partition("-")[0]) is None:
                line[system] = "not installed"
                continue
            command = [sys.executable, "-m", "benchmarks.peers", "--work", system, dataset]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                line[system] = f"failed with code {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
                continue
            seconds[system] = json.loads(done.stdout.splitlines()[-1])
            line[system] = seconds[system]
        for name, ours, theirs, phase in (
            ("irspack_ease_fit_over_relae", "relae-ease", "irspack-ease", "fit_s"),
            ("irspack_edlae_fit_over_relae", "relae-edlae", "irspack-edlae", "fit_s"),
            ("irspack_ease_recommend_over_relae", "relae-ease", "irspack-ease", "recommend_s"),
            ("irspack_edlae_recommend_over_relae", "relae-edlae", "irspack-edlae", "recommend_s"),
            ("implicit_itemknn_recommend_over_relae_ease", "relae-ease", "implicit-itemknn", "recommend_s"),
        ):
            if ours in seconds and theirs in seconds:
                line[name] = round(seconds[theirs][phase] / seconds[ours][phase], 2)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:4])
    else:
        main(sys.argv[1:])
