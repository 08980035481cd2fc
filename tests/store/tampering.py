# ruff: noqa: T201
"""Model folders with something wrong in them, drawn from a seed: run as a program, so that a crash is noticed.

    python -m tests.store.tampering records|arrays FIRST COUNT FOLDER

Each seed opens and uses one folder. It may be refused with a StoreError, or work with whatever numbers come out; any
other error, and any end of the process, is a failure. The checksums of most are made to agree, as somebody would who
means harm.
"""

import copy
import json
import os
import random
import sys
import warnings
from functools import cache, partial
from pathlib import Path

import numpy as np

from relae import DLAE, EASE, RDLAE, Interactions, RelaeError, StoreError, store
from relae.baselines import (
    BSPM,
    GFCF,
    HMLET,
    IALS,
    LTOCF,
    SLIM,
    ChebyCF,
    ContentKNN,
    ItemKNN,
    LastItemKNN,
    LightGCN,
    Mark,
    Markov,
    MultVAE,
    Popularity,
    Random,
    RP3Beta,
    Trending,
    TurboCF,
)
from relae.data import Dropped, Ids
from relae.models import DAN, DEQL, NextItem
from relae.serve import Settings
from relae.serve._snapshot import Snapshot
from relae.solvers import Local
from relae.store import _format

from ..oracles import csr, example

USERS, ITEMS, FEATURES = 14, 11, 4
X = example(USERS, ITEMS, weighted=True)
X[:, -2:] = 0  # items without users
SEEN = (np.random.default_rng(5).random(X.shape) < 0.2) & (X == 0)
DATA = Interactions(
    csr(X),
    [f"user {u}" for u in range(USERS)],
    [f"item {i}" for i in range(ITEMS)],
    [f"№{i}" for i in range(ITEMS)],
    seen=SEEN,
    dropped=Dropped(Ids(["nobody", "no one"]), np.array([0, 1], np.uint8), ("min_rating=4", "min_user_count=2")),
)
TIMED = DATA.replace(times=1_700_000_000 + 3_600 * np.arange(DATA.n_interactions))
NUMBERED = Interactions(csr(X), range(USERS), range(100, 100 + ITEMS))
TABLE = (np.random.default_rng(0).random((ITEMS, FEATURES)) < 0.5).astype(np.float32)
TABLE[:, 0] = 1


def _trained(model, **arrays):
    """A trained model whose arrays were drawn, and not learned."""
    rng = np.random.default_rng(1)
    model._take({name: rng.standard_normal(shape).astype(np.float32) for name, shape in arrays.items()}, DATA)
    model.curve_, model.epochs_, model.best_epoch_ = [Mark(1, 0.1, 0.7, float("nan")), Mark(2, 0.2, 0.6, 0.3)], 2, 2
    model.stopped_ = "epochs"
    return model


def _fitted(model, data=DATA, **how):
    return model.fit(data, **how)


_VECTORS = {"users": (USERS, 3), "items": (ITEMS, 3)}
_LAYERS = {
    "encoder_hidden_weight": (ITEMS, 5),
    "encoder_hidden_bias": (5,),
    "encoder_outer_weight": (5, 3),
    "encoder_outer_bias": (3,),
    "decoder_hidden_weight": (3, 5),
    "decoder_hidden_bias": (5,),
    "decoder_outer_weight": (5, ITEMS),
    "decoder_outer_bias": (ITEMS,),
}
KINDS = {
    "primal": partial(_fitted, DLAE(3.0, 0.4), NUMBERED, solver="primal"),
    "dual": partial(_fitted, RDLAE(3.0, 0.4), solver="dual"),
    "dual, weighted": partial(_fitted, DAN(3.0, item_norm=0.1), solver="dual"),
    "local": partial(_fitted, EASE(3.0), solver=Local(5)),
    "new items": partial(_fitted, RDLAE(3.0, 0.2), item_features=TABLE, solver="primal"),
    "new items, dual": partial(_fitted, RDLAE(3.0, 0.2), NUMBERED, item_features=TABLE, solver="dual"),
    "new items, local": partial(_fitted, RDLAE(3.0, 0.2), item_features=TABLE, solver=Local(5)),
    "DEQL": partial(_fitted, DEQL(3.0, 0.4, 0.3), solver="primal"),
    "ItemKNN": partial(_fitted, ItemKNN(4)),
    "ContentKNN": partial(_fitted, ContentKNN(4), item_features=TABLE),
    "IALS": partial(_fitted, IALS(3)),
    "GFCF": partial(_fitted, GFCF(0.3, 3)),
    "SLIM": partial(_fitted, SLIM(0.1, 1.0, 4)),
    "RP3Beta": partial(_fitted, RP3Beta()),
    "TurboCF": partial(_fitted, TurboCF(order=3)),
    "ChebyCF": partial(_fitted, ChebyCF(3, rank=3)),
    "BSPM": partial(_fitted, BSPM(0.3, 3)),
    "Popularity": partial(_fitted, Popularity(), NUMBERED),
    "Random": partial(_fitted, Random(3)),
    "Trending": partial(_fitted, Trending(3.0), TIMED),
    "time": partial(_fitted, RDLAE(3.0, 0.4, half_life=1.0, fading=0.3, freshness=0.2), TIMED, solver="primal"),
    "time, dual": partial(_fitted, RDLAE(3.0, freshness=0.2), TIMED, solver="dual"),
    "NextItem": partial(_fitted, NextItem(2.0, 0.7), TIMED),
    "NextItem, local": partial(_fitted, NextItem(2.0), TIMED, solver=Local(5)),
    "LastItemKNN": partial(_fitted, LastItemKNN(), TIMED),
    "Markov": partial(_fitted, Markov(), TIMED),
    "MultVAE": partial(_trained, MultVAE(3, 5), **_LAYERS),
    "LightGCN": partial(_trained, LightGCN(3), **_VECTORS),
    "LTOCF": partial(_trained, LTOCF(3), **_VECTORS, times=(5,)),
    "HMLET": partial(_trained, HMLET(3), **_VECTORS, linear_shares=(2, 2)),
}


@cache
def originals(folder: Path) -> dict[str, dict[str, bytes]]:
    """The files of a saved model of every kind, by their places in its folder."""
    found = {}
    for number, (name, fit) in enumerate(KINDS.items()):
        place, model = folder / f"original-{number}", fit()
        data = NUMBERED if model.items_.kind == "int" else TIMED if "time" in name or number % 2 else DATA
        known = data if number % 3 else data.select_users(np.arange(5)) if number % 2 else None
        model.save(place, histories=known, title=f"an example of {name}")
        files = (path for path in place.rglob("*") if path.is_file())
        found[name] = {path.relative_to(place).as_posix(): path.read_bytes() for path in files}
    return found


def seal(record):
    """Return the text of a record whose checksum agrees, as far as it can have one."""
    record = {name: value for name, value in record.items() if name != "checksum"}
    try:
        record["checksum"] = _format.checksum(record)
    except ValueError:
        record["checksum"] = "none"
    return json.dumps(record)


# --- records -------------------------------------------------------------------------------------------------------


def _values(draw):
    return draw.choice(
        [
            *(None, True, False, 0, 1, -1, 2, 0.5, -0.5, 1.5, 1e-320, 1e300, 2**31, 2**63, -(2**63), 10**40, ITEMS),
            *("", "abc", "1", "primal", "dual", "local", "float64", "RDLAE", "Popularity", "\ud800", "\0", "ä" * 5000),
            *([], [1], [[1, 2], [3]], [None] * 3, {}, {"a": {"b": 1}}, {"1": None}, [[[[]]]] * 3),
            *(float("nan"), float("inf"), ITEMS - 1, USERS, USERS - 1, [ITEMS], [ITEMS, ITEMS], "<f4", "<i8", "|O"),
        ]
    )


def _places(value):
    """Every container of a record with each of its keys."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def tamper_record(draw: random.Random, files: dict[str, bytes]) -> None:
    """Change a record in one to three places, or its bytes."""
    if draw.random() < 0.1:
        content = bytearray(files["model.json"])
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(content))
            how = draw.random()
            if how < 0.5:
                content[at] = draw.randrange(256)
            elif how < 0.75:
                del content[at : at + draw.randint(1, 50)]
            else:
                content[at:at] = draw.randbytes(draw.randint(1, 5))
        files["model.json"] = bytes(content)
        return
    record = json.loads(files["model.json"])
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        parts = [record.get(part) for part in ("fitted", "parameters", "arrays", "data")]
        below = draw.choice([record, record, *parts])
        places = list(_places(below)) if isinstance(below, (dict, list)) else []
        if not places:
            continue
        holder, key = draw.choice(places)
        how = draw.random()
        if how < 0.65:
            holder[key] = copy.deepcopy(_values(draw))
        elif how < 0.8:
            del holder[key]
        elif how < 0.9:
            other, its_key = draw.choice(places)
            try:
                holder[key], other[its_key] = other[its_key], holder[key]
            except (LookupError, TypeError):
                continue
        elif isinstance(holder, dict):
            holder[draw.choice(["users", "new_items", "x_starts", "form", "features", "xi", "é"])] = _values(draw)
        elif isinstance(holder[key], (int, float)):
            holder[key] *= draw.choice([-1, 2, 1.5])
        try:  # a container may have come into itself
            json.dumps(record)
        except (ValueError, RecursionError):
            return
    files["model.json"] = (seal(record) if draw.random() < 0.95 else json.dumps(record)).encode()


# --- arrays --------------------------------------------------------------------------------------------------------

_INTEGERS = (-1, 0, 1, ITEMS - 1, ITEMS, USERS, 2**31 - 1, -(2**31), 255, 10**6)
_WIDE = (2**63 - 1, -(2**63), 2**40, 2**32, 2**32 + 1)
_FLOATS = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e38, 5e-324, 1e-30, -1e30)


def _read(content):
    import io

    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)


def _extreme(draw, array):
    if array.dtype.kind == "f":
        return draw.choice(_FLOATS)
    if array.dtype == np.uint8:
        return draw.randrange(256)
    return np.array(draw.choice(_INTEGERS + (_WIDE if array.dtype.itemsize == 8 else ()))).astype(array.dtype)


def _other_values(draw, array):
    flat = array.reshape(-1)
    if len(flat) == 0:
        return array
    how = draw.random()
    if how < 0.6:
        for _ in range(draw.choice([1, 1, 2, 5])):
            flat[draw.randrange(len(flat))] = _extreme(draw, array)
    elif how < 0.7:
        flat[:] = _extreme(draw, array)
    elif how < 0.8:
        flat[:] = flat[::-1].copy()
    elif how < 0.9:
        order = list(range(len(flat)))
        draw.shuffle(order)
        flat[:] = flat[order]
    elif array.dtype == np.int64 and len(flat) > 4:  # differences of neighbours that overflow look like steps forward
        flat[1], flat[2], flat[3] = 2**63 - 1, -(2**63), -1
    else:
        flat[:] = np.cumsum(flat).astype(flat.dtype)
    return array


def _other_dtype(draw, array):
    dtype = draw.choice(["<f4", "<f8", "<i4", "<i8", "|u1", "<f2", "<u4", "<i2", "|b1", ">f4", ">i8", "<c8", "<f8"])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return array.astype(dtype)


def _other_shape(draw, array):
    flat = array.reshape(-1)
    options = [
        flat[:-1],
        np.concatenate([flat, flat[:1]]),
        flat[:0],
        flat[: draw.randint(0, len(flat))],
        np.tile(flat, 3),
        flat.reshape(-1, 1),
        flat.reshape(1, -1),
        flat.reshape(-1, 1, 1),
        array.T.copy(),
        array[..., :-1],
    ]
    return draw.choice(options)


def _strange_header(draw, array):
    """A header that is not ours, or is ours and lies."""
    import io
    import pickle

    how = draw.randrange(5)
    if how == 0:
        plain = array if array.ndim == 2 else array.reshape(1, -1)
        file = io.BytesIO()
        np.lib.format.write_array(file, np.asfortranarray(plain))
        return file.getvalue()
    if how == 1:
        file = io.BytesIO()
        np.lib.format.write_array(file, np.array([{"a": 1}, print], dtype=object), allow_pickle=True)
        return file.getvalue()
    if how == 2:
        return pickle.dumps(array)
    if how == 3:
        file = io.BytesIO()
        np.lib.format.write_array(file, array, version=(2, 0))
        return file.getvalue()
    content = bytearray(_format.header(array.dtype, array.shape) + array.tobytes())
    content[draw.randrange(min(128, len(content)))] = draw.randrange(256)
    return bytes(content)


def _encoded(array):
    return _format.header(array.dtype, array.shape) + np.ascontiguousarray(array).tobytes()


def tamper_arrays(draw: random.Random, files: dict[str, bytes | str]) -> None:
    """Change one array or several; the record agrees with them, or not."""
    record = json.loads(files["model.json"])
    names = sorted(record["arrays"])
    starts = [name for name in names if name.endswith(("_starts", "_columns", "items"))]
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        name = draw.choice(starts if starts and draw.random() < 0.4 else names)
        place = f"{record['folder']}/{name}.npy"
        if place not in files or not isinstance(files[place], bytes):
            continue
        try:
            array = _read(files[place]).copy()
        except Exception:
            continue  # it is beyond reading already
        entry, how, agrees = record["arrays"][name], draw.random(), draw.random() < 0.85
        if how < 0.45:
            array = _other_values(draw, array)
        elif how < 0.58:
            array = _other_dtype(draw, array)
        elif how < 0.7:
            array = _other_shape(draw, array)
        elif how < 0.76:
            files[place] = _strange_header(draw, array)
            entry["bytes"] = len(files[place]) if agrees else entry["bytes"]
            continue
        elif how < 0.82:
            content = files[place]
            files[place] = draw.choice([b"", content[:60], content[:-1], content + b"\0", content[: len(content) // 2]])
            entry["bytes"] = len(files[place]) if agrees else entry["bytes"]
            continue
        elif how < 0.88:  # a file that claims to be huge, and is where the disk can leave holes in it
            size = draw.choice([10**6, 5 * 10**8, 2**32, 2**38])
            shape = draw.choice([[size], [1, size], [entry["shape"][0], size // max(1, entry["shape"][0])]])
            dtype = np.dtype(entry["dtype"])
            start = _format.header(dtype, shape)
            total = len(start) + int(np.prod(shape, dtype=np.float64)) * dtype.itemsize
            if draw.random() < 0.7 and total < 2**42:
                files[place] = f"holes {total} {start.hex()}"
            entry.update(shape=shape, bytes=total)
            continue
        elif how < 0.92:
            files[place] = draw.choice(["fifo", "folder", "device", "nothing"])
            continue
        elif how < 0.96:
            other = draw.choice(names)
            its_place = f"{record['folder']}/{other}.npy"
            files[place], files[its_place] = files.get(its_place, b""), files[place]
            if agrees:
                record["arrays"][name], record["arrays"][other] = record["arrays"][other], record["arrays"][name]
            continue
        else:
            if draw.random() < 0.5:
                del record["arrays"][name]
                names = sorted(record["arrays"]) or [name]
                starts = []
                if not record["arrays"]:
                    break
            else:
                extra = draw.choice(["extra", "new_items", "histories_starts", "features_values", "row_weights"])
                record["arrays"][extra] = entry
                files[f"{record['folder']}/{extra}.npy"] = files[place]
            continue
        files[place] = _encoded(array)
        if agrees:
            entry.update(dtype=array.dtype.str, shape=list(array.shape), bytes=len(files[place]))
    files["model.json"] = seal(record).encode()


# --- use -----------------------------------------------------------------------------------------------------------


def lay_out(folder: Path, files: dict[str, bytes | str]) -> None:
    """Write the files of a folder; a word stands for what is no plain file."""
    for place, content in files.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            path.rmdir()
        elif os.path.lexists(path):
            path.unlink()
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content == "fifo":
            os.mkfifo(path)
        elif content == "folder":
            path.mkdir()
        elif content == "device":
            path.symlink_to("/dev/zero")
        elif content.startswith("holes"):
            _, size, start = content.split()
            path.write_bytes(bytes.fromhex(start))
            os.truncate(path, int(size))


def use(folder: Path) -> None:
    """Open a folder and do everything with it that reads its arrays; only errors of relae may come of it."""
    saved = store.open_model(folder)
    model = saved.model
    json.dumps(saved.info)
    assert saved.size > 0
    str(model), model._repr_html_(), model.holds_histories
    some = model.items_.values[:3].tolist()
    histories = [some, some[:1], [], {some[-1]: 2.5}]
    tasks = [lambda: model.recommend(histories, 5), lambda: model.recommend(some, 3, exclude_seen=False)]
    tasks += [lambda: model.score(histories), lambda: model.recommend(csr(X[:, : len(model.items_)]), 4)]
    if model.explains:
        tasks += [lambda: model.explain(some, some[-1]), lambda: model.similar_items(some[0], 4), model.weights]
    if "xi" in model.dials:
        tasks += [lambda: model.recommend_path(histories, [0, 0.5, 1], 3), lambda: model.with_dials(item_norm=0.2)]
        tasks += [lambda: model.with_dials(item_norm=0.2).recommend(histories, 3)]
        tasks += [lambda: model.with_dials(propensity=0.2).score(histories)]
    if "freshness" in model.dials:
        tasks += [lambda: model.with_dials(freshness=0.5, fading=0.2).recommend(histories, 3)]
    tasks += [lambda: saved.histories, lambda: model.recommend(saved.histories, 3) if saved.histories else None]
    tasks += [lambda: Snapshot(saved, Settings(folder))]  # what a reload of the service makes of it
    tasks += [lambda: saved.histories.dropped.why("nobody") if saved.histories and saved.histories.dropped else None]
    for task in tasks:
        try:
            task()
        except RelaeError:
            continue


def main(what: str, first: int, count: int, folder: Path) -> None:
    """Print the seed before each folder, and in the end how many were refused and how many worked."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    kinds = originals(folder)
    place, refused = folder / "tampered", 0
    before: tuple[str, dict] = ("", {})
    for seed in range(first, first + count):
        print(seed, flush=True)
        draw = random.Random(seed)
        name = draw.choice(sorted(kinds))
        files = dict(kinds[name])
        {"records": tamper_record, "arrays": tamper_arrays}[what](draw, files)
        if before[0] != name:
            for path in sorted(place.rglob("*"), reverse=True) if place.exists() else []:
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
            changed = files
        else:
            changed = {
                at: files.get(at, "nothing") for at in {*files, *before[1]} if files.get(at) != before[1].get(at)
            }
        lay_out(place, changed)
        before = name, files
        try:
            use(place)
        except StoreError:
            refused += 1
        except RelaeError as error:
            if "needs" not in str(error):  # more memory than there is
                raise
            refused += 1
    print(f"{refused} refused, {count - refused} worked")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
