"""The files of the page, read once."""

from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".webmanifest": "application/manifest+json",
}

# Nothing from any other host, nothing inline, and nobody may frame it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


@dataclass(frozen=True)
class PageFile:
    """A file with the headers that it is sent with."""

    content: bytes
    headers: dict[str, str]


def read_page() -> dict[str, PageFile]:
    """Return the files of the page by their names."""
    return _read(files("relae.serve") / "page", "")


def _read(folder: Traversable, prefix: str) -> dict[str, PageFile]:
    page: dict[str, PageFile] = {}
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.is_dir():
            page |= _read(entry, f"{prefix}{entry.name}/")
        elif (kind := _TYPES.get(entry.name[entry.name.rfind(".") :])) is not None:
            content = entry.read_bytes()
            headers = {
                "Content-Type": kind,
                "ETag": f'"{sha256(content).hexdigest()[:16]}"',
                "Cache-Control": "no-cache",  # the browser asks each time; it is sent only if it is new
                "Content-Security-Policy": _POLICY,
                "Referrer-Policy": "no-referrer",
            }
            page[f"{prefix}{entry.name}"] = PageFile(content, headers)
    return page
