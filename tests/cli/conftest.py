"""A small shop, a model of it in every form, and a run of tuning: made once."""

import csv
from pathlib import Path

import numpy as np
import pytest

from relae import RDLAE, Interactions
from relae.baselines import LightGCN, Mark, Popularity
from relae.cli._wording import COMMAND_LINE
from relae.experiments import tune

TITLES = {0: "[red]Not markup[/red]", 1: "Two\nlines \x1b[31m", 2: "A title that is " + "very " * 30 + "long"}


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Visits of 160 users of four tastes to 48 items, whose ids are numbers; titles.csv is beside it."""
    folder = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(0)
    with (folder / "visits.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["who", "what", "stars"])
        for user in range(160):
            liked = np.arange(user % 4, 48, 4)
            weights = 1 / np.arange(1, len(liked) + 1)
            for item in rng.choice(liked, int(rng.integers(4, 10)), replace=False, p=weights / weights.sum()):
                rows.writerow([f"u{user:03}", 1000 + item, int(rng.integers(3, 6))])
            rows.writerow([f"u{user:03}", 1000 + int(rng.integers(48)), 5])
    with (folder / "titles.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["item", "title"])
        rows.writerows([1000 + item, TITLES.get(item, f"Title of {item}")] for item in range(47))  # one has none
    return folder / "visits.csv"


@pytest.fixture(scope="session")
def columns(table: Path) -> tuple[object, ...]:
    """The options that say how to read the table."""
    return ("--user", "who", "--item", "what", "--titles", table.with_name("titles.csv"))


@pytest.fixture(scope="session")
def data(table: Path) -> Interactions:
    return Interactions.read(table, user="who", item="what", titles=table.with_name("titles.csv"))


@pytest.fixture(scope="session")
def model(data: Interactions) -> RDLAE:
    return RDLAE(l2=10.0, dropout=0.2, xi=0.3).fit(data)


@pytest.fixture(scope="session")
def saved(model: RDLAE, data: Interactions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model as a folder that knows its users."""
    path = tmp_path_factory.mktemp("saved") / "model"
    model.save(path, form="primal", histories=data, title="visits.csv")
    return path


@pytest.fixture(scope="session")
def dual(data: Interactions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same in the dual form, without its users."""
    path = tmp_path_factory.mktemp("dual") / "model"
    RDLAE(l2=10.0, dropout=0.2, xi=0.3).fit(data, solver="dual").save(path, form="dual")
    return path


@pytest.fixture(scope="session")
def popular(data: Interactions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model without ξ, weights or explanations."""
    path = tmp_path_factory.mktemp("popular") / "model"
    Popularity().fit(data).save(path)
    return path


@pytest.fixture(scope="session")
def known(data: Interactions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of known users whose vectors were drawn, and not learned; without the ids of its users."""
    path = tmp_path_factory.mktemp("known") / "model"
    rng, sizes = np.random.default_rng(0), {"users": data.n_users, "items": data.n_items}
    model = LightGCN(dim=3)
    model._take({name: rng.random((size, 3), np.float32) for name, size in sizes.items()}, data)
    model.curve_, model.epochs_, model.best_epoch_, model.stopped_ = [Mark(45, 7.0, 0.6, 0.2)], 45, 30, "patience"
    model.save(path)
    return path


@pytest.fixture(scope="session")
def tuned(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of three inversions."""
    run = tmp_path_factory.mktemp("tuned") / "run"
    columns = {"user": "who", "item": "what", "titles": table.with_name("titles.csv")}
    tune(table, out=run, share=0.2, budget=3, objective="ndcg@10", test=False, wording=COMMAND_LINE, **columns)
    return run
