"""Settings for the tests of every room."""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from .cli.suite import Shell
from .effort import FAULTS, FULL, repeat

# A busy machine is not a bug.
settings.register_profile(
    "patient",
    deadline=None,
    max_examples=repeat(30, 100),
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,  # new examples are looked for at a desk, not at the gate
)
settings.load_profile("patient")


@pytest.fixture
def shell(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The command line in this process."""
    return Shell(capfd, monkeypatch)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Let the collector of garbage pass by all modules and tests: none of them goes before the end."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, so that no process is left with it at the end; and skip what is not wanted."""
    items.sort(key=lambda item: not {"slow", "long"} & set(item.keywords))
    for item in items:
        if "slow" in item.keywords and not FULL:
            item.add_marker(pytest.mark.skip(reason="takes a minute or more: RELAE_FULL is not set"))
        elif "faults" in item.keywords and not FAULTS:
            item.add_marker(pytest.mark.skip(reason="kills and attacks many processes: RELAE_FAULTS is not set"))
