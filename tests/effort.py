"""How often a test repeats itself: a few times by default, many times where RELAE_FULL is set."""

import os

FULL = "RELAE_FULL" in os.environ


def repeat(few: int, many: int) -> int:
    """Return how many examples of a law to try."""
    return many if FULL else few
