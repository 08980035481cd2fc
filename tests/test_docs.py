"""The README and the pages of the docs do what they say: their Python runs, block after block."""

import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from relae import registry
from relae.datasets._online_retail import embedded_folder

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for the tools beside the package


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture
def ratings_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    pairs = rng.random((300, 60)) < 0.2
    users, items = np.nonzero(pairs)
    names = np.concatenate([[260, 1196], np.arange(1, 59)])
    table = pl.DataFrame({"userId": users, "movieId": names[items], "rating": rng.integers(1, 6, len(users))})
    table.write_csv(tmp_path / "ratings.csv")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def smaller_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded data set without the products that few customers have, so that fits take little time."""
    folder = tmp_path_factory.mktemp("shop")
    with embedded_folder() as whole:
        rows = pl.read_parquet(whole / "interactions.parquet")
        rows.filter(pl.len().over("item") >= 60).write_parquet(folder / "interactions.parquet")
        shutil.copy(whole / "items.parquet", folder)
    return folder


@pytest.fixture
def shop_with_fewer_products(smaller_shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relae.datasets._online_retail.embedded_folder", lambda: nullcontext(smaller_shop))


@pytest.fixture
def registry_as_before() -> Iterator[None]:
    before = [(each, dict(each)) for each in (registry._names, registry._own)]
    yield
    for each, content in before:
        each.clear()
        each.update(content)  # type: ignore[arg-type]


@pytest.mark.long
@pytest.mark.usefixtures("ratings_in_the_working_folder", "shop_with_fewer_products", "registry_as_before")
@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        *(f"docs/{page}.md" for page in ("guide", "evaluation", "tuning", "large", "compare", "beyond", "extending")),
    ],
)
def test_the_examples_run(name: str) -> None:
    blocks = python_blocks(ROOT / name)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), names)


def test_every_page_of_the_docs_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if page not in navigation} == set()


@pytest.mark.parametrize("name", ["docs/commands.md", "docs/http.md", "docs/images/rooms.svg"])
def test_pages_that_are_made_from_the_program_are_up_to_date(name: str) -> None:
    from tools.reference import PAGES

    assert (ROOT / name).read_text(encoding="utf-8") == PAGES[name](), "run `make reference`"


def test_every_command_is_in_the_docs() -> None:
    """Asked of the program itself, and not of the tool that makes the page."""
    from typer.testing import CliRunner

    from relae.cli import app

    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")

    def commands(*path: str) -> list[str]:
        text = CliRunner().invoke(app, [*path, "--help"], env={"NO_COLOR": "1", "TERMINAL_WIDTH": "200"}).stdout
        tables = text.split("Options", 1)[1].split("─╯", 1)[1]
        return re.findall(r"^│ ([a-z][a-z-]*) ", tables, re.MULTILINE)

    found = commands()
    assert {"plan", "fit", "tune", "evaluate", "recommend", "similar", "explain", "export", "serve"} <= set(found)
    missing = [name for name in found if name != "datasets" and f"## relae {name}\n" not in page]
    missing += [name for name in commands("datasets") if f"## relae datasets {name}\n" not in page]
    assert missing == []


def test_every_public_name_is_in_the_reference() -> None:
    """A room is in it as a whole, so that a new class needs no line of its own."""
    page = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^::: (relae[.\w]*)$", page, re.MULTILINE))
    assert "members:" not in page, "no room is shown in part"
    rooms = {f"relae.{path.stem}" for path in (ROOT / "src/relae").glob("*.py") if not path.stem.startswith("_")}
    rooms |= {f"relae.{path.parent.name}" for path in (ROOT / "src/relae").glob("*/__init__.py")}
    internal = {"relae._common", "relae.cli", "relae.linalg"}  # the command line has a page of its own
    assert rooms - internal == {name for name in shown if name.count(".") == 1}


def test_files_named_for_contributors_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = [path for path in re.findall(r"`((?:src|docs|tests)/[\w./]+)`", text) if "NAME" not in path]
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []
