"""The limit of address space that a shell can set for a process (`ulimit -v`)."""

import sys

# Address space that the imported libraries and their threads reserve. They use much less memory than that.
LIBRARY_BYTES = 1_600_000_000


def address_space_limit() -> int | None:
    """Return how many bytes of address space this process may reserve in total; None if there is no limit."""
    if sys.platform == "win32":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else int(limit)


def free_address_space() -> int | None:
    """Return how many more bytes of address space this process may reserve; None if there is no limit."""
    limit = address_space_limit()
    if limit is None:
        return None
    import psutil

    return max(limit - int(psutil.Process().memory_info().vms), 0)
