from pathlib import Path

import numpy as np
import pytest


def write(folder: Path, seed: int = 0, users: int = 6300, items: int = 300) -> None:
    """A data set in the form of the published Gowalla files: enough users to hold out 2 × 3,000, ten items or more."""
    rng = np.random.default_rng(seed)
    taste = rng.random((12, items)) ** 6
    lines: tuple[list[str], list[str]] = ([], [])
    for user in range(users):
        chance = taste[user % 12]
        chosen = rng.choice(items, rng.integers(10, 20), replace=False, p=chance / chance.sum())
        cut = len(chosen) * 4 // 5
        for part, numbers in zip(lines, (chosen[:cut], chosen[cut:]), strict=True):
            part.append(" ".join(map(str, [user, *numbers])))
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in zip(("train.txt", "test.txt"), lines, strict=True):
        (folder / name).write_text("\n".join(part) + "\n")


@pytest.fixture(scope="session")
def small_gowalla(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write(folder / "gowalla")
    return folder
