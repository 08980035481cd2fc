"""The habits of a scikit-learn estimator, without scikit-learn."""

import inspect
from typing import Any, Self


class Estimator:
    """Parameters are the keywords of the constructor, kept untouched; fitted attributes end in `_`."""

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Parameters and what they are if not given; where a constructor hands on keywords, those of the next class."""
        found: dict[str, Any] = {}
        for kind in cls.__mro__:
            if "__init__" not in kind.__dict__:
                continue
            parameters = inspect.signature(kind.__dict__["__init__"]).parameters.values()
            hands_on = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
            for parameter in list(parameters)[1:]:
                if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                    found.setdefault(parameter.name, parameter.default)
            if not hands_on:
                break
        return found

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return list(cls._defaults())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's parameters by name."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name. The next `fit` uses them; dials, as ξ is, need no fit and count at once."""
        names = self._parameter_names()
        for name, value in parameters.items():
            if name not in names:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}: its parameters are {', '.join(names)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = self._defaults()
        shown = [f"{name}={value!r}" for name, value in self.get_params().items() if value != defaults[name]]
        return f"{type(self).__name__}({', '.join(shown)})"
