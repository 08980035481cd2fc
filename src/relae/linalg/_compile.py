"""Compilation of the kernels. Imports numba, so it is imported late, like the kernels themselves.

The kernel modules compile with the settings that hold while they are imported; after a change they are imported again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba import njit


@dataclass
class Settings:
    """Settings of all kernels of this process."""

    parallel: bool = True
    """Run on all cores. Never in a forked child: the threads of its parent are gone, and OpenMP ends the process."""
    cached: bool = True
    """Keep the machine code on disk."""
    failure: str | None = None
    """Why it cannot be kept on disk, if numba has found no folder for it."""


settings = Settings()


def compiled(*, parallel: bool = False, **options: Any) -> Callable[[Any], Any]:
    """Compile a loop that does not need the interpreter; a parallel one for all cores, where `settings` allow that."""

    def compile_later(function: Any) -> Any:
        on_all_cores = parallel and settings.parallel
        if parallel and not on_all_cores:
            function.__qualname__ += "_on_one_core"  # numba's cache tells functions apart by their names alone
        numba_options = {"nogil": True, "parallel": on_all_cores, **options}
        if settings.cached:
            try:
                return njit(cache=True, **numba_options)(function)
            except (RuntimeError, OSError) as error:
                settings.cached, settings.failure = False, str(error)
        return njit(**numba_options)(function)

    return compile_later
