"""Limits that the shell sets for a process."""

import sys

LIBRARY_BYTES = 1_600_000_000  # of addresses, which libraries and their threads take; far fewer of them as memory


def address_space_limit() -> int | None:
    """Return the bytes of address space that this process may have (`ulimit -v`), None if there is no limit."""
    if sys.platform == "win32":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else int(limit)


def free_address_space() -> int | None:
    """Return the bytes of address space that this process may still take, None if there is no limit."""
    limit = address_space_limit()
    if limit is None:
        return None
    import psutil

    return max(limit - int(psutil.Process().memory_info().vms), 0)
