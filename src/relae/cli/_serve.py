"""`relae serve`: run the service."""

from typing import Any

from relae.cli._console import error_console
from relae.serve import Settings, run


def serve(**settings: Any) -> None:
    """Run the service until a signal to stop; on a terminal, print its address."""
    parsed = Settings(**settings)
    console = error_console()
    if console.is_terminal and parsed.port:
        host = f"[{parsed.host}]" if ":" in parsed.host else parsed.host
        console.print(f"http://{host}:{parsed.port}/ has the page in a moment; Ctrl-C ends it", markup=False)
    run(parsed)
