"""Interactions larger than memory: a stream from Parquet to a matrix, beside the time of merely reading the columns.

`python -m benchmarks.scan [users items interactions]` makes the data once, in a folder of benchmarks/cache, and
scans it in a process of its own, so that the peak of memory is that of the scan.
`python -m benchmarks.scan --make FOLDER users items interactions` only makes the data.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.large import high_water_bytes

SIZES = (1_000_000, 250_000, 25_000_000)  # users, items, interactions
CLUSTER = 500  # items of one taste
ROWS_PER_FILE = 5_000_000
LONGEST = 2_000  # interactions of the busiest user
TASTE = 0.8  # the share of a user's choices within the clusters that the user likes


def make(folder: Path, users: int, items: int, interactions: int, seed: int = 0) -> None:
    """Write Parquet files with the columns user and item, block by block: a folder appears only when it is whole.

    Popularity falls with the 0.9th power of the rank, from about 2% of the users to a floor of a sixth of the mean.
    Items belong to clusters of `CLUSTER`. A user likes a few clusters, the more the busier, and mostly chooses in
    them by popularity. Each file has its share of every user, as a log of events would.
    """
    rng = np.random.default_rng(seed)
    activity = _activity(rng, users, interactions)
    popularity = (rng.permutation(items) + 200.0) ** -0.9
    by_cluster = rng.permutation(items)  # position to item: cluster after cluster
    cumulative = np.concatenate([[0.0], np.cumsum(popularity[by_cluster])])
    bounds = np.minimum(np.arange(0, items + CLUSTER, CLUSTER), items)
    phase = rng.random(users)
    n_files = max(-(-interactions // ROWS_PER_FILE), 4)
    part = folder.with_name(folder.name + ".part")
    part.mkdir(parents=True, exist_ok=True)
    for file in range(n_files):
        # The differences of a rounded line: over all files they sum to the activity.
        before, after = (np.floor(activity * ((file + end) / n_files) + phase) for end in (0, 1))
        user = np.repeat(np.arange(users), (after - before).astype(np.int64))
        rng.shuffle(user)
        item = _choose(rng, user, activity[user], cumulative, bounds, by_cluster)
        _write(part / f"{file:03}.parquet", user, item)
    part.rename(folder)


def _activity(rng: np.random.Generator, users: int, interactions: int) -> NDArray[np.float64]:
    """How much each user does: log-normal, cut at both ends, with exactly the wanted sum."""
    raw = rng.lognormal(0.0, 1.0, users)
    low, high = 0.0, 4.0 * interactions / users
    for _ in range(50):  # bisect the scale: rounding and cutting make the sum a staircase
        scale = (low + high) / 2
        activity = np.clip(np.rint(raw * scale), 1, LONGEST)
        low, high = (scale, high) if activity.sum() < interactions else (low, scale)
    rest = int(interactions - activity.sum())
    movable = np.flatnonzero((activity > 1) & (activity < LONGEST))
    activity[rng.choice(movable, abs(rest), replace=False)] += np.sign(rest)
    return activity


def _choose(
    rng: np.random.Generator,
    user: NDArray[np.int64],
    activity: NDArray[np.float64],
    cumulative: NDArray[np.float64],
    bounds: NDArray[np.int64],
    by_cluster: NDArray[np.int64],
) -> NDArray[np.int64]:
    """One item per row: by popularity, within a cluster that the user likes or anywhere."""
    liked = 4 + activity / 16  # so many clusters, the first ones more
    slot = (liked * rng.random(len(user)) ** 2).astype(np.int64)
    total = cumulative[-1]
    # The clusters of a user are a hash of (user, slot): nothing to store, and popular clusters have more users.
    position = np.searchsorted(cumulative[bounds], _uniform(user * 4096 + slot) * total, side="right") - 1
    low, high = cumulative[bounds[position]], cumulative[bounds[position + 1]]
    anywhere = rng.random(len(user)) > TASTE
    low[anywhere], high[anywhere] = 0.0, total
    chosen = np.searchsorted(cumulative, low + rng.random(len(user)) * (high - low), side="right") - 1
    return by_cluster[np.minimum(chosen, len(by_cluster) - 1)]


def _uniform(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """A number in [0, 1) for each integer, always the same: the finalizer of splitmix64."""
    x = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _write(path: Path, user: NDArray[np.int64], item: NDArray[np.int64]) -> None:
    import polars as pl

    pl.DataFrame({"user": user, "item": item}).write_parquet(path, compression="zstd", compression_level=1)


def read_columns(folder: Path) -> int:
    """The floor: the columns batch by batch, and nothing done with them."""
    import polars as pl

    return sum(rows.height for rows in pl.scan_parquet(folder / "*.parquet").select("user", "item").collect_batches())


def work(what: str, folder: Path) -> None:
    """Read or scan a folder in this process, and print a line for the parent."""
    import polars  # noqa: F401  # the time is that of the work, not of the import

    from relae import Interactions

    start, cpu_start = time.perf_counter(), time.process_time()
    if what == "floor":
        line: dict[str, object] = {"rows": read_columns(folder)}
    else:
        data = Interactions.read(folder)
        arrays = (data.matrix.data, data.matrix.indices, data.matrix.indptr, data.users.values, data.items.values)
        line = {
            "users": data.n_users,
            "items": data.n_items,
            "interactions": data.n_interactions,
            "result_gib": round(sum(array.nbytes for array in arrays) / 2**30, 2),
        }
    took = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start}
    print(json.dumps({**line, **took, "peak_gib": round(high_water_bytes(os.getpid()) / 2**30, 2)}))


def run(what: str, folder: Path) -> dict[str, float]:
    """What a process of its own found, with the seconds of all its threads and the peak of its memory."""
    command = [sys.executable, "-m", "benchmarks.scan", "--work", what, str(folder)]
    line = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    found: dict[str, float] = json.loads(line)
    return found


def main(arguments: list[str]) -> None:
    users, items, interactions = map(int, arguments) if arguments else SIZES
    folder = Path(__file__).parent / "cache" / f"scan-{users}-{items}-{interactions}"
    if not folder.is_dir():
        make(folder, users, items, interactions)
    floor, scanned = run("floor", folder), run("scan", folder)
    line = {
        "benchmark": "scan",
        "rows": floor["rows"],
        "users": scanned["users"],
        "items": scanned["items"],
        "interactions": scanned["interactions"],
        "seconds": round(scanned["seconds"], 1),
        "cpu_s": round(scanned["cpu_seconds"], 1),
        "rows_per_s": round(floor["rows"] / scanned["seconds"]),
        "peak_gib": scanned["peak_gib"],
        "result_gib": scanned["result_gib"],
        "read_floor_s": round(floor["seconds"], 2),
        "read_floor_cpu_s": round(floor["cpu_seconds"], 1),
        "read_floor_peak_gib": floor["peak_gib"],
        "scan_over_floor": round(scanned["seconds"] / floor["seconds"], 1),
    }
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make(Path(sys.argv[2]), *map(int, sys.argv[3:6]))
    elif sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], Path(sys.argv[3]))
    else:
        main(sys.argv[1:])
