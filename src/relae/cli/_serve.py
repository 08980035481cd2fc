"""`relae serve`: the service, and a word for whoever started it by hand."""

from typing import Any

from relae.cli._console import errors
from relae.serve import Settings, run


def serve(**settings: Any) -> None:
    """Run the service until it is told to stop; it warns of an open address itself."""
    chosen = Settings(**settings)
    console = errors()
    if console.is_terminal and chosen.port:
        host = f"[{chosen.host}]" if ":" in chosen.host else chosen.host
        console.print(f"http://{host}:{chosen.port}/ has the page in a moment; Ctrl-C ends it", markup=False)
    run(chosen)
