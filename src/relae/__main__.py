"""Start the command line: `relae`, or `python -m relae`.

Imports take most of the first second. Nothing has begun by then that has to be undone, so that an interrupt may end the
process at once, without the traceback of whichever import it meets.
"""

import os
import signal
import sys


def main() -> None:
    """Import and run the command line."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not where interrupts are to be ignored
    if ours:
        signal.signal(signal.SIGINT, _leave)
    from relae.cli import main as run

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _leave(*_: object) -> None:
    if sys.stderr is not None:
        os.write(sys.stderr.fileno(), b"relae: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
