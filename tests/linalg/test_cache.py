"""What is wrong with numba's cache costs time and a warning that names its folder, and never the result."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relae
from relae import EASE

from ..effort import repeat

CALL = """
import resource, signal, sys, warnings
import numpy as np
if "full" in sys.argv:  # a limit on the size of files stands for a full disk
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
from relae.linalg import as_csr, csr_block, top_k
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        if "one" not in sys.argv:
            columns, _ = top_k(np.array([[3.0, 1.0, 2.0]], np.float32), 2)
            assert columns.tolist() == [[0, 2]]
        block = csr_block(as_csr(np.eye(3), np.float32), np.array([0, 2]), np.array([2]))
        assert block.tolist() == [[0], [1]]
for warning in caught:
    print(warning.category.__name__, warning.message)
"""


def call(*arguments, **environment):
    """Use two kernels, or the one that is soon compiled, in a process of its own; return what it warned of."""
    done = subprocess.run(
        [sys.executable, "-c", CALL, *arguments],
        env=os.environ | {name: str(value) for name, value in environment.items()},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A cache that works."""
    folder = tmp_path_factory.mktemp("sound")
    assert call(NUMBA_CACHE_DIR=folder) == ""
    assert len(list(folder.rglob("*.nbc"))) >= 4
    return folder


@pytest.fixture
def cache(sound, tmp_path):
    shutil.copytree(sound, tmp_path / "cache")
    return tmp_path / "cache"


def test_a_damaged_kernel_that_another_one_calls(cache):
    for place in list(cache.rglob("*.top_k*")):
        place.unlink()
    for place in cache.rglob("*.rise*.nbi"):  # `rise` is called by `top_k`
        content = place.read_bytes()
        place.write_bytes(content[: int(0.9 * len(content))])
    assert f"RuntimeWarning the compiled kernels in {cache}" in call(NUMBA_CACHE_DIR=cache)


def test_every_file_empty_cut_short_or_overwritten(cache):
    """In one process, which imports the kernels again for each."""
    script = """
import sys, warnings
from pathlib import Path
import numpy as np
from relae.linalg import _run, as_csr, csr_block
from relae.linalg import _compile
rng = np.random.default_rng(0)
tried = failed = 0
for place in sorted(Path(sys.argv[1]).rglob("*csr_block*")):
    content = place.read_bytes()
    cuts = sorted({0, len(content) // 2, *rng.integers(0, len(content), int(sys.argv[2])).tolist()})
    for damaged in [content[:cut] for cut in cuts] + [bytes(len(content)), rng.bytes(len(content))]:
        place.write_bytes(damaged)
        _compile.settings.cached = True
        _run._forget()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            block = csr_block(as_csr(np.eye(3), np.float32), np.array([0, 2]), np.array([2]))
        assert block.tolist() == [[0], [1]]
        tried += 1
        failed += bool(caught)
        assert all(sys.argv[1] in str(warning.message) for warning in caught)
    place.write_bytes(content)
print(failed, tried)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(cache), str(repeat(0, 14))],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    failed, tried = map(int, done.stdout.split())
    assert tried >= repeat(8, 36)
    assert 2 * failed > tried


def test_a_command_does_not_end_by_it(cache, tmp_path):
    for place in cache.rglob("*.nbi"):
        place.write_bytes(b"")
    EASE(5.0).fit(np.eye(9) + np.eye(9, k=1)).save(tmp_path / "model")
    done = subprocess.run(
        [sys.executable, "-c", "from relae.cli import main; main()", "recommend", tmp_path / "model", "--history", "1"],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(f"relae: the compiled kernels in {cache}")


def test_a_full_disk(tmp_path):
    assert f"RuntimeWarning the compiled kernels in {tmp_path}" in call("full", "one", NUMBA_CACHE_DIR=tmp_path)


def test_no_folder_that_can_be_written_to(tmp_path):
    """Files stand where numba looks for folders: that stops root as well."""
    package = tmp_path / "here" / "relae"
    shutil.copytree(Path(relae.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "linalg" / "__pycache__").write_text("")
    (tmp_path / "file").write_text("")
    nowhere = tmp_path / "file" / "cache"
    told = call(
        "one",
        PYTHONPATH=package.parent,
        PYTHONDONTWRITEBYTECODE=1,
        NUMBA_CACHE_DIR=nowhere,
        XDG_CACHE_HOME=nowhere,
        HOME=nowhere,
    )
    assert "RuntimeWarning there is no folder to keep the compiled kernels in" in told
    assert "set NUMBA_CACHE_DIR" in told
    assert told.count("RuntimeWarning") == 1


def test_an_error_of_the_kernel_itself_is_not_the_caches():
    from relae.linalg import _compile, _run, load_kernels

    load_kernels()
    assert _compile.settings.cached
    with pytest.raises(TypeError):
        _run.run("csr_block", "too few arguments")
    assert _compile.settings.cached
    load_kernels()
