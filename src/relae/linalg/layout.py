"""The expected types and shapes of arrays, checked before any of them is read or copied."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

FLOATS = ("<f4", "<f8")
FLOAT32, FLOAT64, INT32, INT64, BYTES = ("<f4",), ("<f8",), ("<i4",), ("<i8",), ("|u1",)


@dataclass(frozen=True)
class Expected:
    """The type and shape of an array.

    A side of the shape is the name of a size: equal names are equal sizes, "users+1" is one more than "users", and an
    empty name is any size.
    """

    dtypes: tuple[str, ...]
    shape: tuple[str, ...]
    optional: bool = False
    mapped: bool = False
    """Whether it stays on disk and is read only where it is needed; all others are copied to memory."""
    may_be_empty: bool = False


Layout = Mapping[str, Expected]
"""What is expected of each array, by name."""


def csr_layout(name: str, rows: str, *, mapped: bool = False) -> dict[str, Expected]:
    """Return the layout of the arrays that `csr_parts` returns; `rows` is the name of that size."""
    entries = Expected(FLOATS, (f"entries of {name}",), mapped=mapped, may_be_empty=True)
    return {
        f"{name}_values": entries,
        f"{name}_columns": replace(entries, dtypes=INT32),
        f"{name}_starts": Expected(INT64, (f"{rows}+1",)),
    }


def prefixed(layout: Layout, prefix: str, shared: Collection[str]) -> dict[str, Expected]:
    """Return a layout whose arrays, and sizes but for the `shared` ones, have names of their own."""

    def renamed(side: str) -> str:
        return side if side.partition("+")[0] in shared else f"{prefix}{side}"

    return {
        f"{prefix}{name}": replace(expected, shape=tuple(map(renamed, expected.shape)))
        for name, expected in layout.items()
    }


def check_layout(
    layout: Layout, headers: Mapping[str, tuple[str, tuple[int, ...]]], sizes: Mapping[str, int] | None = None
) -> None:
    """Raise a ValueError or KeyError if arrays of these types and shapes are not those that are expected.

    Parameters
    ----------
    found
        The type and the shape of each array, by name.
    sizes
        Sizes that are known already, by name.
    """
    strange = sorted(headers.keys() - layout.keys())
    if strange:
        raise ValueError(f"the model has no use for {', '.join(strange[:3])}")
    known = dict(sizes or {})
    for name, expected in layout.items():
        if name not in headers:
            if expected.optional:
                continue
            raise KeyError(name)
        dtype, shape = headers[name]
        if dtype not in expected.dtypes:
            raise ValueError(f"{name} has the type {dtype}, not {' or '.join(expected.dtypes)}")
        if len(shape) != len(expected.shape):
            raise ValueError(f"{name} has the shape {shape}, not {len(expected.shape)} dimensions")
        if 0 in shape and not expected.may_be_empty:
            raise ValueError(f"{name} is empty")
        for side, label in zip(shape, expected.shape, strict=True):
            size, _, more = label.partition("+")
            if size and known.setdefault(size, side - int(more or 0)) != side - int(more or 0):
                raise ValueError(f"{name} has the shape {shape}, and {size} are {known[size]:,}")
