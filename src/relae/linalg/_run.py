"""Calls of compiled kernels: one at a time, in a forked child on one core, and without numba's cache if it is damaged.

numba's fallback thread pool ends the process when two Python threads enter it at once. A fork waits for the kernel that
runs, so that the child never inherits a kernel or a compilation that nobody finishes. The child has none of the
parent's threads, and OpenMP, which does not survive a fork, would end it: there the kernels are compiled for one core.
"""

import os
import sys
import threading
import warnings
from typing import Any

_ROOMS = ("_kernels", "_local_kernels", "_als_kernels")

_one_at_a_time = threading.RLock()  # a fork may come in a signal handler of the thread that holds it
_loaded: dict[str, Any] = {}  # kernels by name
_is_forked = False


def _after_fork() -> None:
    global _is_forked
    _is_forked = True
    _loaded.clear()
    _one_at_a_time.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_one_at_a_time.acquire, after_in_parent=_one_at_a_time.release, after_in_child=_after_fork
    )


def run(kernel: str, *arguments: Any) -> None:
    """Call a compiled kernel; numba is imported at the first call, not with the package."""
    with _one_at_a_time:
        compiled = _loaded.get(kernel) or _load(kernel)
        try:
            compiled(*arguments)
        except Exception as error:
            _run_without_cache(kernel, arguments, compiled, error)


def _load(kernel: str) -> Any:
    """Return a kernel, compiled with the present settings."""
    from relae.linalg._compile import settings

    if _is_forked and settings.parallel:
        settings.parallel = False
        _forget()
    from relae.linalg import _als_kernels, _kernels, _local_kernels

    rooms = (_kernels, _local_kernels, _als_kernels)
    if settings.failure is not None:
        reason, settings.failure = settings.failure, None
        _warn(f"there is no folder to keep the compiled kernels in ({reason})", "set NUMBA_CACHE_DIR to one")
    _loaded[kernel] = next(getattr(room, kernel) for room in rooms if hasattr(room, kernel))
    return _loaded[kernel]


def _forget() -> None:
    """Forget the imported kernels, so that they are compiled with the present settings."""
    _loaded.clear()
    for room in _ROOMS:
        sys.modules.pop(f"relae.linalg.{room}", None)
        vars(sys.modules["relae.linalg"]).pop(room, None)  # where an import looks first


def _run_without_cache(kernel: str, arguments: tuple[Any, ...], compiled: Any, error: Exception) -> None:
    """Compile and call a kernel again, in case that numba's cache was what failed: a damaged file can raise anything.

    If it was not, the same error comes again.
    """
    from relae.linalg._compile import settings

    if not settings.cached:
        raise error
    settings.cached = False
    _forget()
    try:
        _load(kernel)(*arguments)
    except Exception:
        settings.cached = True
        _forget()
        raise
    folder, reason = compiled.stats.cache_path, f"{type(error).__name__}: {error}"
    _warn(
        f"the compiled kernels in {folder} cannot be used ({reason})",
        "remove its *.nbi and *.nbc files, make room on its disk, or set NUMBA_CACHE_DIR to another folder",
    )


def _warn(problem: str, way_out: str) -> None:
    message = f"{problem}: they are compiled at every start, which takes a while; {way_out}"
    warnings.warn(message, RuntimeWarning, stacklevel=5)


def threads() -> int:
    """Return the number of threads that the compiled kernels use."""
    if _is_forked:
        return 1
    import numba

    return int(numba.get_num_threads())


def limit_kernel_threads(count: int) -> int:
    """Let the kernels use at most so many threads from now on; return how many they are."""
    count = max(1, min(count, threads()))
    if not _is_forked:
        import numba

        numba.set_num_threads(count)
    return count
