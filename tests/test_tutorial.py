"""The tutorial, as a new user would type it: every command of the page runs, in order, in an empty folder."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_WAIT_POLICY")


def commands() -> list[str]:
    """The lines of the page's blocks, with continued lines joined."""
    text = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(url: str, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def thin_out(table: Path, least: int = 150) -> None:
    """Keep the products that many customers have, so that what follows takes little time."""
    rows = pl.read_csv(table, infer_schema=False)
    rows.filter(pl.len().over("item") >= least).write_csv(table)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_tutorial(tmp_path: Path) -> None:
    port = free_port()
    environment = {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(tmp_path), "NO_COLOR": "1", "COLUMNS": "100"}
    environment |= {name: os.environ[name] for name in THREADS if name in os.environ}
    said: dict[str, str] = {}
    server: subprocess.Popen[bytes] | None = None
    try:
        for line in commands():
            if line.startswith("pip "):
                continue
            if line.startswith("relae serve"):
                words = line.replace("8000", str(port)).split()
                with (tmp_path / "serve.log").open("wb") as log:
                    server = subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=log, stdout=log)
                wait_for(f"http://127.0.0.1:{port}/readyz")
                continue
            if line.startswith("kill -HUP"):
                assert server is not None
                server.send_signal(signal.SIGHUP)
                continue
            line = line.replace("8000", str(port)).replace("--budget 8", "--budget 2")
            done = subprocess.run(line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, f"{line}\n{done.stderr}"
            said[line] = done.stdout
            if "datasets export" in line:
                thin_out(tmp_path / "shop" / "interactions.csv")
        assert server is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answered:
            assert b"<title>" in answered.read()
        assert server.poll() is None
        server.terminate()
        assert server.wait(30) == 0
    finally:
        if server is not None and server.poll() is None:
            server.kill()
    [answer] = [json.loads(text) for line, text in said.items() if line.startswith("curl")]
    assert [len(answer["items"]), answer["xi"], answer["unknown"]] == [5, 0.4, []]
    [terminal] = [text for line, text in said.items() if "--explain" in line]
    assert "because of" in terminal
    assert (tmp_path / "lists.parquet").stat().st_size > 0
    assert (tmp_path / "run" / "report.html").stat().st_size < 3e6
