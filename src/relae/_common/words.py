"""Bytes, durations and counts in words."""


def in_bytes(count: float) -> str:
    """Return a number of bytes in decimal units: "512 B", "16 MB", "1.2 GB"."""
    if count < 1e6:
        return f"{count / 1e3:.0f} kB" if count >= 1e3 else f"{count:.0f} B"
    return f"{count / 1e6:.0f} MB" if count < 1e9 else f"{count / 1e9:,.1f} GB"


def in_time(seconds: float) -> str:
    """Return a duration: "4.2 s", "12 s", "5 min", "1.7 h"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def in_count(number: int, noun: str) -> str:
    """Return a number of things: "1 user", "2,000 users"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
