"""Settings for the laws of every room."""

from hypothesis import HealthCheck, settings

# A busy machine is not a bug.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
