"""Everything relae raises on purpose, so that a caller can catch one base class.

A message may name parameters. They are kept as `Option` objects, not as text, so that each edge writes them in its own
way: `min_rating=4` in Python, `--min-rating 4` on the command line, `"min_rating": 4` in JSON.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """A parameter that a message names.

    Attributes
    ----------
    name : str
        As Python calls it.
    value : object
        What is advised for it; None if only the name is meant, `...` if it stands for any value.
    """

    name: str
    value: Any = None

    def __str__(self) -> str:
        """Return it as Python has it, such as `min_rating=4`."""
        if self.value is None:
            return self.name
        return f"{self.name}={'…' if self.value is ... else repr(self.value)}"


class Message:
    """A text in parts, which are strings and options; a mixin of errors and warnings.

    Parameters
    ----------
    parts
        Joined without spaces.
    field, value
        The parameter at fault and what it was given, where that is not the first option of the text.
    """

    def __init__(self, *parts: Any, field: str | None = None, value: Any = None) -> None:
        super().__init__(*parts)
        self.parts = parts
        first = next((part for part in parts if isinstance(part, Option)), None)
        self.field = first.name if field is None and first is not None else field
        self.value = first.value if field is None and first is not None else value

    def __str__(self) -> str:
        """Return the text with its options as Python has them."""
        return self.render(str)

    def render(self, option: Callable[[Option], str]) -> str:
        """Return the text, with each of its options written by a function."""
        return "".join(option(part) if isinstance(part, Option) else str(part) for part in self.parts)


class RelaeError(Message, Exception):
    """Base of all errors that name a value, a place and a way out."""


class ParameterError(RelaeError, ValueError):
    """A parameter has a value that it cannot have."""


class DataError(RelaeError, ValueError):
    """The interactions cannot be read or used as they are."""


class PlanError(RelaeError, MemoryError):
    """The work does not fit into the memory that is available."""


class PrecisionError(RelaeError, ArithmeticError):
    """The fit failed its own check and could not be repaired."""


class StoreError(RelaeError):
    """A model folder cannot be written, or cannot be trusted as it is."""


class NotFittedError(RelaeError, AttributeError):
    """The model is used before `fit`."""


class ApproximationWarning(Message, UserWarning):
    """No exact solver fits into memory, and an approximate one was chosen."""


class WeightingWarning(Message, UserWarning):
    """Amounts were given and no weighting of them: one was chosen by the data."""


class UnknownItemsWarning(Message, UserWarning):
    """Items of a history are not in the model and were ignored."""


class UncheckedUsersWarning(Message, UserWarning):
    """A model is updated with users of whom it cannot tell whether it was fitted to them."""
