"""How the command line starts and ends: quickly, quietly, and as a shell expects."""

import errno
import os
import pty
import subprocess
import sys
import warnings

import pytest

from relae.cli import _demo, app, main
from relae.cli._messages import render_error
from relae.cli._options import _LIMITS
from relae.errors import Option, PlanError, StoreError
from relae.serve import Settings

from .suite import COMMAND, run, shown

HEAVY = {"polars", "numba", "scipy.stats", "starlette", "msgspec", "uvicorn", "matplotlib", "pandas", "rich.table"}


def test_help_is_quick_to_load():
    code = f"import sys, relae.cli; print(*sorted({HEAVY!r} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split() == []


def test_help_names_every_command_in_its_group(shell):
    text = shell.ok("--help")
    commands = [info.callback.__name__ for info in app.registered_commands]
    assert len(commands) == 20
    for command in (*commands, "datasets", "From data to a model", "With a model"):
        assert command in text
    assert text.count("honest about the") == 1


@pytest.mark.parametrize("command", [info.callback.__name__ for info in app.registered_commands])
def test_every_command_has_help(command, shell):
    text = shell.ok(command, "--help")
    assert f"Usage: relae {command}" in text.replace("\n", " ")
    assert "Traceback" not in text


def test_no_command_is_a_page_of_help(shell):
    for arguments in ((), ("datasets",)):
        done = shell(*arguments)
        assert (done.code, done.err) == (2, "")
        assert "Usage" in done.out


# --- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PlanError("it is too large: use ", Option("solver", "dual")), "it is too large: use --solver dual"),
        (MemoryError(), "out of memory: use fewer"),
        (MemoryError("8 GB"), "out of memory (8 GB): use fewer"),
        (PermissionError(errno.EACCES, "Permission denied", "/x/y"), "Permission denied: /x/y"),
        (OSError(errno.ENOSPC, "No space left", "/x"), "the disk is full: /x: make room"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (ModuleNotFoundError("no", name="matplotlib"), "matplotlib is not installed: pip install 'relae[plots]'"),
        (ModuleNotFoundError("no", name="starlette"), "starlette is not installed: pip install 'relae[serve]'"),
        (ValueError("loss must\nbe small, got 2"), "loss must be small, got 2"),
        (ZeroDivisionError("oh"), "unexpected ZeroDivisionError (oh); this is a bug, and --debug shows where"),
    ],
)
def test_an_error_in_words(error, words):
    assert render_error(error).startswith(words)
    assert "\n" not in render_error(error)


@pytest.mark.filterwarnings("always:HMLET was trained for 1 epoch")
def test_advice_of_a_model_is_in_options(table, columns, shell, tmp_path):
    """One user cannot be divided, and one epoch is no more than a warm-up."""
    pytest.importorskip("torch", reason="the extra neural is not installed")
    one = tmp_path / "one.csv"
    one.write_text("user,item\nu,1\nu,2\n")
    said = shell("fit", one, "--model", "multvae", "--out", tmp_path / "m").line()
    assert said.endswith("; --set validation_share=0 trains without a validation")
    done = shell("fit", table, *columns, "--model", "hmlet", "--epochs", 1, "--out", tmp_path / "m")
    assert done.err.endswith(": train longer, or give a lower --set warm_up=…\n")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "relae: interrupted\n"),
        (MemoryError("8 GB"), 2, "relae: out of memory (8 GB)"),
        (OSError(errno.ENOSPC, "No space left", "/x"), 2, "relae: the disk is full: /x"),
        (RuntimeError("oh"), 2, "relae: unexpected RuntimeError (oh)"),
    ],
)
def test_how_a_command_ends(error, code, said, shell, monkeypatch):
    def fail() -> None:
        raise error

    monkeypatch.setattr(_demo, "show_demo", fail)
    done = shell("demo")
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(said)
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("--debug", "inspect", "nowhere"), {}),
        (("inspect", "nowhere", "--debug"), {}),
        (("inspect", "nowhere"), {"RELAE_DEBUG": "1"}),
    ],
)
def test_debug_lets_an_error_out(arguments, environment, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["relae", *arguments])
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match="there is no model folder nowhere"):
        main()


def test_debug_shows_where():
    done = run("--debug", "inspect", "nowhere")
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert "StoreError: there is no model folder nowhere" in done.stderr


def test_a_warning_is_a_line_too():
    code = "import warnings; from relae.cli import _demo, main\n"
    code += "_demo.show_demo = lambda: warnings.warn('careful\\nnow', UserWarning)\nmain()"
    done = subprocess.run([sys.executable, "-c", code, "demo"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "relae: careful now\n")


@pytest.mark.parametrize("module", ["typing", "numpy", "typer", "relae.cli._options"])
def test_an_interrupt_while_modules_are_imported_is_a_line(module):
    """The first second is spent on imports, each of which an interrupt may meet."""
    code = f"""
import builtins, os, signal, sys
from relae.__main__ import main
plain = builtins.__import__
def importing(name, *rest):
    if name == {module!r}:
        os.kill(os.getpid(), signal.SIGINT)
    return plain(name, *rest)
builtins.__import__ = importing
main()
"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, "inspect", "nowhere"],  # a command, which needs all of them
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "relae: interrupted\n")


def test_it_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "relae", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("relae ")


def test_a_closed_stdout_is_told():
    done = subprocess.run(
        [*COMMAND, "demo"], stderr=subprocess.PIPE, text=True, check=False, preexec_fn=lambda: os.close(1)
    )
    assert done.returncode == 2
    assert done.stderr == (
        "relae: stdout is closed, so that there is nowhere to show a result: give > /dev/null to do without\n"
    )


# --- where it runs -----------------------------------------------------------------------------------------------


def in_terminal(*arguments: object, width: int = 80, **environment: str) -> list[str]:
    """Return the lines that a command shows in a terminal."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=theirs,
        stderr=subprocess.PIPE,
        stdin=theirs,
        env=inherited | {"TERM": "xterm-256color"} | environment,
    )
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0
    return b"".join(parts).decode().replace("\r\n", "\n").splitlines()


def test_a_terminal_has_colours_and_a_width(saved):
    import re

    lines = in_terminal("recommend", saved, "--history", "1004", "--k", "40", "--explain", width=80)
    assert any("\x1b[36mitem" in line for line in lines)
    plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in lines]
    assert max(map(len, plain)) == 80
    assert any("…" in line for line in plain)  # a long title is cut, the figures are not
    assert sum("head" in line or "tail" in line for line in plain) == 40


def test_no_color_is_honoured(saved):
    lines = in_terminal("recommend", saved, "--history", "1004", NO_COLOR="1")
    assert not any("\x1b[3" in line for line in lines)


def test_an_old_terminal_shows_what_it_can(saved):
    text = shown("inspect", saved, env={**os.environ, "PYTHONIOENCODING": "latin-1"}, encoding="latin-1")
    assert "? " in text
    assert "160 users × 48 items" in text


def test_completion_works():
    environment = {
        **os.environ,
        "_RELAE_COMPLETE": "complete_bash",
        "COMP_WORDS": "relae fit --model e",
        "COMP_CWORD": "3",
    }
    code = "import sys; sys.argv[0] = 'relae'; from relae.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["edlae", "ease"]
    environment |= {"COMP_WORDS": "relae re", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["report", "recommend", "reproduce"]


# --- serve -------------------------------------------------------------------------------------------------------


def test_every_setting_of_the_service_is_an_option(shell, monkeypatch, saved):
    """The words of the command line reach the service as they are."""
    found: list[Settings] = []
    monkeypatch.setattr("relae.cli._serve.run", found.append)
    names = {name for name in Settings.__dataclass_fields__ if name.startswith("max_")}
    assert set(_LIMITS) == names
    monkeypatch.setenv("RELAE_API_KEY", "secret")
    given = [part for at, name in enumerate(sorted(names)) for part in (f"--{name.replace('_', '-')}", 99 - at)]
    cors = ("--cors", "https://a.example", "--cors", "https://b.example")
    rest = ("--host", "::1", "--port", 81, "--workers", 2, "--threads", 3, "--verify", "--quiet", "--stop-seconds", 4)
    more = ("--allowed-host", "a.example", "--in-memory", "--client-seconds", 5)
    more += ("--wait-seconds", 6, "--hang-seconds", 7)
    shell.ok("serve", saved, *given, *cors, *rest, *more)
    limits = {name: 99 - at for at, name in enumerate(sorted(names))}
    wanted = Settings(
        saved, "::1", 81, 2, "secret", ("https://a.example", "https://b.example"), threads=3, verify=True, log=False,
        stop_seconds=4, allowed_hosts=("a.example",), in_memory=True, client_seconds=5, wait_seconds=6, hang_seconds=7,
        **limits,
    )  # fmt: skip
    assert found == [wanted]
    monkeypatch.delenv("RELAE_API_KEY")
    shell.ok("serve", saved)
    assert found[1] == Settings(saved)


def test_a_service_starts_answers_and_stops(saved, shell):
    """From the command to an answer over a real socket; the rest is tested where the service is."""
    import json
    import re
    import signal
    import urllib.request

    process = subprocess.Popen(
        [*COMMAND, "serve", str(saved), "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        line = process.stderr.readline()
        url = re.search(r"http://127\.0\.0\.1:\d+/", line)[0]
        body = json.dumps({"history": [1000, 1004], "k": 3}).encode()
        request = urllib.request.Request(f"{url}v1/recommend", body, {"Content-Type": "application/json"})
        while "ready" not in line:
            line = process.stderr.readline()
        answer = json.load(urllib.request.urlopen(request, timeout=20))
    finally:
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "")
    ours = json.loads(shell.ok("recommend", saved, "--history", "1000,1004", "--k", 3, "--json"))
    assert [entry["item"] for entry in answer["items"]] == [entry["item"] for entry in ours["items"]]
    assert {name: answer[name] for name in answer if name != "items"} == {n: ours[n] for n in ours if n != "items"}


# --- limits of memory --------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="other systems know no limit of address space, or do not keep it")
def test_a_limit_of_virtual_memory_that_is_too_low_is_told(table, columns):
    """Below it libraries end the process, or wait for ever, each in a way of its own."""

    def limited(space: int, *arguments: object) -> "subprocess.CompletedProcess[str]":
        import resource

        return run(*arguments, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (space, space)))

    done = limited(800_000_000, "plan", table, *columns)
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "relae: the limit of virtual memory (ulimit -v) is 0.8 GB, and 2.0 GB are needed before there is any data: "
        "raise the limit\n",
    )
    assert limited(800_000_000, "plan", "--help").returncode == 0
    assert limited(3_000_000_000, "plan", table, *columns).returncode == 0


def test_a_file_that_a_limit_leaves_no_room_for_is_refused_before_it_is_read(table, columns, shell, monkeypatch):
    monkeypatch.setattr("relae.data._tables.free_address_space", lambda: 5_000)
    said = shell("plan", table, *columns).line()
    assert said.startswith(
        f"reading {table} takes about 0.0 GB of address space, and the limit of this process (ulimit"
    )
