"""Real data sets, where RELAE_DATA names the folder that has them."""

import os
from pathlib import Path

import pytest


def real(name: str) -> Path:
    folder = os.environ.get("RELAE_DATA")
    if folder is None:
        pytest.skip(f"{name}: RELAE_DATA does not name a folder of data sets")
    path = Path(folder) / name
    if not path.exists():
        pytest.skip(f"{name}: not in {folder}")
    return path
