"""Ctrl-C and SIGTERM: both end the work under way, but neither comes between a file and the promise to remove it."""

import threading
from types import FrameType, TracebackType

_depth = 0  # of blocks that must not be interrupted, in the main thread
_waits = False  # whether a signal has come in one


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle a signal: raise a KeyboardInterrupt, at once or after the `uninterrupted` block under way."""
    global _waits
    if _depth:
        _waits = True
    else:
        raise KeyboardInterrupt


class uninterrupted:
    """Let signals that `interrupt` handles wait until the end of a block, which has to be short."""

    def __enter__(self) -> None:
        global _depth
        if threading.current_thread() is threading.main_thread():  # others are not interrupted anyway
            _depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        global _depth, _waits
        if threading.current_thread() is not threading.main_thread():
            return
        _depth -= 1
        if _waits and not _depth:
            _waits = False
            raise KeyboardInterrupt
