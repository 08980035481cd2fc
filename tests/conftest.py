"""Settings for the tests of every room."""

import os

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is not a bug.
settings.register_profile(
    "patient",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,  # new examples are looked for at a desk, not at the gate
)
settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, so that no process is left with it at the end; and leave minutes to RELAE_FULL."""
    items.sort(key=lambda item: "slow" not in item.keywords)
    if "RELAE_FULL" not in os.environ:
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="takes a minute or more: RELAE_FULL is not set"))
