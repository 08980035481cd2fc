"""The page on analysis does what it says."""

from ..test_docs import ROOT, python_blocks


def test_the_examples_run():
    blocks = python_blocks(ROOT / "docs/analysis.md")
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/analysis.md", "exec"), names)
    assert names["picture"].startswith(b"<?xml")
    assert names["popular"] > 0
