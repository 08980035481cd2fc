"""Every command that writes: how an earlier result and a new one are made, and how to see that one is whole."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from relae import EASE, Interactions, store

from ..datasets.server import Site
from ..experiments.paper.conftest import write as write_gowalla

Command = Sequence[object]
Found = dict[str, Any]

FIRST, SECOND = b"first " * 20_000, b"second" * 20_000  # what is downloaded


@dataclass(frozen=True)
class Shop:
    """What the commands read."""

    folder: Path
    site: Site

    @classmethod
    def make(cls, folder: Path, site: Site) -> "Shop":
        """Write two tables, a model, a run and a benchmark; all of them small."""
        for name, seed in (("one", 0), ("two", 1)):
            rng = np.random.default_rng(seed)
            rows = [(user, item) for user in range(120) for item in rng.choice(40, 7, replace=False).tolist()]
            pl.DataFrame(rows, schema=["user", "item"], orient="row").write_csv(folder / f"{name}.csv")
        data = Interactions.read(folder / "one.csv")
        EASE(5.0).fit(data).save(folder / "model", form="primal", histories=data, title="one")
        write_gowalla(folder / "data" / "gowalla", users=200, items=60)
        write_gowalla(folder / "other" / "gowalla", users=200, items=60, seed=3)
        return cls(folder, site)


@dataclass(frozen=True)
class Case:
    """A command that writes into a folder of its own."""

    old: Callable[[Shop, Path], Command]  # makes the earlier result
    new: Callable[[Shop, Path], Command]  # makes the new one, in the same place
    look: Callable[[Path], Found]  # what there is, part by part; an error if a part is not whole
    env: Callable[[Shop], dict[str, str]] = lambda shop: {"RELAE_DATA": str(shop.folder / "data")}
    old_env: Callable[[Shop], dict[str, str]] | None = None
    setup: Callable[[Shop, Path], Command] | None = None  # what has to be there before either
    resumes: tuple[str, ...] = ()  # files to go on from, which a kill or a full disk may leave
    modules: tuple[str, ...] = ()  # of packages that need not be there
    goes_on: bool = False  # from the earlier result, which stays a part of the new one
    kills: int = 2  # of the quick tests


def listed(folder: Path) -> list[str]:
    """Return all that is in a folder, hidden or not, by names that do not change from run to run."""
    found = (str(path.relative_to(folder)) for path in folder.rglob("*"))
    return sorted(re.sub(r"arrays-[0-9a-f]{8}", "arrays", name) for name in found)


# --- what is whole -----------------------------------------------------------------------------------------------


def _digest(path: Path) -> str | None:
    return hashlib.md5(path.read_bytes()).hexdigest() if path.exists() else None


def _files(*names: str) -> Callable[[Path], Found]:
    return lambda folder: {name: _digest(folder / name) for name in names}


def _page(name: str) -> Callable[[Path], Found]:
    """Look at a page, but not at the name of the folder that it was made in."""

    def look(folder: Path) -> Found:
        text = (folder / name).read_text() if (folder / name).exists() else None
        return {name: text if text is None else re.sub(r"relae report \S+", "", text)}

    return look


def model_of(name: str) -> Callable[[Path], Found]:
    def look(folder: Path) -> Found:
        if not (folder / name / "model.json").exists():
            return {name: None}
        info = store.open_model(folder / name, verify=True).info
        sums = {key: entry["sha256"] for key, entry in info["arrays"].items()}
        return {name: (info["title"], info["parameters"], sums)}

    return look


def _run(folder: Path) -> Found:
    """A journal has whole trials, and the result is one of them."""
    found: Found = {"trials": None, "result": None, "points": None, "page": None}
    run = folder / "run"
    if (run / "journal.jsonl").exists():
        content = (run / "journal.jsonl").read_bytes()
        lines = content[: content.rfind(b"\n") + 1].decode().splitlines()
        found["trials"] = [{k: v for k, v in json.loads(line).items() if "seconds" not in k} for line in lines]
    if (run / "result.json").exists():
        result = json.loads((run / "result.json").read_text())
        found["result"] = (result["trials"], result["chosen"], result["best"])
    if (run / "points.csv").exists():
        found["points"] = pl.read_csv(run / "points.csv").height
    if (run / "result.md").exists():
        found["page"] = (run / "result.md").read_text().count("\n")
    return found


def _comparison(folder: Path) -> Found:
    found: Found = {}
    for path in (folder / "compared" / "models").glob("*.npz"):
        with np.load(path, allow_pickle=False) as file:
            record = json.loads(str(file["record"]))
            assert file["values"].shape[1] == len(record["metrics"])
        found[path.name] = record["row"]["name"]
    for path in (folder / "compared" / "models").glob("*.jsonl"):
        lines = path.read_bytes()
        found[path.name] = [
            {k: v for k, v in json.loads(line).items() if "seconds" not in k}
            for line in lines[: lines.rfind(b"\n") + 1].splitlines()
        ]
    place = folder / "compared"
    if (place / "result.json").exists():
        found["result"] = [row["model"] for row in json.loads((place / "result.json").read_text())["models"]]
    if (place / "table.csv").exists():
        found["table"] = pl.read_csv(place / "table.csv").height
    if (place / "table.md").exists():
        found["page"] = (place / "table.md").read_text().count("\n")
    return found


def _reproduced(folder: Path) -> Found:
    """Models are added as they are done, to each of the files."""
    found: Found = {}
    for kind in ("result.json", "table.csv", "table.md"):
        path = folder / "table3-gowalla" / kind
        if path.exists():
            text = path.read_text()
            names = re.findall(r'"model": "([A-Z]+)"|gowalla,([A-Z]+),recall|^\| ([A-Z]+) ', text, re.MULTILINE)
            found[kind] = ["".join(name) for name in names]
    return found


def _pictures(folder: Path) -> Found:
    found = _files("figures/fig1.csv")(folder)
    png, svg = folder / "figures" / "fig1.png", folder / "figures" / "fig1.svg"
    found["png"] = png.read_bytes().endswith(b"IEND\xaeB`\x82") if png.exists() else None
    found["svg"] = svg.read_text().rstrip().endswith("</svg>") if svg.exists() else None
    return found


def _training(folder: Path) -> Found:
    """A checkpoint that is there can be read."""
    path = folder / "training.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            assert all(file[name] is not None for name in file.files)
    return _files("scores.npy")(folder)


# --- functions instead of commands -------------------------------------------------------------------------------


def download(url: str, target: str) -> None:
    """Fetch a file; what it should be is not known, as of files without a published checksum."""
    from relae.datasets import _download

    _download._CHUNK = 1 << 12
    _download.fetch(_download.Remote(url, Path(target)))


def train(epochs: str, checkpoint: str, target: str) -> None:
    """Train, with a checkpoint after every epoch, and save what was learned."""
    from relae._common.files import atomic_file
    from relae.baselines import LightGCN
    from relae.baselines.neural import _training

    _training._KEEP_EVERY = -1.0
    matrix = (np.random.default_rng(0).random((40, 20)) < 0.3).astype(np.float32)
    model = LightGCN(dim=4, epochs=int(epochs), batch_size=64, validation_share=0.2, every=3)
    model.fit(matrix, checkpoint=checkpoint)
    with atomic_file(target) as part, part.open("wb") as file:
        np.save(file, model.score(matrix))


# --- all of them -------------------------------------------------------------------------------------------------


def _both(make: Callable[[Shop, Path, Any], Command], old: Any, new: Any, **more: Any) -> dict[str, Any]:
    """Make two commands out of one and a word that differs."""
    return {"old": lambda s, p: make(s, p, old), "new": lambda s, p: make(s, p, new), **more}


def _fit(shop: Shop, place: Path, name: str) -> Command:
    return ("relae", "fit", shop.folder / f"{name}.csv", "--model", "ease", "--out", place / "model")


def _fit_trained(shop: Shop, place: Path, name: str) -> Command:
    options = ("--set", "epochs=3", "--set", "hidden=8", "--set", "dim=4", "--set", "batch_size=64")
    return ("relae", "fit", shop.folder / f"{name}.csv", "--model", "multvae", *options, "--out", place / "model")


def _tune(shop: Shop, place: Path, budget: int) -> Command:
    options = ("--objective", "ndcg@10", "--budget", budget, "--no-test")
    return ("relae", "tune", shop.folder / "one.csv", *options, "--out", place / "run")


def _compare(shop: Shop, place: Path, models: str) -> Command:
    options = ("--models", models, "--k", 10, "--budget", 2)
    return ("relae", "compare", shop.folder / "one.csv", *options, "--out", place / "compared")


def _report(shop: Shop, place: Path, samples: int) -> Command:
    return ("relae", "report", place / "run", "--samples", samples)


def _recommend(kind: str) -> Callable[[Shop, Path, int], Command]:
    return lambda shop, place, k: (
        *("relae", "recommend", shop.folder / "model", "--all-users"),
        *("--k", k, "--out", place / f"recs.{kind}"),
    )


def _export(shop: Shop, place: Path, top: int) -> Command:
    return ("relae", "export", shop.folder / "model", "--top", top, "--out", place / "weights.parquet")


def _compact(shop: Shop, place: Path, per_item: int) -> Command:
    return ("relae", "compact", shop.folder / "model", "--per-item", per_item, "--out", place / "small")


def _evaluate(shop: Shop, place: Path, k: int) -> Command:
    return ("relae", "evaluate", shop.folder / "one.csv", "--model", "ease", "--k", k, "--out", place / "figures.json")


def _figures(shop: Shop, place: Path, name: str) -> Command:
    return ("relae", "figures", shop.folder / f"{name}.csv", "--only", "1", "--out", place / "figures")


def _reproduce(shop: Shop, place: Path, models: str) -> Command:
    options = ("--dataset", "gowalla", "--models", models, "--tolerance", 1)
    return ("relae", "reproduce", "table3", *options, "--out", place)


def _tables(shop: Shop, place: Path, kind: str) -> Command:
    return ("relae", "datasets", "export", "gowalla", "--out", place / "tables")


def _download(shop: Shop, place: Path, name: str) -> Command:
    return (f"{__name__}:download", f"{shop.site.url}/{name}", place / "data.bin")


def _train(shop: Shop, place: Path, epochs: int) -> Command:
    return (f"{__name__}:train", epochs, place / "training.npz", place / "scores.npy")


_TORCH = ("torch", "torch._dynamo", "relae.baselines.neural")
_MATPLOTLIB = ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg")

CASES = {
    "fit": Case(**_both(_fit, "one", "two", look=model_of("model"))),
    "fit, trained": Case(
        **_both(_fit_trained, "one", "two", look=model_of("model"), resumes=("model.training",), modules=_TORCH)
    ),
    "tune": Case(**_both(_tune, 2, 4, look=_run, goes_on=True)),
    "compare": Case(**_both(_compare, "itemknn", "itemknn,ease", look=_comparison, goes_on=True)),
    "report": Case(
        **_both(_report, 0, 2, look=_page("run/report.html"), setup=lambda shop, place: _tune(shop, place, 2))
    ),
    "recommend to CSV": Case(**_both(_recommend("csv"), 3, 5, look=_files("recs.csv"))),
    "recommend to Parquet": Case(**_both(_recommend("parquet"), 3, 5, look=_files("recs.parquet"))),
    "export": Case(**_both(_export, 3, 5, look=_files("weights.parquet"))),
    "compact": Case(**_both(_compact, 5, 9, look=model_of("small"))),
    "evaluate": Case(**_both(_evaluate, 5, 10, look=_files("figures.json"))),
    "figures": Case(**_both(_figures, "one", "two", look=_pictures, modules=_MATPLOTLIB, kills=1)),
    "reproduce": Case(**_both(_reproduce, "ease", "lae,ease,dlae", look=_reproduced, goes_on=True)),
    "datasets export": Case(
        **_both(_tables, "csv", "csv", look=_files("tables/interactions.csv")),
        old_env=lambda shop: {"RELAE_DATA": str(shop.folder / "other")},
    ),
    "download": Case(
        **_both(_download, "first", "second", look=_files("data.bin")),
        resumes=("data.bin.part", "data.bin.part.json"),
    ),
    "training": Case(**_both(_train, 4, 8, look=_training, goes_on=True), resumes=("training.npz",), modules=_TORCH),
}
