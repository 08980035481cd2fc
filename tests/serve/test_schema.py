"""The OpenAPI schema tells the truth: schemathesis asks everything it allows and much that it does not."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema_rs  # comes with schemathesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relae.baselines import GFCF
from tests.effort import repeat, repeat_faults
from tests.serve.running import serving
from tests.serve.test_refusals import POSTS, anything

CONFIG = """
[parameters]
"path.item" = ["7", "37", "107"]

[checks.positive_data_acceptance]
expected-statuses = ["2xx", 403, 404, 413]  # an unknown item, or more than one answer holds, is a good question

[checks.negative_data_rejection]
expected-statuses = ["4xx"]

[checks.ignored_auth]
enabled = false  # it sends two keys, a right one and a wrong one; test_access does better
"""


def schemathesis(client, folder: Path, *options, examples):
    """Run it with all its checks; the number of cases that it made."""
    (folder / "schemathesis.toml").write_text(CONFIG)
    program = Path(sys.executable).with_name("schemathesis")
    if "CI" in os.environ:  # new examples are looked for at a desk, not at the gate
        options = (*options, "--generation-deterministic")
    arguments = ["--config-file", str(folder / "schemathesis.toml"), "run", f"{client.base_url}/openapi.json"]
    done = subprocess.run(
        [program, *arguments, "--max-examples", str(examples), "--no-color", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    [generated, passed] = re.search(r"(\d+) generated, (\d+) passed", done.stdout).groups()
    assert generated == passed
    return int(passed)


def test_schemathesis_without_a_key(client, tmp_path):
    assert schemathesis(client, tmp_path, examples=repeat_faults(6, 25)) > repeat_faults(200, 500)


@pytest.mark.faults  # without a key it is asked the same, and test_access asks with wrong ones
def test_schemathesis_with_a_key(folder, tmp_path):
    with serving(folder, api_key="secret") as client:
        keys = ("-H", "X-API-Key: secret", "-H", "Authorization: Bearer secret")
        assert schemathesis(client, tmp_path, *keys, examples=5) > 200
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("plain", [GFCF(rank=4)], ids=["GFCF"], indirect=True)
def test_schemathesis_and_a_model_without_xi(plain, tmp_path):
    _, client = plain
    # what such a model cannot do is refused, though the schema allows it
    assert schemathesis(client, tmp_path, "--exclude-checks", "positive_data_acceptance", examples=3) > 100


@pytest.mark.slow
def test_schemathesis_at_length(client, tmp_path):
    assert schemathesis(client, tmp_path, examples=100) > 500


@pytest.fixture(scope="module")
def validators(client):
    schema = client.get("/openapi.json").json()
    bodies = {path: schema["paths"][path]["post"]["requestBody"]["content"]["application/json"] for path in POSTS}
    names = {path: body["schema"]["$ref"].rsplit("/", 1)[1] for path, body in bodies.items()}
    parts = {"components": schema["components"]}
    return {
        path: jsonschema_rs.Draft202012Validator({"$ref": f"#/components/schemas/{name}", **parts})
        for path, name in names.items()
    }


ids = st.integers(0, 400) | st.sampled_from(["7", "nope", 37.0])
histories = st.lists(ids, max_size=4) | st.dictionaries(st.sampled_from(["7", "17", "x"]), st.floats(0, 5), max_size=2)
plausible = {
    "history": histories,
    "user": st.sampled_from([1000, "1001"]),
    "histories": st.lists(histories, max_size=3),
    "users": st.lists(st.sampled_from([1000, "1001"]), max_size=3),
    "item": st.sampled_from([7, "17"]),
    "k": st.integers(-1, 1002),
    "xi": st.floats(-0.5, 1.5),
    "xis": st.lists(st.floats(-0.1, 1.1), max_size=3),
    "item_norm": st.floats(-1.5, 2.5),
    "propensity": st.floats(-1.5, 2.5),
    "item_norms": st.lists(st.floats(-1.1, 2.1), max_size=3),
    "allow": st.lists(ids, max_size=3),
    "deny": st.lists(ids, max_size=3),
    "exclude_seen": st.booleans(),
    "explain": st.booleans(),
}


@given(
    st.sampled_from(POSTS),
    st.fixed_dictionaries({}, optional={name: st.none() | values for name, values in plausible.items()})
    | st.dictionaries(st.sampled_from(sorted(plausible)), anything, max_size=3),
)
@settings(max_examples=repeat(100, 400))
def test_the_schema_allows_what_is_answered_and_nothing_else(client, validators, path, question):
    text = json.dumps(question)
    status = client.post(path, content=text.encode()).status_code
    allowed = "NaN" not in text and "Infinity" not in text and validators[path].is_valid(json.loads(text))
    assert status == (200 if allowed else 422) or (allowed and status == 404), text


def test_every_operation_is_described(client):
    for methods in client.get("/openapi.json").json()["paths"].values():
        for operation in methods.values():
            assert operation["operationId"]
            assert operation["description"]
            for status, response in operation["responses"].items():
                assert response["content"], status
