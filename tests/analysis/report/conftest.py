"""One run and its page, for all tests of the report."""

import pytest

from relae.cli import _report

from .suite import reported, tuned


@pytest.fixture(scope="package")
def run(tmp_path_factory):
    return tuned(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="package")
def data(run):
    """What the page is drawn from."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        real = _report.report.render
        patch.setattr(_report.report, "render", lambda given: seen.append(given) or real(given))
        reported(run)
    return seen[0]


@pytest.fixture(scope="package")
def page(run, data):
    return (run / "report.html").read_text(encoding="utf-8")
