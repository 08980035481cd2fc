"""Whose turn it is on the cores."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Leave the cores to the compiled kernels.

    The workers of the BLAS spin for a while after every product: between small ones, the sparse products beside them
    take five to ten times as long. Decompositions gain little from a second thread, and lose much on a busy machine.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield


def limit_threads(count: int) -> None:
    """Use at most so many threads in this process from now on: for processes that share the cores."""
    import numba
    from threadpoolctl import threadpool_limits

    count = max(1, min(count, numba.get_num_threads()))
    numba.set_num_threads(count)
    threadpool_limits(count)
