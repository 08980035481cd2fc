"""The command line as a person meets it: a process of its own."""

import subprocess
import sys

import relae


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from relae.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_help_names_every_command() -> None:
    done = run("--help")
    assert done.returncode == 0
    for command in ("demo", "datasets", "reproduce", "tune", "figures", "report"):
        assert command in done.stdout


def test_version() -> None:
    assert run("--version").stdout.strip() == f"relae {relae.__version__}"


def test_an_unknown_command_is_one_readable_complaint() -> None:
    done = run("dmeo")
    assert done.returncode == 2
    assert "dmeo" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_of_ours_is_one_line_and_exit_code_2() -> None:
    raising = (
        "import relae.cli._demo as d; from relae import DataError\n"
        "def fail(): raise DataError('no such thing: do this')\n"
        "d.show_demo = fail\n"
        "from relae.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", raising, "demo"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "relae: no such thing: do this\n")


def test_demo_shows_the_whole_way() -> None:
    done = run("demo")
    assert done.returncode == 0, done.stderr
    for part in (
        "4,339 customers",
        "3,665 products",
        "CC BY 4.0",
        "primal solver",
        "EDLAE: zero diagonal",
        "DLAE: no constraint",
        "because of",
        "Similar to Regency cakestand 3 tier",
        "Roses regency teacup and saucer",
    ):
        assert part in done.stdout, part
    assert done.stdout.count("For customer") == 3
    assert "Traceback" not in done.stderr
