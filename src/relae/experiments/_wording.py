"""The names of options and calls in texts for people."""

from collections.abc import Mapping
from typing import Any

from relae.errors import Option, Text


class Wording:
    """Write options and calls as Python code; the command line has a wording of its own."""

    def option(self, option: Option) -> str:
        """Return an option, such as `split='weak'`."""
        return str(option)

    def call(self, name: str, source: str | None, options: Mapping[str, Any]) -> str:
        """Return the call that runs an experiment again, such as `relae.tune('log.csv', user='who')`."""
        words = ["data" if source is None else repr(source), *(f"{key}={value!r}" for key, value in options.items())]
        return f"relae.{name}({', '.join(words)})"

    def text(self, text: Text | None) -> str:
        """Return a text with its options; "" if there is none."""
        return "" if text is None else text.render(self.option)


PYTHON = Wording()
