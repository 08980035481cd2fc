"""Everything relae raises on purpose, so that a caller can catch one base class.

A message may name parameters. They are kept as `Option` objects, not as text, so that each edge writes them in its own
way: `min_rating=4` in Python, `--min-rating 4` on the command line, `"min_rating": 4` in JSON.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Option:
    """A parameter that a message names.

    Attributes
    ----------
    name : str
        The name of the keyword in Python.
    value : object
        Its value; None if only the name is meant, `...` for any value.
    python : str, optional
        How Python users set it, where that is not a keyword of this name.
    """

    name: str
    value: Any = None
    python: str | None = None

    def __str__(self) -> str:
        """Return it as Python code, such as `min_rating=4`."""
        if self.python is not None:
            return self.python
        if self.value is None:
            return self.name
        return f"{self.name}={'…' if self.value is ... else repr(self.value)}"

    @classmethod
    def of_number(cls, name: str, value: float) -> Self:
        """Return an option whose value is a number; 4.0 is written as 4."""
        return cls(name, int(value) if float(value).is_integer() else float(value))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the option in a text such as `min_rating=4`, of one number; None if the text is anything else."""
        name, _, value = text.partition("=")
        try:
            return cls.of_number(name, float(value))
        except ValueError:
            return None


class Text:
    """A text in parts: strings, and the options that it names.

    Parameters
    ----------
    parts
        Joined without spaces. The parts of other texts, errors and warnings become parts of this one.
    """

    def __init__(self, *parts: Any) -> None:
        flat: list[str | Option] = []
        for part in parts:
            text = part.text if isinstance(part, Message) else part
            flat += text.parts if isinstance(text, Text) else [text if isinstance(text, Option) else str(text)]
        self.parts: tuple[str | Option, ...] = tuple(flat)

    @classmethod
    def join(cls, separator: str, texts: "Iterable[Text | Option | str]") -> Self:
        """Return texts with a separator between them."""
        parts: list[Any] = []
        for text in texts:
            parts += [separator, text] if parts else [text]
        return cls(*parts)

    @property
    def options(self) -> tuple[Option, ...]:
        """The options that it names, in their order."""
        return tuple(part for part in self.parts if isinstance(part, Option))

    def render(self, write: Callable[[Option], str]) -> str:
        """Return the text, with each of its options written by a function."""
        return "".join(write(part) if isinstance(part, Option) else part for part in self.parts)

    def __str__(self) -> str:
        """Return the text with its options as Python code."""
        return self.render(str)

    def __repr__(self) -> str:
        """Return the call that makes it."""
        return f"Text({', '.join(map(repr, self.parts))})"

    def __eq__(self, other: object) -> bool:
        """Return whether another text has the same parts."""
        return isinstance(other, Text) and self.parts == other.parts

    def __hash__(self) -> int:
        """Return the hash of what it says in Python."""
        return hash(str(self))


class Message:
    """The base of errors and warnings: a text, and the parameter that it is about.

    Parameters
    ----------
    parts
        See `Text`.
    field, value
        The parameter at fault and its value; the first option of the text if not given.

    Attributes
    ----------
    text : Text
    field : str or None
    value : object
    """

    def __init__(self, *parts: Any, field: str | None = None, value: Any = None) -> None:
        super().__init__(*parts)
        self.text = Text(*parts)
        options = self.text.options
        if field is None and options:
            field, value = options[0].name, options[0].value
        self.field, self.value = field, value

    @property
    def hints(self) -> tuple[Option, ...]:
        """The options of the text other than `field`: what to set instead, or as well."""
        return tuple(option for option in self.text.options if option.name != self.field)

    def __str__(self) -> str:
        """Return the text with its options as Python code."""
        return str(self.text)

    def render(self, write: Callable[[Option], str]) -> str:
        """Return the text, with each of its options written by a function."""
        return self.text.render(write)


class RelaeError(Message, Exception):
    """Base of all errors that name a value, a place and a way out."""

    def __new__(cls, *parts: Any, **about: Any) -> Self:
        """Make an error of any kind: `MemoryError.__new__` refuses to, where an error is unpickled by Dask."""
        return Exception.__new__(cls, *parts)


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


class RelaeWarning(Message, UserWarning):
    """Base of all warnings."""


class DataWarning(RelaeWarning):
    """The data can be used, and are probably not what is meant."""


class ParameterWarning(RelaeWarning):
    """A parameter has a value that is possible, and probably not what is meant."""


class ApproximationWarning(RelaeWarning):
    """No exact solver fits into memory, and an approximate one was chosen."""


class WeightingWarning(RelaeWarning):
    """Amounts were given and no weighting of them: one was chosen by the data."""


class UnknownItemsWarning(RelaeWarning):
    """Items of a history are not in the model and were ignored."""


class UncheckedUsersWarning(RelaeWarning):
    """A model is updated with users of whom it cannot tell whether it was fitted to them."""
