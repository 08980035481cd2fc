"""A training on disk: plain arrays and a JSON text in one file, which is replaced at once or not at all."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from relae._common.files import atomic_file
from relae.errors import DataError

_RECORD = "record"


class Checkpoint:
    """The file of a training that can go on; `purpose` tells it from trainings of other data or parameters."""

    def __init__(self, path: Path, purpose: str) -> None:
        self.path, self.purpose = path, purpose

    def write(self, record: Mapping[str, Any], groups: Mapping[str, Mapping[str, NDArray[Any]]]) -> None:
        """Replace the file."""
        arrays = {f"{group}/{name}": array for group, members in groups.items() for name, array in members.items()}
        text = json.dumps({**record, "purpose": self.purpose})
        with atomic_file(self.path) as part, part.open("wb") as file:
            np.savez(file, **{_RECORD: np.array(text)}, **arrays)  # type: ignore[arg-type]

    def read(self) -> tuple[dict[str, Any], dict[str, dict[str, NDArray[Any]]]] | None:
        """Return what was written last, None if there is no file."""
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            record = json.loads(str(arrays.pop(_RECORD)))
            purpose = record.pop("purpose")
        except OSError as error:
            raise DataError(f"the checkpoint {self.path} cannot be read: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
            raise self.damaged() from error
        if purpose != self.purpose:
            raise DataError(
                f"the checkpoint {self.path} belongs to a training with other data or parameters: remove it to start "
                "anew"
            )
        groups: dict[str, dict[str, NDArray[Any]]] = {}
        for name, array in arrays.items():
            group, _, rest = name.partition("/")
            groups.setdefault(group, {})[rest] = array
        return record, groups

    def damaged(self) -> DataError:
        """Return the error for a file that is no checkpoint, or an incomplete one."""
        return DataError(f"{self.path} is damaged, or no checkpoint of a training: remove it to start anew")


def optimizer_arrays(optimizer: torch.optim.Optimizer) -> dict[str, NDArray[Any]]:
    """Return the state of Adam, by parameter."""
    state = optimizer.state_dict()["state"]
    return {f"{at}/{name}": value.numpy() for at, known in state.items() for name, value in known.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Restore the state of Adam."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, array in arrays.items():
        at, _, name = key.partition("/")
        state.setdefault(int(at), {})[name] = torch.from_numpy(np.array(array))
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
