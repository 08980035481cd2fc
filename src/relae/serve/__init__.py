"""A recommendation service over HTTP, and its page, for one model folder."""

from typing import TYPE_CHECKING

from relae.errors import RelaeError
from relae.serve._settings import Settings

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["Settings", "create_app", "run"]


def create_app(settings: Settings) -> "Starlette":
    """Return the application, for an ASGI server of your own; it opens the model when it starts.

    `host`, `port`, `workers` and `stop_seconds` are that server's business then.
    """
    _check_installed()
    from relae.serve._app import build
    from relae.serve._service import Service

    return build(settings, Service(settings))


def run(settings: Settings) -> None:
    """Serve a model until SIGTERM or Ctrl-C; requests under way are answered first.

    SIGHUP opens the model folder anew. Logs are lines of JSON on stderr.

    Raises
    ------
    RelaeError
        If the model cannot be opened, the port is taken, or the packages of the extra `serve` are missing.
    """
    _check_installed()
    from relae.serve._processes import serve

    serve(settings)


def _check_installed() -> None:
    try:
        import httptools  # noqa: F401
        import msgspec  # noqa: F401
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise RelaeError(f"{error.name} is not installed: pip install 'relae[serve]'") from error
