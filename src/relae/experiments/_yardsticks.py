"""Models that every table has, because others have to beat them: popularity and, where there are times, trending."""

from collections.abc import Iterator

from relae._common.progress import Progress
from relae.baselines import Popularity, Trending
from relae.evaluation import Split
from relae.recommender import HistoryRecommender
from relae.tuning import tune

POPULARITY, TRENDING = "popularity", "trending"
"""Their names, in the registry and as roles in a run."""

_BUDGET = 8  # windows that are tried; each costs a count and a ranking of the validation users


def list_yardsticks(*splits: Split) -> tuple[str, ...]:
    """Return the names of the yardsticks for these splits."""
    has_times = all(split.train.times is not None for split in splits)
    return (POPULARITY, TRENDING) if has_times else (POPULARITY,)


def make_yardsticks(
    valid: Split, test: Split, objective: str, *, seed: int = 0, progress: Progress | None = None
) -> Iterator[tuple[str, HistoryRecommender]]:
    """Yield the name of each yardstick and its model, not fitted; the window of trending is chosen on `valid`."""
    yield POPULARITY, Popularity()
    if TRENDING in list_yardsticks(valid, test):
        search = tune(Trending(), valid, objective=objective, budget=_BUDGET, metrics=(), seed=seed, progress=progress)
        yield TRENDING, search.chosen_model()
