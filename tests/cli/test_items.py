"""`relae similar`, `explain`, `export` and `inspect`: what a model says of its items and of itself."""

import json

import numpy as np
import polars as pl
import pytest

from relae import store
from relae.cli import _rows
from relae.solvers import DualInverse, PrimalInverse

from .suite import files


def test_similar_items(saved, model, data, shell):
    answer = json.loads(shell.ok("similar", saved, 1004, "--k", 5, "--json"))
    ids, scores = model.similar_items(1004, 5)
    assert answer["item"]["title"] == "Title of 4"
    assert [entry["item"] for entry in answer["items"]] == list(ids)
    assert [entry["similarity"] for entry in answer["items"]] == pytest.approx(scores.tolist(), rel=1e-6)
    two = json.loads(shell.ok("similar", saved, 1004, 1000, "--k", 5, "--json"))
    assert two["results"][0] == answer
    text = shell.ok("similar", saved, 1004, 1000)
    assert "Similar to Title of 4" in text
    assert "Similar to [red]Not markup[/red]" in text


def test_similar_to_a_title_names_the_item(saved, shell):
    said = shell("similar", saved, "title of 9").line()
    assert said == "item 'title of 9' is unknown to the model (did you mean 1009 Title of 9?)"


def test_explanations_add_up(saved, model, data, shell):
    given = ("--history", "1000,1004,1008,1001", "--item", 1012, "--xi", 0.7)
    answer = json.loads(shell.ok("explain", saved, *given, "--json"))
    why = model.with_xi(0.7).explain([1000, 1004, 1008, 1001], 1012)
    assert answer["score"] == pytest.approx(why.score)
    assert [entry["item"] for entry in answer["because"]] == why.items
    assert [entry["contribution"] for entry in answer["because"]] == pytest.approx(why.contributions)
    assert sum(entry["contribution"] for entry in answer["because"]) == pytest.approx(answer["score"])
    text = shell.ok("explain", saved, *given, "--k", 2)
    assert f"score {why.score:.4f} =" in text
    assert "2 others" in text
    adds = [float(line.split()[0]) for line in text.splitlines()[3:]]
    assert sum(adds) == pytest.approx(why.score, abs=2e-4)


def test_explanations_for_a_user(saved, model, data, shell):
    answer = json.loads(shell.ok("explain", saved, "--for", "u003", "--item", 1012, "--json"))
    assert answer["score"] == pytest.approx(model.explain(data.history("u003"), 1012).score)


# --- export ------------------------------------------------------------------------------------------------------


def matrix(frame: pl.DataFrame) -> np.ndarray:
    """Exported weights as a matrix, NaN where there is none."""
    dense = np.full((48, 48), np.nan)
    dense[frame["item"].to_numpy() - 1000, frame["other"].to_numpy() - 1000] = frame["weight"].to_numpy()
    return dense


@pytest.mark.parametrize("extension", ["parquet", "csv", "jsonl"])
def test_all_weights_are_those_of_the_model(extension, saved, model, shell, tmp_path, monkeypatch):
    monkeypatch.setattr(PrimalInverse, "batch_bytes", 7 * 48 * 4)  # several blocks
    out = tmp_path / f"weights.{extension}"
    done = shell("export", saved, "--out", out, "--top", 60, "--xi", 0.6)
    assert (done.code, done.out) == (0, "")
    assert "2,256 weights of 48 items" in done.err
    read = {"parquet": pl.read_parquet, "csv": pl.read_csv, "jsonl": pl.read_ndjson}[extension]
    frame = read(out)
    assert frame.columns == ["item", "rank", "other", "weight"]
    assert frame["item"].is_sorted()
    wanted = model.with_xi(0.6).weights()
    np.fill_diagonal(wanted, np.nan)
    np.testing.assert_allclose(matrix(frame), wanted, rtol=1e-6)
    assert files(tmp_path) == [out.name]


@pytest.mark.parametrize("by", ["weight", "magnitude"])
def test_the_largest_come_first(by, saved, model, shell):
    frame = pl.read_csv(shell.ok("export", saved, "--top", 4, "--by", by).encode())
    wanted = model.weights()
    keys = np.abs(wanted) if by == "magnitude" else wanted.copy()
    np.fill_diagonal(keys, -np.inf)
    for row in range(48):
        part = frame.filter(pl.col("item") == 1000 + row)
        order = np.argsort(-keys[row], kind="stable")[:4]
        assert part["rank"].to_list() == [1, 2, 3, 4]
        assert part["other"].to_list() == (1000 + order).tolist()
        np.testing.assert_allclose(part["weight"], wanted[row, order], rtol=1e-6)
    assert (frame["weight"].min() < 0) == (by == "magnitude")


def test_scores_from_exported_weights_are_those_of_the_model(saved, model, shell, tmp_path):
    """The recipe of the help: add up the weights of the history's items, and leave these out."""
    weights = pl.read_csv(shell.ok("export", saved, "--top", 48).encode())
    history = [1000, 1004, 1009]
    scores = (
        weights.filter(pl.col("item").is_in(history) & ~pl.col("other").is_in(history))
        .group_by("other")
        .agg(pl.col("weight").sum())
        .sort("weight", descending=True)
    )
    ids, wanted = model.recommend(history, 10)
    assert scores["other"].head(10).to_list() == list(ids)
    np.testing.assert_allclose(scores["weight"].head(10), wanted, rtol=1e-5)


def test_the_dual_form_exports_the_same(dual, saved, shell, monkeypatch):
    monkeypatch.setattr(DualInverse, "batch_bytes", 5 * 4 * (48 + 320))
    ours, theirs = (pl.read_csv(shell.ok("export", path, "--top", 48).encode()) for path in (dual, saved))
    np.testing.assert_allclose(matrix(ours), matrix(theirs), atol=1e-5)


def test_a_format_goes_before_an_extension(saved, shell, tmp_path):
    shell.ok("export", saved, "--out", tmp_path / "weights.txt", "--format", "csv", "--top", 1)
    assert pl.read_csv(tmp_path / "weights.txt").height == 48


def test_no_rows_are_a_file_with_columns(tmp_path):
    schema = {"item": pl.Int64, "other": pl.String}
    for kind, read in (("csv", pl.read_csv), ("parquet", pl.read_parquet)):
        assert _rows.write_rows([], schema, tmp_path / f"none.{kind}", kind) == 0
        assert read(tmp_path / f"none.{kind}").columns == ["item", "other"]


def test_what_fails_among_rows_is_told_as_it_is(tmp_path):
    def frames():
        yield pl.DataFrame({"item": [1]})
        raise ZeroDivisionError("of mine")

    for kind in ("csv", "parquet"):
        with pytest.raises(ZeroDivisionError, match="of mine"):
            _rows.write_rows(frames(), {"item": pl.Int64}, tmp_path / f"rows.{kind}", kind)
    assert files(tmp_path) == []


# --- inspect -----------------------------------------------------------------------------------------------------


def test_inspect_says_what_is_in_it(saved, model, shell):
    text = shell.ok("inspect", saved)
    low, high = model.xi_interval_
    parts = (
        "RDLAE(l2=10.0, dropout=0.2, xi=0.3)",
        "visits.csv: 160 users × 48 items",
        f"0.3; between {low:.3f} and {high:.3f}",
        "primal: P itself",
        "by their ids, with their histories",
        "48 × 48",
        "--verify does",
        "Title of",
    )
    for part in parts:
        assert part in text, part
    answer = json.loads(shell.ok("inspect", saved, "--json"))
    info = store.open_model(saved).info
    assert {name: answer[name] for name in info} == json.loads(json.dumps(dict(info)))
    assert answer["size"] == sum(entry["bytes"] for entry in info["arrays"].values())
    assert [entry["popularity"] for entry in answer["popular"]] == sorted(model.item_counts_, reverse=True)[:5]


def test_inspect_of_other_models(popular, dual, shell):
    assert "K⁻¹ and the training data" in shell.ok("inspect", dual)
    text = shell.ok("inspect", popular)
    assert "Popularity()" in text
    assert "not kept" in text
    assert "ξ" not in text


def test_inspect_tells_of_a_training(known, shell):
    text = " ".join(shell.ok("inspect", known).split())
    assert "trained 45 epochs, 7 s, stopped by patience" in text
    assert "kept epoch 30" in text


def test_inspect_says_what_a_folder_without_ids_tells_of_its_users(known, dual, popular, shell):
    for path, holds in ((known, True), (dual, True), (popular, False)):
        text = " ".join(shell.ok("inspect", path).split())
        assert ("what each of them has is part of the model" in text) == holds
        assert ("not kept: a history is all it takes" in text) == (not holds)
        assert json.loads(shell.ok("inspect", path, "--json"))["holds_histories"] is holds


def test_verify_finds_a_flipped_bit(saved, model, data, shell, tmp_path):
    path = tmp_path / "model"
    model.save(path, histories=data)
    assert "every one checked" in shell.ok("inspect", path, "--verify")
    [array] = path.glob("arrays-*/inverse.npy")
    content = bytearray(array.read_bytes())
    content[-5] ^= 1
    array.write_bytes(bytes(content))
    shell.ok("inspect", path)
    assert "checksum does not agree" in shell("inspect", path, "--verify").line()
