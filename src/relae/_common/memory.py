"""The memory that is available: the machine's, that of its control groups and the process's own limit."""

import os
from collections.abc import Iterator
from pathlib import Path

from relae._common.limits import free_address_space
from relae._common.words import in_bytes
from relae.errors import PlanError, Text


def ensure_memory(needed: float, what: str, way_out: Text | str) -> None:
    """Raise a PlanError if `needed` bytes are not available."""
    available = available_memory()
    if needed > available:
        raise PlanError(f"{what} needs {in_bytes(needed)}, and {in_bytes(available)} are available: ", way_out)


def process_memory() -> int:
    """Return the resident bytes of this process."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def available_memory() -> int:
    """Return the bytes that this process can still take, by the machine, its control groups and its own limit."""
    import psutil

    free = [int(psutil.virtual_memory().available), *_control_group_memory()]
    within_limit = free_address_space()
    return max(min([*free, *([] if within_limit is None else [within_limit])]), 0)


def _control_group_memory(
    membership: str = "/proc/self/cgroup", mount: str | os.PathLike[str] = "/sys/fs/cgroup"
) -> Iterator[int]:
    """Yield the free bytes of each control group of this process with a memory limit (v1 and v2, parents too)."""
    try:
        lines = Path(membership).read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = Path(mount), ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = Path(mount, "memory")
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            free = _group_free(folder, *names)
            if free is not None:
                yield free
            if folder == root:
                break


def _group_free(folder: Path, limit_name: str, usage_name: str, cache_name: str) -> int | None:
    try:
        limit = (folder / limit_name).read_text().strip()
        if limit == "max" or int(limit) > 1 << 60:  # v1 writes "no limit" as a huge number
            return None
        usage = int((folder / usage_name).read_text())
    except (OSError, ValueError):
        return None
    try:
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        cache = int(statistics.get(cache_name, 0))
    except (OSError, ValueError):
        cache = 0
    return int(limit) - usage + cache  # file cache is given back on demand
