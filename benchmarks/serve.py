"""What the service does under load: wrk on loopback, histories of 50 random items, k = 20, beside the model alone.

`python -m benchmarks.serve [data set or model folder] [requests]`: ml-1m (with RELAE_DATA set to a folder that contains
it) and 100,000 requests if not named; wrk must be on the PATH. One worker, one thread for the kernels, with the log on.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import psutil

from relae import RDLAE, datasets, linalg, store

LENGTH, K, BODIES, CONNECTIONS, SECONDS = 50, 20, 2_000, 16, 10

SERVE = "import sys; from relae.serve import Settings, run; run(Settings(path=sys.argv[1], port=0))"

WRK = """
local bodies, at = {}, 0
for line in io.lines("BODIES") do bodies[#bodies + 1] = line end
request = function()
  at = at % #bodies + 1
  return wrk.format("POST", "/v1/recommend", {["Content-Type"] = "application/json"}, bodies[at])
end
done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format('{"requests": %d, "us": %d, "p50": %d, "p99": %d, "errors": %d}\\n', summary.requests,
    summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
"""


def folder_of(name: str, scratch: Path) -> Path:
    """A model folder: the one named, or one made from a data set."""
    if (Path(name) / "model.json").exists():
        return Path(name)
    store.save(RDLAE(l2=100.0, dropout=0.3, xi=0.4).fit(datasets.get(name).load()), scratch / "model", form="primal")
    return scratch / "model"


def alone(model: object, histories: list[list[object]]) -> float:
    """Recommendations a second without a service, one history at a time, one thread."""
    linalg.limit_threads(1)
    for _ in range(2):  # the first time compiles kernels, and brings the map into memory
        started = perf_counter()
        for history in histories:
            model.recommend(history, K)
    return len(histories) / (perf_counter() - started)


def wrk(url: str, script: Path, seconds: int) -> dict[str, int]:
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}", "-s", str(script), url]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return json.loads(next(line for line in lines if line.startswith("{")))


def main(arguments: list[str]) -> None:
    if shutil.which("wrk") is None:
        sys.exit("wrk is not on the PATH: install it (Debian: apt install wrk)")
    name, wanted = arguments[0] if arguments else "ml-1m", int(arguments[1]) if len(arguments) > 1 else 100_000
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        path = folder_of(name, place)
        saved = store.open_model(path)
        rng, ids = np.random.default_rng(0), saved.model.items_.values
        histories = [rng.choice(ids, LENGTH, replace=False).tolist() for _ in range(BODIES)]
        (place / "bodies").write_text("".join(json.dumps({"history": each, "k": K}) + "\n" for each in histories))
        (place / "wrk.lua").write_text(WRK.replace("BODIES", str(place / "bodies")))
        rate = alone(saved.model, histories)
        with (place / "log").open("w") as log:
            service = subprocess.Popen([sys.executable, "-c", SERVE, str(path)], stderr=log)
        try:
            url = started(service, place / "log")
            wrk(url, place / "wrk.lua", 3)
            process = psutil.Process(service.pid)
            before, runs = process.memory_info(), []
            while sum(run["requests"] for run in runs) < wanted:
                runs.append(wrk(url, place / "wrk.lua", SECONDS))
            after = process.memory_info()
        finally:
            service.terminate()
            service.wait()
    requests = sum(run["requests"] for run in runs)
    served = requests / sum(run["us"] for run in runs) * 1e6
    line = {
        "benchmark": "serve",
        "data": name,
        "items": len(ids),
        "requests": requests,
        "requests_per_s": round(served),
        "model_alone_per_s": round(rate),
        "service_over_model": round(served / rate, 2),
        "p50_ms": round(float(np.median([run["p50"] for run in runs])) / 1000, 1),
        "p99_ms": round(float(np.median([run["p99"] for run in runs])) / 1000, 1),
        "worst_p99_ms": round(max(run["p99"] for run in runs) / 1000, 1),
        "errors": sum(run["errors"] for run in runs),
        "rss_mib": [round(memory.rss / 2**20, 1) for memory in (before, after)],  # before and after
        "own_mib": [round((memory.rss - memory.shared) / 2**20, 1) for memory in (before, after)],  # without the map
    }
    print(json.dumps(line))


def started(service: "subprocess.Popen[bytes]", log: Path) -> str:
    """Wait until it is ready; its address."""
    url = ""
    while service.poll() is None:
        for line in map(json.loads, log.read_text().splitlines()):
            url = line.get("url", url)
            if line["event"] == "ready":
                return url
    sys.exit(f"the service did not start: {log.read_text()}")


if __name__ == "__main__":
    main(sys.argv[1:])
