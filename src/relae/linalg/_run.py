"""Call the compiled kernels safely.

- One kernel runs at a time: numba's fallback thread pool ends the process if two Python threads enter it at once.
- A fork waits until the running kernel ends. Otherwise the child would inherit a kernel or a compilation that never
  finishes.
- In a forked child the kernels are compiled for one core: the threads of the parent do not exist there, and OpenMP
  would end the process.
- If numba's cache on disk is damaged, the kernels are compiled without it.
"""

import os
import sys
import threading
import warnings
from typing import Any

_KERNEL_MODULES = ("_kernels", "_local_kernels", "_als_kernels", "_sequence_kernels")

# Held while a kernel runs. Reentrant, because a signal handler in the thread that holds it may fork.
_kernel_lock = threading.RLock()
_loaded: dict[str, Any] = {}  # kernels by name
_is_forked = False


def _after_fork() -> None:
    """Drop the kernels of the parent in a forked child, and release the lock that the fork took."""
    global _is_forked
    _is_forked = True
    _loaded.clear()
    _kernel_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_kernel_lock.acquire, after_in_parent=_kernel_lock.release, after_in_child=_after_fork)


def run(kernel: str, *arguments: Any) -> None:
    """Call a kernel, compiled if needed; the first call imports numba, so that importing relae stays fast."""
    with _kernel_lock:
        compiled = _loaded.get(kernel) or _load(kernel)
        try:
            compiled(*arguments)
        except Exception as error:
            _run_without_cache(kernel, arguments, compiled, error)


def _load(kernel: str) -> Any:
    """Import a kernel, to be compiled with the current settings."""
    from relae.linalg._compile import settings

    if _is_forked and settings.parallel:
        settings.parallel = False
        _forget()
    from relae.linalg import _als_kernels, _kernels, _local_kernels, _sequence_kernels

    modules = (_kernels, _local_kernels, _als_kernels, _sequence_kernels)
    if settings.failure is not None:
        reason, settings.failure = settings.failure, None
        _warn(f"there is no folder to keep the compiled kernels in ({reason})", "set NUMBA_CACHE_DIR to one")
    _loaded[kernel] = next(getattr(module, kernel) for module in modules if hasattr(module, kernel))
    return _loaded[kernel]


def _forget() -> None:
    """Forget the imported kernels, so that the next import compiles them with the current settings."""
    _loaded.clear()
    for module in _KERNEL_MODULES:
        sys.modules.pop(f"relae.linalg.{module}", None)
        vars(sys.modules["relae.linalg"]).pop(module, None)  # an import looks here first


def _run_without_cache(kernel: str, arguments: tuple[Any, ...], compiled: Any, error: Exception) -> None:
    """Compile and call a kernel again without numba's cache, because a damaged cache file can raise any error.

    If the cache was not the cause, the same error is raised again.
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
    """Warn that the kernels are compiled at every start, with the problem and the way out."""
    message = f"{problem}: they are compiled at every start, which takes a while; {way_out}"
    warnings.warn(message, RuntimeWarning, stacklevel=5)


def threads() -> int:
    """Return the number of threads that the compiled kernels use."""
    if _is_forked:
        return 1
    import numba

    return int(numba.get_num_threads())


def limit_kernel_threads(count: int) -> int:
    """Let the kernels use at most `count` threads from now on; return the number that they use."""
    count = max(1, min(count, threads()))
    if not _is_forked:
        import numba

        numba.set_num_threads(count)
    return count
