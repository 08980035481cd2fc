"""The work behind `relae figures`: files, words, and errors."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from relae import Interactions
from relae.cli._figures import figures
from relae.datasets import online_retail
from relae.errors import DataError
from relae.evaluation import Split, hold_out_users

SETTINGS = {"l2s": [10.0, 100.0, 1000.0], "dropouts": [0.0, 0.5], "xis": [0.0, 0.3, 1.0], "l2": 100.0}


@pytest.fixture(scope="module")
def shop() -> tuple[Interactions, Split]:
    data = online_retail().select_users(np.arange(400))
    return data, hold_out_users(data, share=0.3, rng=np.random.default_rng(0))


def test_all_figures_are_written_and_summed_up(shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, split = shop
    figures(data, split, "Online Retail", tmp_path / "new" / "folder", **SETTINGS, seed=1)
    folder = tmp_path / "new" / "folder"
    expected = {f"fig{n}.{kind}" for n in range(1, 6) for kind in ("png", "svg", "csv")}
    assert {path.name for path in folder.iterdir()} == expected
    assert pl.read_csv(folder / "fig1.csv")["l2"].unique().sort().to_list() == SETTINGS["l2s"]
    assert pl.read_csv(folder / "fig2.csv", infer_schema_length=None).height == 100 * 100
    for number, parameter in ((3, "xi"), (4, "l2"), (5, "dropout")):
        frame = pl.read_csv(folder / f"fig{number}.csv")
        assert frame[parameter].unique().sort().to_list() == SETTINGS[f"{parameter}s"]
        assert frame["group"].unique().sort().to_list() == ["all", "head", "tail"]
    shown = " ".join(capsys.readouterr().out.split())
    assert all(f"Figure {n}" in shown for n in range(1, 6))
    assert "of the diagonal constraints are gone" in shown
    assert "tail ndcg@100" in shown
    assert "fig5.png" in shown


def test_the_same_seed_gives_the_same_files(shop, tmp_path: Path) -> None:
    data, split = shop
    for name in ("a", "b"):
        figures(data, split, "shop", tmp_path / name, **SETTINGS, only=["fig3"])
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == ["fig3.csv", "fig3.png", "fig3.svg"]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)


def test_an_unknown_figure_is_an_error(shop, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no figure fig7: the figures are fig1, fig2"):
        figures(*shop, "shop", tmp_path, only=["1", "7"])


def test_a_folder_that_cannot_be_made_is_an_error(shop, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DataError, match="cannot be made"):
        figures(*shop, "shop", tmp_path / "file", only=["1"])
    assert (tmp_path / "file").read_text() == "mine"
