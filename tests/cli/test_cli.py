"""The first look: the version, and `relae demo` from end to end."""

import relae

from .suite import shown


def test_version() -> None:
    assert shown("--version").strip() == f"relae {relae.__version__}"


def test_demo_shows_the_whole_way() -> None:
    text = shown("demo")
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
