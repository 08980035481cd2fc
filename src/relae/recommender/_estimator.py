"""The habits of a scikit-learn estimator, without scikit-learn."""

import inspect
from typing import Any, Self


class Estimator:
    """Parameters are the keywords of the constructor, kept untouched; fitted attributes end in `_`."""

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's parameters by name."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name. The next `fit` uses them; ξ, which needs no fit, counts at once."""
        names = self._parameter_names()
        for name, value in parameters.items():
            if name not in names:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}: its parameters are {', '.join(names)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        shown = [f"{name}={value!r}" for name, value in self.get_params().items() if value != defaults[name].default]
        return f"{type(self).__name__}({', '.join(shown)})"
