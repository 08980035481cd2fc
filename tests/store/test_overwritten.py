"""Files of a mapped model that are overwritten in place, and models that need no files any more."""

import os
import shutil

import numpy as np
import pytest

from relae import RDLAE, StoreError, store

X = (np.random.default_rng(0).random((50, 20)) < 0.3).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    store.save(RDLAE(l2=5.0).fit(X), tmp_path / "model", form="primal")
    return tmp_path / "model"


def inverse(path):
    [file] = path.rglob("inverse.npy")
    return file


def overwrite(file, content):
    """Write into the very file that is mapped."""
    with file.open("r+b") as handle:
        handle.truncate(0)
        handle.write(content)


def test_an_untouched_model_is_not_overwritten(path):
    saved = store.open_model(path)
    assert saved.overwritten() is None
    assert store.open_model(path, in_memory=True).overwritten() is None


@pytest.mark.parametrize("change", ["shorter", "longer", "other content"])
def test_what_is_overwritten_is_noticed(path, change):
    saved, file = store.open_model(path), inverse(path)
    content = file.read_bytes()
    overwrite(file, {"shorter": content[:200], "longer": content + b"x", "other content": content[::-1]}[change])
    os.utime(file, ns=(0, 7))  # whatever the clock says
    assert saved.overwritten() == file


def test_what_is_touched_or_replaced_is_not_overwritten(path):
    saved, file = store.open_model(path), inverse(path)
    content = file.read_bytes()
    file.touch()
    os.utime(file, ns=(0, 7))
    assert saved.overwritten() is None
    overwrite(file, content)  # the same again
    assert saved.overwritten() is None
    shutil.copy(file, file.with_suffix(".new"))
    file.with_suffix(".new").write_bytes(content[:100])
    file.with_suffix(".new").rename(file)  # another file in its place: the mapping keeps the old one
    assert saved.overwritten() is None
    store.save(RDLAE(l2=7.0).fit(X), path)
    assert saved.overwritten() is None


def test_a_model_in_memory_needs_no_files(path):
    mapped, held = store.open_model(path), store.open_model(path, in_memory=True, verify=True)
    expected = mapped.model.recommend([3, 5], 10)
    del mapped
    overwrite(inverse(path), b"")
    shutil.rmtree(path)
    for found, wanted in zip(held.model.recommend([3, 5], 10), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert held.overwritten() is None


def test_a_model_in_memory_is_checked_as_it_was_read(path):
    content = bytearray(inverse(path).read_bytes())
    content[-1] ^= 1
    overwrite(inverse(path), content)
    store.open_model(path, in_memory=True)
    with pytest.raises(StoreError, match="checksum"):
        store.open_model(path, in_memory=True, verify=True)
