"""The conventions of a scikit-learn estimator, without scikit-learn."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from relae.errors import ParameterError
from relae.recommender._parameters import Parameter, search_ranges
from relae.recommender._space import Range


class Estimator:
    """Parameters are the keywords of the constructor, kept untouched; fitted attributes end in `_`.

    A class declares its parameters in `PARAMETERS`, in the order of the constructor; what is searched (`SPACE`) follows
    from that.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = ()
    SPACE: ClassVar[Mapping[str, Range]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        """Derive the search space of a class that declares parameters, unless it states one."""
        super().__init_subclass__(**options)
        if "PARAMETERS" in cls.__dict__ and "SPACE" not in cls.__dict__:
            cls.SPACE = search_ranges(cls.PARAMETERS)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's parameters by name."""
        return {parameter.name: getattr(self, parameter.name) for parameter in self.PARAMETERS}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name. The next `fit` uses them; dials, such as ξ, need no fit and count at once."""
        names = [parameter.name for parameter in self.PARAMETERS]
        for name, value in parameters.items():
            if name not in names:
                raise ParameterError(
                    f"{type(self).__name__} has no parameter {name!r}: its parameters are {', '.join(names)}",
                    field=name,
                    value=value,
                )
            setattr(self, name, value)
        return self

    def check_params(self) -> None:
        """Raise a ValueError for the first parameter whose value is not allowed."""
        for parameter in self.PARAMETERS:
            parameter.check(getattr(self, parameter.name))

    def __repr__(self) -> str:
        values = ((parameter, getattr(self, parameter.name)) for parameter in self.PARAMETERS)
        shown = [f"{parameter.name}={value!r}" for parameter, value in values if value != parameter.default]
        return f"{type(self).__name__}({', '.join(shown)})"
