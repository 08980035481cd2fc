"""How much is tested: RELAE_FAULTS adds the tests that kill and attack, RELAE_FULL many more examples of each law."""

import os

FULL = "RELAE_FULL" in os.environ
FAULTS = FULL or "RELAE_FAULTS" in os.environ


def repeat(few: int, many: int) -> int:
    """Return how many examples of a law to try."""
    return many if FULL else few


def repeat_faults(few: int, many: int) -> int:
    """Return how many attacks of a kind to try: many also where faults are tested."""
    return many if FAULTS else few
