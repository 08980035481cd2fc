"""Messages keep the parameters that they name as data, and no room below the edges writes one as text."""

import ast
import pickle
import re
import warnings
from pathlib import Path

import pytest

import relae
from relae._common.checks import check_between, check_choice, check_finite, check_share, check_whole
from relae._common.table_options import TableOptions, options_of
from relae.cli._messages import _list_options, render, render_error, render_filter, render_option
from relae.errors import DataError, Option, ParameterError, PlanError, RelaeError, Text, WeightingWarning
from relae.registry import KINDS, kind

# --- the parts of a message ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "python", "typed"),
    [
        (Option("min_rating", 4), "min_rating=4", "--min-rating 4"),
        (Option("min_rating"), "min_rating", "--min-rating"),
        (Option("min_rating", ...), "min_rating=…", "--min-rating …"),
        (Option("weight", "my plays"), "weight='my plays'", "--weight 'my plays'"),
        (Option("solver", "dual"), "solver='dual'", "--solver dual"),
        (Option("force", True), "force=True", "--force"),
        (Option("histories", False), "histories=False", "--no-histories"),
        (Option("features", "FILE", python="item_features"), "item_features", "--features FILE"),
        (Option("validation_share", 0), "validation_share=0", "--set validation_share=0"),
        (Option("validation_share"), "validation_share", "validation_share"),
        (Option("scratch", "/tmp"), "scratch='/tmp'", "scratch='/tmp'"),
    ],
)
def test_an_option_is_written_by_each_edge_in_its_own_way(option, python, typed):
    assert (str(option), render_option(option)) == (python, typed)


def test_an_error_carries_the_parameter_and_the_advice():
    error = DataError(Option("half_life", 9), " needs times: read with ", Option("timestamp", ...))
    assert str(error) == "half_life=9 needs times: read with timestamp=…"
    assert render_error(error) == "--half-life 9 needs times: read with --timestamp …"
    assert (error.field, error.value, error.hints) == ("half_life", 9, (Option("timestamp", ...),))


def test_an_error_in_another_keeps_its_options():
    inner = PlanError("it is too large: use ", Option("solver", "dual"))
    outer = PlanError("no repair: ", inner, field="dtype", value="float64")
    assert render(outer) == "no repair: it is too large: use --solver dual"
    assert (outer.field, outer.value, outer.hints) == ("dtype", "float64", (Option("solver", "dual"),))


@pytest.mark.parametrize("kind_of", [DataError, ParameterError, PlanError, WeightingWarning])
def test_messages_cross_processes(kind_of):
    message = kind_of("set ", Option("k", 3), field="k", value=9)
    copy = pickle.loads(pickle.dumps(message))
    assert (type(copy), str(copy), copy.field, copy.value, copy.text) == (kind_of, "set k=3", "k", 9, message.text)


def test_errors_come_back_from_a_cluster():
    """Dask unpickles errors in a way of its own."""
    protocol = pytest.importorskip("distributed.protocol", reason="the extra `dask` is not installed")
    error = PlanError("set ", Option("k", 3), field="k", value=9)
    copy = protocol.deserialize(*protocol.serialize(error))
    assert (type(copy), str(copy), copy.field, copy.value) == (PlanError, "set k=3", "k", 9)


def test_a_plain_message_names_nothing():
    error = RelaeError("something is wrong")
    assert (str(error), error.field, error.value, error.hints) == ("something is wrong", None, None, ())


def test_texts_are_joined_and_compared_by_their_parts():
    ways = [Text("use ", Option("solver", "dual")), Text("wait")]
    text = Text.join(", or ", ways)
    assert str(text) == "use solver='dual', or wait"
    assert text == Text("use ", Option("solver", "dual"), ", or ", "wait") != Text(str(text))
    assert len({text, Text(*text.parts)}) == 1


@pytest.mark.parametrize(
    ("text", "typed"),
    [("k_core=5", "--k-core 5"), ("min_rating=3.5", "--min-rating 3.5"), ("weights of zero", "weights of zero")],
)
def test_a_filter_of_a_saved_model_is_rendered(text, typed):
    assert render_filter(text) == typed


def test_a_warning_is_rendered():
    with pytest.warns(WeightingWarning, match="^set weighting='log'$") as caught:
        warnings.warn(WeightingWarning("set ", Option("weighting", "log")), stacklevel=1)
    assert render(caught[0].message) == "set --weighting log"


@pytest.mark.parametrize(
    ("check", "value", "words"),
    [
        (lambda value: check_whole("k", value), 0, "k must be a whole number of at least 1, got 0"),
        (lambda value: check_finite("l2", value), -1, "l2 must be a finite number of at least 0, got -1"),
        (lambda value: check_between("xi", value, 0, 1), 2, "xi must lie in [0, 1], got 2"),
        (lambda value: check_share("dropout", value), 1, "dropout must lie in [0, 1), got 1"),
        (lambda value: check_choice("mode", value, ["a", "b"]), "c", "mode must be 'a' or 'b', got 'c'"),
    ],
)
def test_a_check_raises_with_field_and_value(check, value, words):
    with pytest.raises(ParameterError, match=f"^{re.escape(words)}$") as caught:
        check(value)
    assert (caught.value.field, caught.value.value) == (words.split()[0], value)


# --- what rooms below the edges write ------------------------------------------------------------------------------

SOURCE = Path(relae.__file__).parent
EDGES = {"cli", "serve"}
ALLOWED = {"`relae fit "}  # a whole command


def known_names() -> set[str]:
    """Return every name that an edge may have to write in its own way."""
    models = {parameter.name for name in KINDS for parameter in kind(name).PARAMETERS}
    return {name for name in {*_list_options(), *options_of(TableOptions), *models} if len(name) > 1 or name == "k"}


def texts(tree: ast.AST) -> list[tuple[int, str]]:
    """Return the line and the text of each string that is passed to an error, a warning or a text."""
    found = []
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and re.search(r"(Error|Warning|Text|warn)$", ast.unparse(call.func)):
            for part in [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg is None)]:
                if isinstance(part, ast.JoinedStr):
                    values = (str(v.value) if isinstance(v, ast.Constant) else "{}" for v in part.values)
                    found.append((part.lineno, "".join(values)))
                elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                    found.append((part.lineno, part.value))
    return found


@pytest.mark.parametrize("room", sorted({p.relative_to(SOURCE).parts[0] for p in SOURCE.rglob("*.py")} - EDGES))
def test_no_message_below_the_edges_writes_an_option_as_text(room):
    """Otherwise an edge would have to find it by a pattern: use `relae.errors.Option`."""
    names = "|".join([*sorted(known_names()), r"\{\}"])
    written = re.compile(rf"(?<![\w-])(?:{names})=(?:\{{\}}|['\d\[…])|(?<![\w-])--[a-z]")
    files = [SOURCE / room] if room.endswith(".py") else sorted((SOURCE / room).rglob("*.py"))
    wrong = [
        f"{file.relative_to(SOURCE)}:{line}: {text}"
        for file in files
        for line, text in texts(ast.parse(file.read_text(encoding="utf-8")))
        if written.search(text) and not any(allowed in text for allowed in ALLOWED)
    ]
    assert wrong == []
