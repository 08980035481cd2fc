"""One run and its page, for all tests of the report."""

import pytest

from relae.experiments import Run
from relae.report import make_report

from .suite import DAY, reported, tuned


@pytest.fixture(scope="package")
def run(tmp_path_factory):
    return tuned(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="package")
def report(run):
    """What the page is drawn from."""
    read = Run.read(run)
    return make_report(read, read.tuning, today=DAY)


@pytest.fixture(scope="package")
def page(run):
    return reported(run)
