"""The first look: the version, and `relae demo` from end to end."""

import relae

from .suite import Shell


def test_version(shell: Shell) -> None:
    assert shell.ok("--version").strip() == f"relae {relae.__version__}"


def test_demo_shows_the_whole_way(shell: Shell) -> None:
    text = shell.ok("demo")
    for part in (
        "4,339 customers",
        "3,665 products",
        "CC BY 4.0",
        "primal solver",
        "EDLAE: zero diagonal",
        "DLAE: no constraint",
        "because of",
        "Similar to Regency cakestand 3 tier",
        "Roses regency teacup and saucer",
    ):
        assert part in text, part
    assert text.count("For customer") == 3
    commands = [line.split()[:2] for line in text.splitlines() if line.startswith("  relae ")]
    assert commands == [["relae", "tune"], ["relae", "fit"], ["relae", "serve"]]
