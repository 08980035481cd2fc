"""One cluster of separate processes for all tests of the room."""

import pytest


@pytest.fixture(scope="package")  # its processes are busy even when nothing is asked of them
def shared_client():
    from .suite import running  # late: it skips the tests that import it where Dask is missing

    with running("1.5GiB") as client:
        yield client


@pytest.fixture
def client(shared_client):
    """The cluster with enough of its workers; one that was killed may take its time to come back."""
    shared_client.wait_for_workers(2, timeout=60)
    return shared_client
