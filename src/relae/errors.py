"""Everything relae raises on purpose, so that a caller can catch one base class."""


class RelaeError(Exception):
    """Base of all errors that name a value, a place and a way out."""


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


class ApproximationWarning(UserWarning):
    """No exact solver fits into memory, and an approximate one was chosen."""


class WeightingWarning(UserWarning):
    """Amounts were given and no weighting of them: one was chosen by the data."""


class UnknownItemsWarning(UserWarning):
    """Items of a history are not in the model and were ignored."""


class UncheckedUsersWarning(UserWarning):
    """A model is updated with users of whom it cannot tell whether it was fitted to them."""
