"""Limit the number of BLAS and kernel threads."""

from collections.abc import Iterator
from contextlib import contextmanager

from relae.linalg._run import limit_kernel_threads


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
    from threadpoolctl import threadpool_limits

    threadpool_limits(limit_kernel_threads(count))
