"""How far along several fits are, each followed by its evaluation."""

from relae.solvers import Progress

_FIT = 0.8  # of the time of a fit and its evaluation
_FIT_STAGES = ("inverse", "singular vectors", "least squares", "train")  # nearly all of a fit


def of_all(progress: Progress | None, title: str, done: int, size: int) -> Progress | None:
    """Report the stages of one fit, and under `title` how much of all is done."""
    if progress is None:
        return None

    def report(stage: str, fraction: float) -> None:
        progress(stage, fraction)
        if stage in _FIT_STAGES:
            progress(title, (done + _FIT * fraction) / size)
        elif stage == "evaluate":
            progress(title, (done + _FIT + (1 - _FIT) * fraction) / size)

    return report
