"""The rooms keep their doors: what one room uses of another is public, below it, and known before it runs.

`import-linter` holds the layers; here is what it does not see. What still breaks a rule is listed, and the lists only
shrink.
"""

import ast
import tomllib
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from relae.registry import KINDS, kind

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "relae"
SHARED = "_common"  # the room below all others has an underscore because users do not need it

# What others call so: named tuples, the way to end a process, notebooks, and uvicorn.
PROTOCOLS = {
    "_asdict",
    "_replace",
    "_fields",
    "_field_defaults",
    "_exit",
    "_repr_html_",
    "_unset_keepalive_if_required",
}

PRIVATE_IMPORTS: set[str] = set()
PRIVATE_ATTRIBUTES: set[str] = set()
PRIVATE_OVERRIDES: set[str] = set()
UPWARD = {"recommender/_base.py: relae"}  # a model's save() asks the package, which opens the store when first used
SIGNATURES: set[str] = set()
BY_NAME: set[str] = set()


@cache
def modules():
    """Every module, parsed when first asked for and not by every process that collects the tests."""
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")}


def room(path):
    """The room that a module is in; that of `relae/__init__.py` is the package itself."""
    first = Path(path).parts[0].removesuffix(".py")
    return "" if first in ("__init__", "__main__") else first


def private(name):
    return name.startswith("_") and not name.startswith("__")


def imports(tree):
    """Every import, also within functions: (module, name or None). Those for type checkers alone are left out."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from ((node.module, alias.name) for alias in node.names)


def room_imported(module, name):
    """The room that an import is from; None if it is not one of ours."""
    parts = module.split(".")
    if parts[0] != "relae":
        return None
    if len(parts) > 1:
        return parts[1]
    return name if name is not None and ((SOURCE / name).is_dir() or (SOURCE / f"{name}.py").exists()) else ""


def test_no_room_imports_what_is_private_in_another():
    found = set()
    for path, tree in modules().items():
        for module, name in imports(tree):
            other = room_imported(module, name)
            if other in (None, "", room(path)):
                continue
            inner = [part for part in (*module.split(".")[1:], name) if part and part not in (SHARED, other)]
            if any(map(private, inner)):
                found.add(f"{path}: {module}.{name}")
    assert found - PRIVATE_IMPORTS == set()


def names_defined(trees):
    """What functions, classes and assignments name, also as attributes of `self`."""
    found = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found |= {node.attr} if ast.unparse(node.value) in ("self", "cls") else set()
            elif isinstance(node, ast.ImportFrom | ast.Import):
                found |= {(alias.asname or alias.name).split(".")[-1] for alias in node.names}
    return found


def test_no_room_uses_a_private_attribute_of_another():
    rooms = defaultdict(list)
    for path, tree in modules().items():
        rooms[room(path)].append(tree)
    own = {name: names_defined(trees) for name, trees in rooms.items()}
    found = {
        f"{path}: {node.attr}"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and private(node.attr) and node.attr not in own[room(path)] | PROTOCOLS
    }
    assert found - PRIVATE_ATTRIBUTES == set()


def test_no_model_overrides_a_private_method_of_another_room():
    def home(each):
        return each.__module__.split(".")[1] if each.__module__.startswith("relae.") else ""

    found = set()
    for model in map(kind, KINDS):
        for at, each in enumerate(model.__mro__):
            for base in model.__mro__[at + 1 :]:
                if home(each) and home(base) and home(each) != home(base):
                    shared = vars(each).keys() & vars(base).keys() - PROTOCOLS
                    found |= {f"{each.__name__}.{name}" for name in shared if private(name) and name != "_abc_impl"}
    assert found - PRIVATE_OVERRIDES == set()


def test_imports_only_point_down():
    """The layers are those of import-linter, which counts what is imported for type checkers as well."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = [[name.strip() for name in layer.split("|")] for layer in contracts[0]["layers"]]
    height = {name: at for at, layer in enumerate(layers) for name in layer}
    missing = {room(path) for path in modules()} - height.keys() - {"", "errors"}
    assert missing == set(), "every room has its layer"
    found = set()
    for path, tree in modules().items():
        here = room(path)
        for module, name in imports(tree):
            other = room_imported(module, name)
            if here in ("", "errors") or other in (None, here, "errors") or (other == "" and name == "__version__"):
                continue
            if other == "" or height[other] <= height[here]:
                found.add(f"{path}: {module if other == '' else other}")
    assert found - UPWARD == set()


def calls(name):
    """Where something is called, or imported, by this name."""
    for path, tree in modules().items():
        for node in ast.walk(tree):
            called = node.func if isinstance(node, ast.Call) else None
            attribute = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)
            if attribute == name or (isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]):
                yield path


def test_nobody_looks_at_signatures():
    assert (set(calls("signature")) | set(calls("getfullargspec"))) - SIGNATURES == set()


@pytest.mark.parametrize("name", ["import_module", "__import__", "find_spec"])
def test_only_the_registry_imports_by_name(name):
    assert set(calls(name)) - {"registry.py"} - BY_NAME == set()


def test_every_public_name_is_there():
    for path in modules():
        if path.endswith("__init__.py") and path.count("/") == 1:
            module = import_module(f"relae.{room(path)}")
            assert not any(map(private, getattr(module, "__all__", []))), path
            assert all(hasattr(module, name) for name in getattr(module, "__all__", [])), path
