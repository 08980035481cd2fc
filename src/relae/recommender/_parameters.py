"""A parameter of a model, declared once.

From the declarations come `get_params`, search spaces, options of the command line, fields of the service with their
limits, and the labels of tables.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np

from relae._common.checks import check_between, check_finite, check_share, check_whole, refuse
from relae.recommender._space import Range


@dataclass(frozen=True)
class Parameter:
    """One parameter of a model.

    Attributes
    ----------
    name : str
        That of the constructor's argument.
    default
        Its value if not given. Where it is None, None is allowed.
    help : str
        What it does, in a few words, as the end of "Of rdlae: …".
    symbol : str
        Its sign in formulas and tables, such as "ξ"; empty if it has none.
    title : str
        What it is called before its symbol where a fitted model is described, such as "users"; the name if empty.
    low, high : float, optional
        The limits of a number; without `high` any finite number of at least `low`.
    above, below : bool
        Whether `low` and `high` themselves are not allowed.
    whole : bool
        Whether it is a whole number.
    choices : tuple of str
        The values of a text.
    kind : "fit" or "dial"
        A dial can be changed on a fitted model; anything else needs a new fit.
    search : Range, optional
        The values worth searching.
    steps : tuple of float
        The values that a search of the closed form goes through; where the default is a rule, octaves from its value.
    effect : str
        What it does, as the beginning of a sentence in a report.
    option : bool
        Whether `relae fit` and `relae tune` have an option of this name. Every parameter can be given by --set.
    """

    name: str
    default: Any
    help: str = ""
    symbol: str = ""
    title: str = ""
    low: float | None = None
    high: float | None = None
    above: bool = False
    below: bool = False
    whole: bool = False
    choices: tuple[str, ...] = ()
    kind: Literal["fit", "dial"] = "fit"
    search: Range | None = None
    steps: tuple[float, ...] = ()
    effect: str = ""
    option: bool = False

    @property
    def label(self) -> str:
        """The symbol, or the name where there is none."""
        return self.symbol or self.name

    @property
    def flag(self) -> str:
        """The option of the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and the highest value of a parameter that has both."""
        if self.low is None or self.high is None:
            raise ValueError(f"{self.name} has no limits on both sides")
        return self.low, self.high

    def with_default(self, default: Any, **changes: Any) -> "Parameter":
        """Return the same parameter with another default, or other attributes by name."""
        return replace(self, default=default, **changes)

    def check(self, value: Any) -> None:
        """Raise a ValueError that names the parameter, what it may be, and the value."""
        if value is None and self.default is None:
            return
        if self.choices:
            if not isinstance(value, str) or value not in self.choices:
                refuse(self.name, value, f"be {_listed(self.choices)}")
        elif isinstance(self.default, bool):
            if not isinstance(value, (bool, np.bool_)):
                refuse(self.name, value, "be True or False")
        elif not isinstance(self.default, str):
            self._check_number(value)

    def _check_number(self, value: Any) -> None:
        if self.whole and self.low is None:
            if isinstance(value, bool) or not isinstance(value, Integral):
                refuse(self.name, value, "be a whole number")
        elif self.whole:
            check_whole(self.name, value, int(self.low or 0), *(() if self.high is None else (self.high,)))
        elif self.low is None:
            raise TypeError(f"the parameter {self.name} is declared without a low limit")
        elif self.high is None:
            check_finite(self.name, value, above_zero=self.above)
        elif (self.low, self.high, self.below) == (0, 1, True):
            check_share(self.name, value)
        else:
            check_between(self.name, value, self.low, self.high)


def search_ranges(parameters: Iterable[Parameter]) -> Mapping[str, Range]:
    """Return what is worth searching, by name."""
    return {parameter.name: parameter.search for parameter in parameters if parameter.search is not None}


def _listed(texts: tuple[str, ...]) -> str:
    *others, last = map(repr, texts)
    return f"{', '.join(others)} or {last}" if others else last
