"""Models side by side on the same data: parameters chosen by validation users, figures by test users, one table."""

from relae.comparison._result import METRICS, LeftOut, Standing, Standings, holm
from relae.comparison._run import Contest, named

__all__ = ["METRICS", "Contest", "LeftOut", "Standing", "Standings", "holm", "named"]
