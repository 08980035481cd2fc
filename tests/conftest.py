"""Settings for the laws of every room."""

import os

from hypothesis import HealthCheck, settings

# A busy machine is not a bug.
settings.register_profile(
    "patient",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,  # new examples are looked for at a desk, not at the gate
)
settings.load_profile("patient")
