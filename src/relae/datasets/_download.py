"""Files from the web: with progress, resumed where they stopped, checked, and in place only when complete."""

from __future__ import annotations

import errno
import hashlib
import http.client
import json
import os
import shutil
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from relae._common.files import lock_file, made_folder, sync_folder, write_text

# The callback of a download or a fit: the name of the stage, and the fraction of it that is done.
from relae._common.progress import Progress
from relae._common.words import in_bytes
from relae.errors import DataError

_CHUNK = 1 << 18
_TIMEOUT = 30.0  # seconds without a byte
_ATTEMPTS = 4
_PAUSE = 1.0  # seconds before the second attempt, twice as long before each further one


@dataclass(frozen=True)
class Remote:
    """A file to fetch: where from, where to, and what is known of it."""

    url: str
    target: Path
    md5: str | None = None
    size: int | None = None

    @property
    def part(self) -> Path:
        """The file of the part that has arrived so far."""
        return self.target.with_name(self.target.name + ".part")

    @property
    def validator(self) -> Path:
        """The file that says which version of the file the part belongs to, in the server's words."""
        return self.target.with_name(self.target.name + ".part.json")

    @property
    def bad(self) -> Path:
        """The path to which a file with a wrong checksum is moved."""
        return self.target.with_name(self.target.name + ".bad")


class _CutError(Exception):
    """The connection ended before the file did; what has arrived is kept."""


def fetch(remote: Remote, progress: Progress | None = None) -> None:
    """Download a file to its place, which holds the old file or nothing until the new one is complete.

    An earlier download that was interrupted is continued if the server still has the same file. A file whose
    checksum is wrong is moved aside, to the same name with `.bad`.

    Raises
    ------
    DataError
        If the server or the network fails, the disk is full, or the checksum is wrong.
    """
    report = progress or (lambda stage, fraction: None)
    if not remote.url.startswith(("http://", "https://")):
        raise DataError(f"{remote.url} is no http or https address")
    try:
        with made_folder(remote.target.parent) as folder:
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
            with lock_file(remote.target):
                _make_room(remote)
                _receive_all(remote, report)
                _check(remote, report)
                with remote.part.open("rb") as part:
                    os.fsync(part.fileno())
                remote.part.replace(remote.target)
                sync_folder(folder)
                remote.validator.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(_disk_problem(remote, error)) from error


def md5_of(file: Path, report: Callable[[float], None] = lambda fraction: None) -> str:
    """Return the MD5 sum of a file in hexadecimal digits."""
    digest, done, size = hashlib.md5(usedforsecurity=False), 0, max(file.stat().st_size, 1)
    with file.open("rb") as stream:
        while chunk := stream.read(1 << 22):
            digest.update(chunk)
            done += len(chunk)
            report(done / size)
    return digest.hexdigest()


def _make_room(remote: Remote) -> None:
    """Raise before the download starts if the disk has no room for the whole file."""
    arrived = remote.part.stat().st_size if remote.part.exists() else 0
    if remote.size is not None and shutil.disk_usage(remote.target.parent).free < remote.size - arrived:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _receive_all(remote: Remote, report: Progress) -> None:
    """Receive the file, with a few more attempts if the connection is cut."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _receive(remote, report)
        except _CutError as error:
            if attempt == _ATTEMPTS:
                raise DataError(f"{remote.url}: {error}. Run the same again: it goes on from there") from error
            time.sleep(_PAUSE * 2 ** (attempt - 1))
        except urllib.error.HTTPError as error:
            error.close()
            raise DataError(
                f"{remote.url}: the server answers {error.code} {error.reason}. If the file has moved, fetch it "
                f"yourself and put it at {remote.target}"
            ) from error
        except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise DataError(
                f"{remote.url} cannot be reached ({reason or type(error).__name__}): without a network, fetch the "
                f"file elsewhere and put it at {remote.target}"
            ) from error


def _receive(remote: Remote, report: Progress) -> None:
    """Make one request and append what it brings."""
    arrived = remote.part.stat().st_size if remote.part.exists() else 0
    validator = _known_validator(remote)
    if arrived and validator is None and remote.md5 is None:
        arrived = 0  # nothing would tell whether the two halves belong together
    try:
        response = _open(remote, arrived, validator)
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and arrived:
            error.close()
            if error.headers.get("Content-Range") == f"bytes */{arrived}":
                return  # the part is the whole file
            remote.part.unlink()
            return _receive(remote, report)
        raise
    with response:
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            arrived = 0
            remote.part.unlink(missing_ok=True)  # before what comes is named: a kill must not mix two files
        elif not _continues(response, arrived):
            if not arrived:
                raise http.client.HTTPException("the server sends a part of the file that nobody asked for")
            remote.part.unlink()
            return _receive(remote, report)
        total = _total(response, arrived) or remote.size
        _remember_validator(remote, response)
        _append(remote, response, arrived, total, report)


def _open(remote: Remote, arrived: int, validator: str | None) -> Any:
    """Send the request, over http and https and nothing else, wherever it is redirected to."""
    headers = {"User-Agent": "relae", "Accept-Encoding": "identity"}
    if arrived:
        headers["Range"] = f"bytes={arrived}-"
        if validator is not None:
            headers["If-Range"] = validator
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.UnknownHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener.open(urllib.request.Request(remote.url, headers=headers), timeout=_TIMEOUT)


def _continues(response: Any, arrived: int) -> bool:
    return str(response.headers.get("Content-Range", "")).startswith(f"bytes {arrived}-")


def _total(response: Any, arrived: int) -> int | None:
    length = response.headers.get("Content-Length")
    return None if length is None or not length.isdigit() else arrived + int(length)


def _append(remote: Remote, response: Any, arrived: int, total: int | None, report: Progress) -> None:
    stage = remote.target.name if total is None else f"{remote.target.name} ({in_bytes(total)})"
    with remote.part.open("ab" if arrived else "wb") as part:
        while chunk := _read(response, arrived, total):
            part.write(chunk)
            arrived += len(chunk)
            report(stage, 0.0 if not total else min(arrived / total, 1.0))
    if total is not None and arrived < total:
        raise _CutError(_cut(arrived, total))
    report(stage, 1.0)


def _read(response: IO[bytes], arrived: int, total: int | None) -> bytes:
    try:
        return response.read(_CHUNK)
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise _CutError(_cut(arrived, total)) from error


def _cut(arrived: int, total: int | None) -> str:
    of = "" if total is None else f" of {in_bytes(total)}"
    return f"the connection was cut after {in_bytes(arrived)}{of}"


def _known_validator(remote: Remote) -> str | None:
    """Return the ETag or date that the part was sent with, None if unknown or of another address."""
    try:
        known = json.loads(remote.validator.read_text(encoding="utf-8"))
        return str(known["validator"]) if known["url"] == remote.url else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember_validator(remote: Remote, response: Any) -> None:
    etag = response.headers.get("ETag", "")
    # A weak ETag may stand for other bytes, so it does not serve here.
    validator = etag if etag.startswith('"') else response.headers.get("Last-Modified")
    if validator is None:
        remote.validator.unlink(missing_ok=True)
    else:
        content = json.dumps({"url": remote.url, "validator": validator})
        write_text(remote.validator, content, error=None)


def _check(remote: Remote, report: Progress) -> None:
    """Check the sum of a file, and move it aside if it is wrong."""
    if remote.md5 is not None:
        stage = f"checking {remote.target.name}"
        actual = md5_of(remote.part, lambda fraction: report(stage, fraction))
        if actual == remote.md5:
            return
        problem = f"has the MD5 sum {actual} and not {remote.md5}: it was damaged on the way, or is another version"
    elif remote.target.suffix != ".zip" or zipfile.is_zipfile(remote.part):
        return
    else:
        problem = "is no zip: it was damaged on the way, or the server sent a page in its place"
    remote.validator.unlink(missing_ok=True)
    remote.part.replace(remote.bad)
    raise DataError(f"{remote.url} {problem}. It is kept as {remote.bad}; run the same again for a fresh copy")


def _disk_problem(remote: Remote, error: OSError) -> str:
    folder = remote.target.parent
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None)):
        need = "" if remote.size is None else f", {remote.target.name} has {in_bytes(remote.size)}"
        return (
            f"the disk of {folder} is full{need}: make room, or name another folder with RELAE_DATA; "
            "what has arrived is kept, and the same command goes on from there"
        )
    return (
        f"{error.filename or folder} cannot be written: {error.strerror or error}. Name a folder of your own "
        "with RELAE_DATA"
    )
