"""Progress of long work: one kind of callback, and how callbacks are put together."""

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called with the name of a stage and the fraction of it that is done."""

Fraction = Callable[[float], None]
"""Called with the fraction of one stage that is done."""

_FIT = 0.8  # of the time of a fit and its evaluation
_FIT_STAGES = ("inverse", "singular vectors", "least squares", "train")  # nearly all of a fit


def of_stage(progress: Progress | None, stage: str) -> Fraction | None:
    """Return a callback for the fractions of one stage; None where nobody listens."""
    return None if progress is None else lambda fraction: progress(stage, fraction)


def of_part(progress: Progress | None, start: float, stop: float, total: float) -> Progress | None:
    """Return a callback for one part of the work, from `start` to `stop` of `total`."""
    if progress is None:
        return None
    return lambda stage, fraction: progress(stage, (start + (stop - start) * fraction) / total)


def prefixed(progress: Progress | None, prefix: str) -> Progress | None:
    """Return a callback that puts a prefix before the name of each stage."""
    return None if progress is None else lambda stage, fraction: progress(f"{prefix}: {stage}", fraction)


def of_trials(progress: Progress | None, title: str, done: int, size: int) -> Progress | None:
    """Report the stages of one fit and its evaluation, and under `title` how much of `size` of them is done."""
    if progress is None:
        return None

    def report(stage: str, fraction: float) -> None:
        progress(stage, fraction)
        if stage in _FIT_STAGES:
            progress(title, (done + _FIT * fraction) / size)
        elif stage == "evaluate":
            progress(title, (done + _FIT + (1 - _FIT) * fraction) / size)

    return report
