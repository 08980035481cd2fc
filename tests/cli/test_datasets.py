"""`relae datasets` as a person meets it."""

import dataclasses
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from relae import datasets
from relae.cli import app
from relae.data import Interactions
from relae.datasets import online_retail
from relae.errors import DataError

from ..datasets.server import serving
from ..real_data import real


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["datasets", *arguments], catch_exceptions=False)


def shown(*arguments):
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.usefixtures("empty")
def test_list_has_every_data_set_on_a_line_of_its_own():
    lines = shown("list").splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == datasets.names()
    assert max(map(len, lines)) <= 80
    gowalla, retail = (next(line for line in lines if line.startswith(name)) for name in ("gowalla", "online-retail"))
    assert gowalla.split() == ["gowalla", "yes", "missing", "29,858", "40,981", "1,027,370"]
    assert retail.split() == ["online-retail", "embedded", "4,339", "3,665", "266,802"]


def test_list_tells_what_is_here(empty):
    folder = empty / "data" / "gowalla"
    folder.mkdir(parents=True)
    for name in ("train.txt", "test.txt"):
        (folder / name).write_text("0 1\n")
    here = {entry["name"] for entry in json.loads(shown("list", "--json")) if entry["here"]}
    assert here == {"gowalla", "online-retail"}


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("name", datasets.names())
def test_info_says_it_all(name):
    dataset = datasets.get(name)
    text = shown("info", name)
    flat = " ".join(text.split())
    for part in (dataset.recipe, dataset.licence, dataset.citation, dataset.homepage, dataset.note):
        assert part in flat
    for file in dataset.files:
        assert file.name in text
        assert file.url is None or file.url in text
        assert file.md5 is None or file.md5 in text
    assert (f"relae datasets get {name}" in text) == bool(dataset.files)
    found = json.loads(shown("info", name, "--json"))
    assert found["recipe"] == dataset.recipe
    assert [file["md5"] for file in found["files"]] == [file.md5 for file in dataset.files]


def test_info_fits_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    text = shown("info", "netflix").replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_stats_of_the_embedded_one():
    text = shown("stats", "online-retail")
    for part in ("4,339", "3,665", "266,802", "1.68%", "0.59", "not among the paper's data sets"):
        assert part in text
    assert "paper " not in text.splitlines()[0]


def test_stats_beside_the_paper():
    real("gowalla")
    lines = shown("stats", "gowalla").splitlines()
    assert lines[0].split() == ["Gowalla", "paper", "ours"]
    assert [line.split() for line in lines[1:6]] == [
        ["users", "29,858", "29,858", "="],
        ["items", "40,981", "40,981", "="],
        ["ratings", "1,027,370", "1,027,370", "="],
        ["density", "0.01%", "0.08%", "≠", "differs"],
        ["Gini", "of", "items", "0.44", "0.43", "≠", "differs"],
    ]
    assert "By the paper's own counts the density is 0.08%" in lines[6]
    found = json.loads(shown("stats", "gowalla", "--json"))
    assert found["statistics"]["interactions"] == 1_027_370
    assert [row["equal"] for row in found["table1"]] == [True, True, True, False, False]


def test_get_shows_where_it_is():
    assert shown("get", "online-retail").startswith("Online Retail comes with the package")
    folder = real("gowalla")
    assert f"Gowalla is in {folder}" in shown("get", "gowalla")


def test_get_downloads_and_says_where_to(empty, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving({"/train.txt": b"0 1\n", "/test.txt": b"0 2\n"}) as site:
        gowalla = datasets.get("gowalla")
        files = tuple(dataclasses.replace(f, url=f"{site.url}/{f.name}", md5=None, size=None) for f in gowalla.files)
        monkeypatch.setattr(datasets._benchmarks, "BENCHMARKS", (dataclasses.replace(gowalla, files=files),))
        done = run("get", "gowalla")
    assert done.stdout.splitlines()[0] == f"Gowalla is in {empty / 'data' / 'gowalla'}"
    assert (empty / "data" / "gowalla" / "test.txt").read_bytes() == b"0 2\n"
    assert "Gowalla" not in done.stderr


def test_importing_is_light():
    code = (
        "import sys, relae.cli._datasets; print({'polars', 'numpy', 'rich.table', 'relae.models'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "polars" not in found
    assert "rich.table" not in found


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("stats", "gowalla"), "Gowalla needs 2 files that are not here: .* Run `relae datasets get gowalla`"),
        (("info", "gowala"), "did you mean 'gowalla'"),
        (("get", "netflix"), "Netflix no longer offers it"),
    ],
)
def test_errors_go_up_to_main(arguments, message):
    with pytest.raises(DataError, match=message) as caught:
        run(*arguments)
    assert "\n" not in str(caught.value)


def test_help_names_every_command():
    text = shown("--help")
    assert all(command in text for command in ("list", "info", "get", "stats"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_export_can_be_read_again(kind, tmp_path):
    said = shown("export", "online-retail", "--out", str(tmp_path), "--format", kind)
    assert f"{tmp_path}/interactions.{kind}: 266,802 rows" in said
    again = Interactions.read(tmp_path / f"interactions.{kind}", titles=tmp_path / f"items.{kind}")
    original = online_retail()
    assert (again.users, again.items) == (original.users, original.items)
    assert (again.matrix != original.matrix).nnz == 0
    assert again.titles.tolist() == original.titles.tolist()
