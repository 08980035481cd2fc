"""A small run to report on, titles that try to break out of the page, and a reader of pages."""

import csv
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from relae.cli._wording import COMMAND_LINE
from relae.experiments import Run, tune
from relae.report import write_report

HOSTILE = (
    "<script>alert('1')</script>",
    '"><img src=http://evil.example/x onerror=alert(1)>',
    'Tom & Jerry\'s "best" </title></style></svg>',
    "‮desrever \x00\x07 control",
    "javascript:alert(1)",
    "&lt;b&gt; already escaped",
    "x" * 500,
)
DAY = date(2024, 2, 29)


def write_table(folder: Path, users: int = 160, items: int = 48, seed: int = 0, titles: bool = True) -> Path:
    """Users of four tastes, popular and unpopular items, and titles that nobody should trust."""
    rng = np.random.default_rng(seed)
    table = folder / "visits.csv"
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["user", "item"])
        for user in range(users):
            liked = np.arange(user % 4, items, 4)
            weights = 1 / np.arange(1, len(liked) + 1)
            count = int(rng.integers(4, 10))
            for item in rng.choice(liked, count, replace=False, p=weights / weights.sum()):
                rows.writerow([f"u{user}@mail.example", f"i{item}"])
            rows.writerow([f"u{user}@mail.example", f"i{rng.integers(items)}"])
    if titles:
        with (folder / "titles.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["item", "title"])
            for item in range(items):
                rows.writerow([f"i{item}", HOSTILE[item] if item < len(HOSTILE) else f"Title of {item}"])
    return table


def tuned(folder: Path, *, test: bool = True, **changes: object) -> Path:
    """Return the folder of a run of three inversions."""
    table = write_table(folder)
    options = {"budget": 3, "objective": "ndcg@10", "share": 0.2, "wording": COMMAND_LINE} | changes
    tune(table, out=folder / "run", test=test, titles=folder / "titles.csv", **options)
    return folder / "run"


def reported(run: Path, **options: object) -> str:
    """Return the page of a run."""
    return write_report(Run.read(run), today=DAY, **options).read_text(encoding="utf-8")


class Page(HTMLParser):
    """A page in pieces: tags with their attributes, tables as rows of words, all text, and whether tags nest."""

    VOID = frozenset({"meta", "br", "hr"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.words: list[str] = []
        self.style, self.open, self.crossed = "", [], []
        self._caption, self._cell = "", None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in self.VOID:
            return
        self.open.append(tag)
        if tag == "caption":
            self._caption = ""
        elif tag == "tr":
            self.tables.setdefault(self._caption, []).append([])
        elif tag in ("td", "th"):
            self._cell = ""

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.crossed.append(tag)
        if tag in ("td", "th"):
            self.tables[self._caption][-1].append(self._cell.strip())
            self._cell = None

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.style += data
            return
        self.words.append(data)
        if self.open and self.open[-1] == "caption":
            self._caption += data
        if self._cell is not None:
            self._cell += f"{data}\n"

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def values(self, attribute: str) -> list[str]:
        return [attrs[attribute] or "" for _, attrs in self.tags if attribute in attrs]
