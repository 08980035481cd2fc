"""The format of a model folder, shared by its writer and its reader."""

import hashlib
import json
import re
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

FORMAT, VERSION = "relae-model", 1
RECORD = "model.json"
HISTORY = "history.jsonl"
DTYPES = ("<f4", "<f8", "<i4", "<i8", "|u1")
ARRAYS = re.compile(r"arrays-[0-9a-f]{8}")
EARLIER = re.compile(r"earlier-[0-9a-f]{8}\.json")

Record = dict[str, Any]


def header(dtype: np.dtype[Any], shape: Iterable[int]) -> bytes:
    """Return how an .npy file with such an array begins, always in the same bytes."""
    text = repr({"descr": dtype.str, "fortran_order": False, "shape": tuple(int(side) for side in shape)})
    length = -(-(len(text) + 11) // 64) * 64 - 10
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + text.ljust(length - 1).encode("ascii") + b"\n"


def checksum(record: Mapping[str, Any]) -> str:
    """Return the sum of what a record says, however it is laid out."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
