"""The words of the source: docstrings say what a thing does or is, and names say what they hold."""

import ast
import re
from functools import cache
from pathlib import Path

import relae

SOURCE = Path(relae.__file__).parent
QUESTIONS = re.compile(r"(What|How|Whether|Who|Whose|Whom|Where|Which|When|Why)\b")
EMPTY_NAMES = {"found", "given", "place", "places", "told", "asked"}


@cache
def trees() -> dict[str, ast.Module]:
    """Return every module of the package, parsed when first asked for and not by every process that collects tests."""
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
    }


def functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return all functions and methods of a module."""
    return [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def test_no_docstring_begins_with_a_question():
    """Write `Return the columns …`, or `The columns …` of a class, and not `What the columns are`."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    wrong = [
        f"{module}: {text.splitlines()[0]}"
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, documented) and (text := ast.get_docstring(node)) and QUESTIONS.match(text)
    ]
    assert wrong == []


def test_no_name_carries_nothing():
    """Call a thing what it is: `columns`, `histories`, `path`."""
    wrong = []
    for module, tree in trees().items():
        names = {function.name for function in functions(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                names.add(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
        wrong += [f"{module}: {name}" for name in sorted(names & EMPTY_NAMES)]
    assert wrong == []
