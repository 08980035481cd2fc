"""Whatever is wrong with the arguments of whichever command: one readable line, exit code 2, nothing on stdout."""

import json
import shutil

import pytest

from relae.cli import app

from .suite import run


@pytest.fixture(scope="session")
def places(saved, dual, popular, known, tuned, table, columns, tmp_path_factory):
    """What the names in the table below stand for."""
    folder = tmp_path_factory.mktemp("wrong")
    corrupt = shutil.copytree(saved, folder / "corrupt")
    (corrupt / "model.json").write_text((corrupt / "model.json").read_text().replace("RDLAE", "RDLAF"))
    newer = shutil.copytree(saved, folder / "newer")
    record = json.loads((newer / "model.json").read_text())
    (newer / "model.json").write_text(json.dumps(record | {"version": 2}))
    short = shutil.copytree(saved, folder / "short")
    [array] = short.glob("arrays-*/inverse.npy")
    array.write_bytes(array.read_bytes()[:-1])
    (folder / "file").write_text("mine")
    (folder / "bad.json").write_text('["1000", ')
    (folder / "nested.json").write_text('[["1000"], ["1004"]]')
    (folder / "bytes").write_bytes(b"\xff\xfe\x00")
    (folder / "broken.csv").write_text("who,what\na,1,2\n")
    (folder / "empty.csv").write_text("")
    (folder / "blanks.csv").write_text(" user ,item\na,1\n")
    (folder / "twice.csv").write_text("user,item,item\na,1,2\n")
    (folder / "cr.csv").write_bytes(b"user,item\ra,1\r")
    (folder / "wide.csv").write_bytes("user,item\na,1\n".encode("utf-16"))
    (folder / "features.csv").write_text("what,kind\n1000,a\n1001,b\n1002,a\n1003,b\n")
    torn = folder / "torn"
    torn.mkdir()
    (torn / "result.json").write_text('{"request": {}}')
    (folder / "bare").mkdir()
    there = {path.name: path for path in folder.iterdir()}
    return {
        "MODEL": saved,
        "DUAL": dual,
        "POPULAR": popular,
        "KNOWN": known,
        "RUN": tuned,
        "DATA": table,
        "COLUMNS": columns,
        "HERE": folder,
        **there,
    }


def spelled(text: str, places) -> list[object]:
    """Return the arguments of a line, in which some words stand for places."""
    words: list[object] = []
    for word in text.split():
        if word == "COLUMNS":
            words += places["COLUMNS"]
        elif word.startswith("@"):
            words.append(places[word[1:]])
        elif word.startswith("HERE/"):
            words.append(places["HERE"] / word.removeprefix("HERE/"))
        else:
            words.append(places.get(word, word))
    return words


WRONG = [
    # the line, and what has to be said of it
    ("recomend MODEL", "no such command 'recomend'. Did you mean 'recommend'? See `relae --help`"),
    ("--nonsense", "no such option: --nonsense"),
    ("plan", "missing argument 'DATA'; see `relae plan --help`"),
    ("plan nowhere.csv", "neither a file nor a folder nor a benchmark"),
    ("plan MODEL", "is a model, not data"),
    ("plan @bare", "has no train.txt"),
    ("plan DATA", "has no column 'user', its columns are 'who', 'what', 'stars': set --user"),
    ("plan DATA COLUMNS --solver fast", "solver must be 'auto', 'exact', 'primal', 'dual' or 'local'"),
    ("plan DATA COLUMNS --dtype int8", "dtype must be"),
    ("plan online-retail --user who", "no columns to choose from: leave --user out"),
    ("plan @broken.csv --user who --item what", "has 3 fields and the header 2"),
    ("plan @empty.csv", "is empty"),
    (
        "plan @blanks.csv",
        "no column 'user' but ' user ', with blanks in its header: remove them there, or set --user ' us",
    ),
    ("plan @twice.csv", "has several columns named 'item', in the places 2, 3: rename all but one"),
    ("plan @cr.csv", "ends its lines with CR alone: convert it"),
    ("plan @wide.csv", "if it is UTF-16, convert it"),
    ("plan DATA COLUMNS --overlap drop", "--overlap is for a folder with train.txt and test.txt"),
    ("plan HERE --overlap keep", "--overlap is one of refuse, drop, got 'keep'"),
    ("plan online-retail --k-core 3", "no columns to choose from: leave --k-core out"),
    ("plan DATA COLUMNS --min-rating 3", "set --rating"),
    ("plan DATA COLUMNS --min-user-count many", "invalid value 'many' for '--min-user-count'"),
    (
        "plan DATA COLUMNS --weight stars --weighting cubic",
        "weighting must be one of 'linear', 'sqrt', 'log', 'binary'",
    ),
    ("plan DATA COLUMNS --weighting log", "--weighting log needs the column of the amounts: set --weight"),
    ("plan online-retail --weighting log", "no columns to choose from: leave --weighting out"),
    ("recommend MODEL --histories DATA --user who --item what --weight stars", "needs its --weighting"),
    ("evaluate MODEL --on DATA --user who --item what --weight stars", "needs its --weighting: the one that the model"),
    ("fit DATA COLUMNS --half-life 3 --out OUT", "--half-life 3.0 needs times: read the data with --timestamp"),
    ("plan DATA COLUMNS --features nowhere.csv", "nowhere.csv"),
    ("plan DATA COLUMNS --features DATA", "that item is in the table already"),
    ("plan DATA COLUMNS --feature-weight 2", "--feature-weight is for --features FILE, which is not given"),
    ("plan DATA COLUMNS --features @features.csv --feature-weight -1", "--feature-weight must be a finite number"),
    ("plan DATA COLUMNS --features @features.csv --feature-columns colour", "has no column 'colour'"),
    (
        "plan DATA COLUMNS --features @features.csv --separator kind",
        "--separator takes COLUMN=TEXT, such as",
    ),
    ("tune DATA", "missing option '--out'; see `relae tune --help`"),
    ("tune DATA COLUMNS --out HERE/run --split sideways", "the splits are auto, paper, strong"),
    ("tune DATA COLUMNS --out HERE/run --objective beauty@10", "beauty"),
    ("tune DATA COLUMNS --out HERE/run --objective ndcg", "an objective is a metric and a cut-off"),
    ("tune DATA COLUMNS --out HERE/run --objective ndcg@10 --solver fast", "solver must be 'auto'"),
    ("tune DATA COLUMNS --out HERE/run --objective ndcg@10 --budget 0", "budget must be"),
    ("tune DATA COLUMNS --out HERE/file/run --objective ndcg@10", "file"),
    ("tune DATA COLUMNS --out HERE/run --time-budget -2", "--time-budget must be a number of minutes above 0, got -2"),
    ("tune DATA COLUMNS --out HERE/run --model dan --user-norm 0.3", "--user-norm cannot be fixed"),
    ("tune DATA COLUMNS --out HERE/run --split new-items --share 0.01", "cannot hold out 0 of 48 items"),
    ("tune DATA COLUMNS --out HERE/run --split new-items --objective ndcg@9", "needs more items than the 4 there are"),
    ("fit --out HERE/m", "there is no DATA"),
    ("fit DATA COLUMNS", "missing option '--out'"),
    ("fit DATA COLUMNS --out @file", "is a file, and no folder"),
    ("fit DATA COLUMNS --out HERE/file/m", "cannot be made"),
    ("fit DATA COLUMNS --out HERE", "is no model folder"),
    ("fit nowhere.csv --out HERE/m", "neither a file nor a folder nor a benchmark"),
    ("fit DATA --user nobody --out HERE/m", "has no column 'nobody'"),
    ("fit DATA COLUMNS --model magic --out HERE/m", "'magic' is not one of 'dan', 'rdlae'"),
    ("fit DATA COLUMNS --model ease --xi 0.3 --out HERE/m", "EASE has no --xi: leave it out, or choose --model"),
    ("fit DATA COLUMNS --model rlae --dropout 0.3 --out HERE/m", "RLAE has no --dropout"),
    ("fit DATA COLUMNS --model gfcf --l2 3 --out HERE/m", "GFCF has no --l2"),
    ("fit DATA COLUMNS --model gfcf --out HERE/m", "rank must lie between 1 and 47"),
    ("fit DATA COLUMNS --model gfcf --learning-rate 1 --out HERE/m", "GFCF has no --learning-rate: leave it out"),
    (
        "fit DATA COLUMNS --model ease --set depth=3 --out HERE/m",
        "EASE has no parameter 'depth' to --set: its parameters",
    ),
    (
        "fit DATA COLUMNS --model lightgcn --set dim=big --out HERE/m",
        "'big' is not a whole number; the parameters of LightGCN and their defaults are dim 64, layers 3, l2 0.0001, ",
    ),
    ("fit DATA COLUMNS --model ltocf --set residual=maybe --out HERE/m", "'maybe' is not true or false"),
    ("fit DATA COLUMNS --model ease --set l2=much --out HERE/m", "'much' is not a number or none"),
    ("fit DATA COLUMNS --model ease --set l2 --out HERE/m", "--set takes NAME=VALUE, got 'l2'"),
    ("fit DATA COLUMNS --model popularity --set l2=3 --out HERE/m", "Popularity has no parameters"),
    ("fit DATA COLUMNS --model contentknn --out HERE/m", "there are no features of items to compare"),
    ("fit DATA COLUMNS --model random --set seed=-1 --out HERE/m", "seed must be a whole number of at least 0"),
    ("fit DATA COLUMNS --model ease --time-budget 3 --out HERE/m", "EASE is fitted at once, and not by epochs"),
    ("fit DATA COLUMNS --model grmf --time-budget -1 --out HERE/m", "must be a number of minutes above 0, got -1"),
    ("fit DATA COLUMNS --user-norm 0.3 --out HERE/m", "RDLAE has no --user-norm: leave it out, or choose --model dan"),
    ("fit DATA COLUMNS --model dan --user-norm 7 --out HERE/m", "--user-norm must lie in [-1, 2], got 7.0"),
    ("fit DATA COLUMNS --l2 -3 --out HERE/m", "l2 must"),
    ("fit DATA COLUMNS --dropout 1 --out HERE/m", "dropout must"),
    ("fit DATA COLUMNS --xi 2 --out HERE/m", "xi must lie in [0, 1], got 2.0"),
    ("fit DATA COLUMNS --form round --out HERE/m", "'round' is not one of 'auto', 'primal', 'dual', 'fitted'"),
    ("fit DATA COLUMNS --solver primal --form dual --out HERE/m", "dual"),
    ("fit --from nowhere --out HERE/m", "nowhere is no folder of a run"),
    ("fit --from HERE --out HERE/m", "has no result.json: the run is not finished"),
    ("fit --from @torn --out HERE/m", "is damaged, or no result of a run"),
    ("fit --from RUN --model ease --xi 0.2 --out HERE/m", "EASE has no --xi"),
    ("evaluate", "there is no DATA"),
    ("evaluate MODEL", "is a model: say by whose data to judge it, with --on DATA"),
    ("evaluate nowhere.csv", "neither a file nor a folder nor a benchmark"),
    ("evaluate DATA COLUMNS --metrics beauty", "there is no metric 'beauty'"),
    ("evaluate DATA COLUMNS --k 0", "at least 1, got 0"),
    ("evaluate DATA COLUMNS --k ten", "--k takes whole numbers separated by commas, got 'ten'"),
    ("evaluate DATA COLUMNS --k 500", "500"),
    ("evaluate DATA COLUMNS --xis 0,2", "xi must lie in [0, 1], got 2.0"),
    ("evaluate DATA COLUMNS --xis low", "--xis takes numbers separated by commas"),
    ("evaluate DATA COLUMNS --xis 0,1 --model popularity", "--xis needs a linear autoencoder"),
    ("evaluate DATA COLUMNS --share 2", "share must lie between 0 and 1"),
    ("evaluate DATA COLUMNS --split last", "as in --timestamp ts"),
    ("evaluate gowalla --split paper --features @features.csv", "the paper's split knows nothing of --features"),
    ("evaluate DATA COLUMNS --split new-items --share 0.01", "cannot hold out 0 of 48 items"),
    ("evaluate DATA COLUMNS --hide 0.5", "--hide is for a saved model"),
    ("evaluate DATA COLUMNS --out HERE/x.png", "none of .json, .csv, .md"),
    ("evaluate DATA COLUMNS --model popularity --out HERE/file/x.md", "cannot be written"),
    ("evaluate MODEL --on DATA COLUMNS --l2 3", "--l2 is for a model that is yet to be fitted"),
    ("evaluate MODEL --on DATA COLUMNS --batch-size 3", "--batch-size is for a model that is yet to be fitted"),
    ("evaluate MODEL --on DATA COLUMNS --set l2=3", "--set is for a model that is yet to be fitted"),
    ("evaluate MODEL --on DATA COLUMNS --hide 1", "truth_share must lie between 0 and 1"),
    ("evaluate MODEL --on nowhere.csv", "neither a file nor a folder nor a benchmark"),
    ("evaluate nowhere --on DATA COLUMNS", "there is no model folder nowhere"),
    ("evaluate --on DATA COLUMNS", "there is no MODEL"),
    ("evaluate KNOWN --on gowalla", "with `relae evaluate gowalla --model lightgcn --split weak`"),
    ("compare", "missing argument 'DATA'"),
    ("compare nowhere.csv --out HERE/c", "neither a file nor a folder nor a benchmark"),
    ("compare DATA COLUMNS --models rdlae,lightgnc --out HERE/c", "no model 'lightgnc' (did you mean lightgcn?)"),
    ("compare DATA COLUMNS --models , --out HERE/c", "--models names no model"),
    ("compare DATA COLUMNS --split sideways --out HERE/c", "the splits are auto, paper, strong"),
    ("compare DATA COLUMNS --k 0 --out HERE/c", "k must lie between 1 and the 48 items there are, got 0"),
    ("compare DATA COLUMNS --k 9 --split new-items --out HERE/c", "k must lie between 1 and the 4 items there are"),
    ("compare DATA COLUMNS --k 500 --out HERE/c", "k must lie between 1 and the 48 items there are, got 500"),
    ("compare DATA COLUMNS --budget 0 --out HERE/c", "the budget must be a whole number of fits, at least 1, got 0"),
    ("compare DATA COLUMNS --time-budget 0 --out HERE/c", "must be a number of minutes above 0, got 0"),
    ("compare DATA COLUMNS --time-budget -1 --out HERE/c", "--time-budget must be a number of minutes above 0, got -1"),
    ("compare DATA COLUMNS --share 2 --out HERE/c", "share must lie between 0 and 1"),
    ("compare DATA COLUMNS --out @file", "is a file, and no folder"),
    ("compare DATA COLUMNS --out HERE/file/c", "is a file, and no folder"),
    ("report nowhere", "is no folder of a run"),
    ("report RUN --samples -1", "at least 0"),
    ("recommend", "missing argument 'MODEL'"),
    ("recommend MODEL", "whose history? Give one of --history,"),
    ("recommend MODEL --history 1000 --for u001", "got --history and --for"),
    ("recommend MODEL --all-users --histories DATA", "got --all-users and --histories"),
    ("recommend MODEL --user u001", "a user by id is --for u001"),
    ("recommend nowhere --history 1000", "there is no model folder nowhere"),
    ("recommend @corrupt --history 1000", "is corrupt"),
    ("recommend @newer --history 1000", "of a newer relae"),
    ("recommend @short --history 1000", "is corrupt"),
    ("recommend HERE --history 1000", "has no model.json"),
    ("recommend @file --history 1000", "there is no model folder"),
    ("recommend MODEL --history 1000 --k 0", "k must be a whole number of at least 1, got 0"),
    ("recommend MODEL --all-users --k 0", "k must be a whole number of at least 1, got 0"),
    ("recommend MODEL --all-users --k 0 --out HERE/x.parquet", "k must be a whole number of at least 1, got 0"),
    ("recommend MODEL --history 1000 --k 2.5", "invalid value '2.5' for '--k'"),
    ("recommend MODEL --history 1000 --xi 2", "xi must lie in [0, 1], got 2.0"),
    ("recommend POPULAR --history 1000 --xi 0.2", "--xi needs a linear autoencoder"),
    ("recommend POPULAR --history 1000 --explain", "--explain needs a linear autoencoder"),
    ("recommend MODEL --for nobody", "user 'nobody' is unknown to the model"),
    ("recommend MODEL --for u01", "such as u"),
    ("recommend DUAL --for u001", "was saved without the users' histories"),
    ("recommend DUAL --all-users", "was saved without the users' histories"),
    ("recommend MODEL --history-file nowhere", "nowhere cannot be read"),
    ("recommend MODEL --history-file @bad.json", "begins like JSON and is none"),
    ("recommend MODEL --history-file @nested.json", "--histories TABLE"),
    ("recommend MODEL --history-file @bytes", "not UTF-8"),
    ("recommend MODEL --histories DATA", "has no column 'user'"),
    ("recommend MODEL --histories nowhere.csv", "neither a file nor a folder nor a benchmark"),
    ("recommend MODEL --history 1000 --allow x,y", "--allow names no item that the model knows"),
    ("recommend MODEL --history 1000 --deny-file nowhere", "nowhere cannot be read"),
    ("recommend MODEL --all-users --json", "--json is for lists on the screen"),
    ("recommend MODEL --history 1000 --explain --format csv", "--explain is for lists on the screen"),
    ("recommend MODEL --history 1000 --with-titles", "--with-titles is for rows"),
    ("recommend MODEL --all-users --format parquet", "Parquet goes to a file"),
    ("recommend MODEL --all-users --format xml", "'xml' is not one of 'csv', 'jsonl', 'parquet'"),
    ("recommend MODEL --all-users --out HERE/x.txt", "the extension '.txt' is none of"),
    ("recommend MODEL --all-users --out HERE/file/x.csv", "cannot be written"),
    ("recommend MODEL --all-users --out HERE --format csv", "cannot be written: it is a folder"),
    ("similar MODEL", "missing argument 'ITEM...'"),
    ("similar MODEL 9999", "item '9999' is unknown to the model"),
    ("similar MODEL 1000 --k 0", "at least 1, got 0"),
    ("similar POPULAR 1000", "similar needs a linear autoencoder"),
    ("similar nowhere 1000", "there is no model folder"),
    ("explain MODEL --history 1000", "missing option '--item'"),
    ("explain MODEL --item 1000", "whose history? Give one of --history, --history-file, --for; got nothing"),
    ("explain MODEL --item 1000 --history 1 --for u001", "got --history and --for"),
    ("explain MODEL --item 9999 --history 1000", "item '9999' is unknown"),
    ("explain MODEL --item 1000 --for nobody", "user 'nobody' is unknown"),
    ("explain MODEL --item 1000 --history 1000 --xi -1", "xi must lie in [0, 1], got -1.0"),
    ("explain MODEL --item 1000 --history 1000 --k 0", "at least 1, got 0"),
    ("explain POPULAR --item 1000 --history 1000", "explain needs a linear autoencoder"),
    ("export MODEL --top 0", "--top must be at least 1, got 0"),
    ("export MODEL --by luck", "'luck' is not one of 'weight', 'magnitude'"),
    ("recommend MODEL --history 1000 --item-norm 5", "--item-norm must lie in [-1, 2], got 5.0"),
    ("recommend POPULAR --history 1000 --item-norm 0.1", "--item-norm needs a linear autoencoder"),
    ("explain MODEL --item 1000 --history 1000 --propensity 3", "propensity must lie in [-1, 2], got 3.0"),
    ("export MODEL --item-norm -2", "--item-norm must lie in [-1, 2], got -2.0"),
    ("export MODEL --xi 2", "xi must lie in [0, 1], got 2.0"),
    ("export MODEL --out HERE/x", "the extension '' is none of"),
    ("export MODEL --out HERE/file/x.parquet", "cannot be written"),
    ("export POPULAR", "export needs a linear autoencoder"),
    ("export nowhere", "there is no model folder"),
    ("update MODEL", "missing argument 'EVENTS'"),
    ("update nowhere DATA COLUMNS", "there is no model folder"),
    ("update MODEL HERE/nothing.csv COLUMNS", "is neither a file nor a folder"),
    ("update MODEL DATA COLUMNS --keep -1", "keep must be a whole number"),
    ("forget MODEL", "whom to forget?"),
    ("forget MODEL --user nobody", "user 'nobody' is unknown"),
    ("forget MODEL --users HERE/nothing.txt", "cannot be read"),
    ("drop MODEL", "missing option '--item'"),
    ("drop MODEL --item nothing", "item 'nothing' is unknown"),
    ("rollback MODEL", "keeps no earlier version"),
    ("rollback nowhere", "there is no model folder"),
    ("compact MODEL", "missing option '--out'"),
    ("compact nowhere --out HERE/m", "there is no model folder"),
    ("compact MODEL --out MODEL", "is the model itself"),
    ("compact MODEL --per-item 0 --out HERE/m", "neighbours must be a whole number"),
    ("compact MODEL --supports luck --out HERE/m", "'luck' is not one of"),
    ("inspect", "missing argument 'MODEL'"),
    ("inspect nowhere", "there is no model folder"),
    ("inspect @corrupt", "is corrupt"),
    ("serve nowhere --port 0", "there is no model folder"),
    ("serve @corrupt --port 0", "is corrupt"),
    ("serve MODEL --port 99999", "the port must lie between 0 and 65535"),
    ("serve MODEL --workers 0", "workers must be at least 1"),
    ("serve MODEL --max-k 0", "--max-k must be at least 1"),
    ("serve MODEL --cors shop", "an origin is a scheme and a host"),
    ("serve MODEL --port http", "invalid value 'http' for '--port'"),
    ("reproduce table9 --dataset gowalla", "table9"),
    ("reproduce table2", "missing option '--dataset'"),
    (
        "reproduce table2 --dataset gowalla --time-budget 0",
        "must be a number of minutes above 0, got 0",
    ),
    ("figures nowhere.csv", "neither a file nor a folder nor a benchmark"),
    ("figures DATA COLUMNS --only 9", "no figure fig9"),
    ("datasets info gowala", "did you mean 'gowalla'"),
    ("datasets nothing", "no such command 'nothing'"),
    ("demo now", "unexpected extra argument"),
]


@pytest.mark.parametrize(("line", "said"), WRONG, ids=[line for line, _ in WRONG])
def test_one_readable_line(line, said, places, shell, monkeypatch):
    monkeypatch.delenv("RELAE_DEBUG", raising=False)
    before = sorted(places["HERE"].iterdir())
    message = shell(*spelled(line, places)).line()
    assert said.lower() in message.lower()
    assert len(message) < 700
    assert sorted(places["HERE"].iterdir()) == before  # nothing is left behind
    assert places["file"].read_text() == "mine"


def test_every_command_is_tried_with_wrong_arguments():
    names = {info.name or info.callback.__name__ for info in app.registered_commands}
    names |= {group.name for group in app.registered_groups}
    assert names == {line.split()[0] for line, _ in WRONG} - {"--nonsense", "recomend"}


@pytest.mark.parametrize(
    "line", ["recommend @corrupt --history 1000", "fit DATA COLUMNS --out HERE/file/m", "serve MODEL --workers 0"]
)
def test_the_same_in_a_process_of_its_own(line, places):
    done = run(*spelled(line, places))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("relae: ")
    assert done.stderr.count("\n") == 1
