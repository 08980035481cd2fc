"""What a fit has found, in a shape that can be saved."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from relae.linalg import Blocks


class State(NamedTuple):
    """Facts that JSON can hold, and arrays by name."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any] | Blocks]
