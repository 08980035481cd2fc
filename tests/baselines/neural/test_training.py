"""The loop: what is learned, how it ends, and how it goes on after a kill."""

import builtins
import json
import signal
import subprocess
import sys
from dataclasses import replace
from io import BytesIO
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

pytest.importorskip("torch", reason="the extra `neural` is not installed")
pytest.importorskip("torchdiffeq", reason="the extra `neural` is not installed")

import torch

import relae
from relae import DataError, Interactions, PlanError
from relae.baselines import GRMF, HMLET, LTOCF, GRMFNorm, LightGCN, MultVAE, Popularity
from relae.baselines.neural import _training
from relae.baselines.neural._average import Average
from relae.evaluation import evaluate, hold_out_items, hold_out_users

from ...oracles import csr
from ...real_data import real

BLOCKS, WIDE, TALL = 5, 6, 18


def blocks():
    """Users who have all items of their block but one: the missing one is the obvious answer."""
    x = np.zeros((BLOCKS * TALL, BLOCKS * WIDE), np.float32)
    missing = np.empty(len(x), np.int64)
    for user in range(len(x)):
        block = user // TALL
        x[user, block * WIDE : (block + 1) * WIDE] = 1
        missing[user] = block * WIDE + user % WIDE
        x[user, missing[user]] = 0
    return x, missing


X, MISSING = blocks()
QUICK = {"epochs": 60, "batch_size": 64, "validation_share": 0.0, "dim": 8}
MODELS = {
    "GRMF": GRMF(**QUICK, smoothness=0.1, learning_rate=0.03),
    "GRMFNorm": GRMFNorm(**QUICK, smoothness=2.0, learning_rate=0.03),
    "LightGCN": LightGCN(**QUICK, learning_rate=0.03),
    "LTOCF": LTOCF(**QUICK, learning_rate=0.03),
    "HMLET": HMLET(**QUICK, learning_rate=0.03, warm_up=1),
    "MultVAE": MultVAE(**{**QUICK, "batch_size": 20}, hidden=32, learning_rate=0.01, dropout=0.3),
    "MultVAE without hidden layers": MultVAE(**{**QUICK, "batch_size": 20}, hidden=0, learning_rate=0.03, dropout=0.3),
}


@pytest.fixture(params=MODELS)
def model(request):
    return clone(MODELS[request.param])


def test_the_obvious_answer_is_found(model):
    model.fit(csr(X))
    found, _ = model.recommend(csr(X), 1)
    assert (found[:, 0] == MISSING).all()


def test_the_loss_falls_and_the_curve_tells(model):
    model.set_params(epochs=12).fit(csr(X))
    assert [mark.epoch for mark in model.curve_] == list(range(1, 13))
    assert model.curve_[-1].loss < model.curve_[0].loss
    assert all(before.seconds < after.seconds for before, after in pairwise(model.curve_))
    assert np.isnan([mark.value for mark in model.curve_]).all()
    assert (model.epochs_, model.best_epoch_, model.stopped_) == (12, 12, "epochs")


def test_the_same_seed_is_the_same_model(model, tmp_path):
    model.set_params(epochs=3)
    first, second, other = (clone(model).set_params(seed=seed).fit(csr(X)).score(csr(X)) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first, second)
    assert not np.allclose(first, other)


# --- validation ----------------------------------------------------------------------------------------------------


def test_the_best_epoch_is_kept(monkeypatch):
    values = iter([0.1, 0.5, 0.3, 0.2, 0.6, 0.5, 0.4, 0.4, 0.9])
    seen = []
    network = LightGCN(**{**QUICK, "epochs": 100}, every=2, patience=3)

    def judge(self, data, split):
        def value(arrays):
            seen.append({name: array.copy() for name, array in arrays.items()})
            return next(values)

        return value

    monkeypatch.setattr(LightGCN, "_judge", judge)
    network.set_params(validation_share=0.2).fit(csr(X))
    assert (network.stopped_, network.epochs_, network.best_epoch_) == ("patience", 16, 10)
    np.testing.assert_array_equal(network.item_factors_, seen[4]["items"])


def test_a_validation_judges_every_so_often():
    network = LightGCN(**{**QUICK, "validation_share": 0.2, "epochs": 10}, every=3, objective="recall@5").fit(csr(X))
    judged = [mark.epoch for mark in network.curve_ if not np.isnan(mark.value)]
    assert judged == [3, 6, 9, 10]
    best = max(network.curve_, key=lambda mark: -1 if np.isnan(mark.value) else mark.value)
    assert network.best_epoch_ == best.epoch


def test_a_validation_of_ones_own_judges():
    split = hold_out_items(Interactions(csr(X)), 0.2, rng=np.random.default_rng(0))
    network = LightGCN(**{**QUICK, "epochs": 4}, every=4, objective="ndcg@3").fit(split.train, validation=split)
    own = evaluate(network, split, ["ndcg"], [3])["ndcg@3"]
    assert network.curve_[-1].value == pytest.approx(own)


def test_a_validation_of_ones_own_leaves_all_data_to_training():
    data = Interactions(csr(X))
    split = hold_out_users(data, 0.2, rng=np.random.default_rng(0))
    how = {"dim": 8, "epochs": 4, "every": 4, "batch_size": 20}
    judged = MultVAE(**how).fit(data, validation=split)
    np.testing.assert_array_equal(judged.score(csr(X)), MultVAE(**how, validation_share=0.0).fit(data).score(csr(X)))
    assert not np.allclose(judged.score(csr(X)), MultVAE(**how).fit(split.train, validation=split).score(csr(X)))


OPTIONS = {
    "average": 0.5,
    "batch_size": 40,
    "learning_rate": 0.004,
    "l2": 0.5,
    "dim": 5,
    "smoothness": 0.02,
    "layers": 2,
    "intervals": 2,
    "duration": 3.0,
    "method": "euler",
    "residual": True,
    "time_learning_rate": 0.01,
    "gates": "all",
    "warm_up": 3,
    "dropout": 0.05,
    "edge_dropout": 0.4,
    "gate_learning_rate": 0.1,
    "hidden": 3,
    "anneal_cap": 0.1,
    "anneal_steps": 7,
    "weight_decay": 0.9,
}
NO_CHANGE = {"epochs", "every", "patience", "validation_share", "objective", "seed"}  # tested by themselves


def test_every_option_changes_what_is_learned(model):
    names = set(model.get_params()) - NO_CHANGE
    assert names <= set(OPTIONS)
    model.set_params(epochs=4)
    plain = clone(model).fit(csr(X)).score(csr(X))
    for name in sorted(names):
        other = clone(model).set_params(**{name: OPTIONS[name]})
        assert other.get_params()[name] != model.get_params()[name], name
        assert not np.array_equal(other.fit(csr(X)).score(csr(X)), plain), name


def test_times_are_learned_at_a_rate_of_their_own():
    how = {**QUICK, "epochs": 4, "learning_rate": 0.03}
    still, moving = (LTOCF(**how, time_learning_rate=rate).fit(csr(X)).times_ for rate in (0.0, 0.01))
    np.testing.assert_allclose(still, [0, 1, 2, 3, 4])
    assert (moving[[0, -1]] == [0, 4]).all()
    assert (np.abs(moving[1:-1] - [1, 2, 3]) > 0.02).all()


@pytest.mark.parametrize(("kind", "told"), [(LTOCF, "times_"), (HMLET, "linear_shares_")])
def test_what_is_learned_beside_vectors_is_in_the_folder(kind, told, tmp_path):
    model = kind(**{**QUICK, "epochs": 3}, **({"warm_up": 1} if kind is HMLET else {})).fit(csr(X))
    model.save(tmp_path / "model")
    again = relae.load(tmp_path / "model")
    assert getattr(again, told).shape == ((5,) if kind is LTOCF else (2, 2))
    np.testing.assert_array_equal(getattr(again, told), getattr(model, told))
    assert again.facts() == model.facts()


def test_gates_learn_at_a_rate_of_their_own():
    def last_gate(rate):
        seen = []
        network = HMLET(**{**QUICK, "epochs": 4, "average": 0.0}, warm_up=1, gate_learning_rate=rate)
        make = network._network
        network._network = lambda data: seen.append(make(data)) or seen[0]
        network.fit(csr(X))
        return seen[0].gates["3"].layers[-1].weight.detach().numpy()

    start, later = last_gate(0.0), last_gate(0.01)
    steps = 3 * 8  # three epochs after the warm-up; Adam goes no further than its rate in a step, or hardly
    assert 0.1 < np.abs(later - start).max() < 1.1 * steps * 0.01


def test_training_leaves_the_generator_of_torch_alone(model):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    model.set_params(epochs=2).fit(csr(X))
    assert torch.equal(torch.rand(3), expected)


def test_a_warm_up_ends_nothing_and_is_not_the_best():
    network = HMLET(**{**QUICK, "epochs": 100, "validation_share": 0.2}, warm_up=12, every=2, patience=2).fit(csr(X))
    judged = [mark for mark in network.curve_ if not np.isnan(mark.value)]
    assert [mark.epoch for mark in judged[:6]] == [2, 4, 6, 8, 10, 12]
    assert network.stopped_ == "patience"
    after = [mark for mark in judged if mark.epoch > 12]
    assert network.best_epoch_ == max(after, key=lambda mark: mark.value).epoch
    assert len(after) == 1 + 2 + [mark.epoch for mark in after].index(network.best_epoch_)


def test_a_training_that_ends_in_its_warm_up_says_so():
    with pytest.warns(UserWarning, match="HMLET was trained for 3 epochs, .* after a warm-up of 4"):
        HMLET(**{**QUICK, "epochs": 3}, warm_up=4).fit(csr(X))


@pytest.mark.parametrize(
    ("kind", "x", "message"),
    [
        (MultVAE, X[::30], "cannot hold out 0 of 3 users: 3 of them have two items or more; validation_share=0 trains"),
        (LightGCN, np.eye(6, dtype=np.float32), "; validation_share=0 trains without a validation"),
    ],
)
def test_data_too_small_for_a_validation_names_the_way_out(kind, x, message):
    with pytest.raises(DataError, match=message):
        kind(**{**QUICK, "validation_share": 0.1}).fit(csr(x))
    assert kind(**{**QUICK, "epochs": 1}).fit(csr(x)).epochs_ == 1


def test_multvae_is_judged_by_new_users():
    data = Interactions(csr(X))
    network = MultVAE(**{**QUICK, "validation_share": 0.2}, hidden=16, every=20).fit(data)
    assert not np.isnan(network.curve_[-1].value)
    split = hold_out_users(data, 0.2, rng=np.random.default_rng(1))
    assert evaluate(network, split, ["recall"], [3])["recall@3"] > 0.5


def test_time_runs_out():
    network = LightGCN(**{**QUICK, "epochs": 1_000_000}).fit(csr(X), time_budget=0.05)
    assert network.stopped_ == "time"
    *earlier, last = [mark.seconds for mark in network.curve_]
    assert last >= 0.05
    assert all(seconds < 0.05 for seconds in earlier)


def test_an_average_keeps_less_of_itself_in_the_first_steps():
    network = torch.nn.Linear(3, 2)
    average = Average(network, 0.8)
    expected = network.weight.detach().double().numpy()
    for step in range(1, 60):
        with torch.no_grad():
            network.weight += torch.randn(2, 3)
        average.follow()
        kept = min(0.8, step / (step + 10))
        expected = kept * expected + (1 - kept) * network.weight.detach().numpy()
    last = network.weight.detach().clone()
    with average.in_place():
        np.testing.assert_allclose(network.weight.detach().numpy(), expected, atol=1e-5)
    assert torch.equal(network.weight, last)


def test_a_model_of_averaged_weights_is_judged_and_kept():
    seen = []

    class Watched(MultVAE):
        def _judge(self, seen_data, split):
            judge = super()._judge(seen_data, split)
            return lambda arrays: seen.append(arrays) or judge(arrays)

    plain, averaged = (
        Watched(**{**QUICK, "epochs": 2, "validation_share": 0.2}, hidden=0, every=2, average=share).fit(csr(X))
        for share in (0.0, 0.9)
    )
    [last, mean] = seen
    for arrays, model in ((last, plain), (mean, averaged)):
        assert all(np.array_equal(model.layers_[name], array) for name, array in arrays.items())
    assert not any(np.array_equal(last[name], mean[name]) for name in last)


def test_a_training_that_diverges_says_so():
    with pytest.raises(DataError, match=r"diverged in epoch \d+.*below 1e\+30"):
        MultVAE(**{**QUICK, "learning_rate": 1e30}, hidden=16).fit(csr(X))
    with pytest.raises(DataError, match="diverged in epoch 1: some weights are not finite"):  # in the only step
        MultVAE(**{**QUICK, "learning_rate": 1e39, "epochs": 1, "batch_size": 1000}).fit(csr(X))


def test_progress_rises_to_the_end():
    seen = []
    LightGCN(**{**QUICK, "epochs": 4}).fit(csr(X), progress=lambda stage, share: seen.append((stage, share)))
    assert {stage for stage, _ in seen} == {"train"}
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


# --- breaks --------------------------------------------------------------------------------------------------------


class Cut(Exception):
    """A break."""


def cut_after(share):
    def progress(stage, done):
        if done > share:
            raise Cut

    return progress


def test_a_training_that_was_cut_ends_as_if_it_had_not(model, tmp_path, monkeypatch):
    monkeypatch.setattr(_training, "_KEEP_EVERY", -1.0)
    model.set_params(epochs=9, validation_share=0.2, every=2, batch_size=50, average=0.9)
    whole = clone(model).fit(csr(X))
    place = tmp_path / "training.npz"
    for share in (0.4, 0.7):
        with pytest.raises(Cut):
            clone(model).fit(csr(X), checkpoint=place, progress=cut_after(share))
    again = clone(model).fit(csr(X), checkpoint=place)
    np.testing.assert_array_equal(again.score(csr(X)), whole.score(csr(X)))
    np.testing.assert_array_equal(*([mark[2:] for mark in fitted.curve_] for fitted in (again, whole)))
    assert (again.best_epoch_, again.stopped_) == (whole.best_epoch_, whole.stopped_)


def test_a_checkpoint_is_of_one_validation(tmp_path):
    split = hold_out_items(Interactions(csr(X)), 0.2, rng=np.random.default_rng(0))
    model, place = LightGCN(**{**QUICK, "epochs": 2}, every=1), tmp_path / "training.npz"
    clone(model).fit(split.train, validation=split, checkpoint=place)
    order = np.random.default_rng(1).permutation(X.shape[1])
    other = replace(split, histories=split.histories[:, order], truth=split.truth[:, order])
    with pytest.raises(DataError, match="belongs to a training with other data or parameters"):
        clone(model).fit(split.train, validation=other, checkpoint=place)


def test_a_checkpoint_with_more_epochs_is_refused(tmp_path):
    place = tmp_path / "training.npz"
    LightGCN(**{**QUICK, "epochs": 5}).fit(csr(X), checkpoint=place)
    with pytest.raises(DataError, match="has 5 epochs, and 3 are asked for: remove it to start anew"):
        LightGCN(**{**QUICK, "epochs": 3}).fit(csr(X), checkpoint=place)


def test_a_training_that_goes_on_and_is_never_judged_keeps_its_last_epoch(tmp_path):
    model, place = LightGCN(**{**QUICK, "epochs": 1000, "validation_share": 0.2}, every=500), tmp_path / "training.npz"
    first = clone(model).fit(csr(X), checkpoint=place, time_budget=0.0)
    assert (first.epochs_, first.best_epoch_) == (1, 1)
    again = clone(model).fit(csr(X), checkpoint=place, time_budget=2 * first.curve_[-1].seconds + 0.05)
    assert again.epochs_ > 1
    assert again.best_epoch_ == again.epochs_
    assert not np.allclose(again.score(csr(X)), first.score(csr(X)))


LONGER = {"dim": 8, "epochs": 40, "batch_size": 64, "validation_share": 0.2, "every": 3}
KILLED = f"""
import sys, numpy as np, torch
from relae.baselines.neural import _training
from relae.baselines import LightGCN
import scipy.sparse as sp
torch.set_num_threads(1)
_training._KEEP_EVERY = -1.0
x = sp.csr_array(np.load(sys.argv[1]))
LightGCN(**{LONGER}).fit(x, checkpoint=sys.argv[2], progress=lambda stage, done: print(done, flush=True))
"""


def test_a_process_that_is_killed_goes_on_in_another(tmp_path):
    np.save(tmp_path / "x.npy", X)
    place = tmp_path / "training.npz"
    command = [sys.executable, "-c", KILLED, str(tmp_path / "x.npy"), str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killed:
        for line in killed.stdout:
            if float(line) > 0.5:
                break
        killed.kill()
    assert killed.returncode == -signal.SIGKILL
    shares = []
    again = LightGCN(**LONGER).fit(csr(X), checkpoint=place, progress=lambda stage, share: shares.append(share))
    assert shares[0] > 0.3  # it did not begin anew
    np.testing.assert_array_equal(again.score(csr(X)), LightGCN(**LONGER).fit(csr(X)).score(csr(X)))


def test_a_finished_training_is_taken_from_its_checkpoint(tmp_path):
    place = tmp_path / "deep" / "training.npz"
    first = LightGCN(**{**QUICK, "epochs": 5}).fit(csr(X), checkpoint=place)
    second = LightGCN(**{**QUICK, "epochs": 5}).fit(csr(X), checkpoint=place)
    np.testing.assert_array_equal(second.curve_, first.curve_)
    more = LightGCN(**{**QUICK, "epochs": 7}).fit(csr(X), checkpoint=place)
    straight = LightGCN(**{**QUICK, "epochs": 7}).fit(csr(X))
    np.testing.assert_array_equal(more.user_factors_, straight.user_factors_)


def test_checkpoints_of_others_and_damaged_ones_are_refused(tmp_path):
    place = tmp_path / "training.npz"
    LightGCN(**{**QUICK, "epochs": 2}).fit(csr(X), checkpoint=place)
    with pytest.raises(DataError, match=r"training\.npz belongs to a training with other data or parameters"):
        LightGCN(**{**QUICK, "epochs": 2}, layers=2).fit(csr(X), checkpoint=place)
    with pytest.raises(DataError, match="other data or parameters"):
        LightGCN(**{**QUICK, "epochs": 2}).fit(csr(X[:, ::-1]), checkpoint=place)
    with pytest.raises(DataError, match="cannot be written"):
        LightGCN(**{**QUICK, "epochs": 2}).fit(csr(X), checkpoint=place / "below.npz")
    with pytest.raises(DataError, match="cannot be written: it is a folder"):
        LightGCN(**{**QUICK, "epochs": 2}).fit(csr(X), checkpoint=tmp_path)


def _npy(array):
    np.save(file := BytesIO(), array)
    return file.getvalue()


def damages(whole):
    """Files that are no checkpoint, or not all of one."""

    def without(start):
        return lambda place: np.savez(place, **{name: a for name, a in whole.items() if not name.startswith(start)})

    yield lambda place: place.write_bytes(place.read_bytes()[:-100])
    yield lambda place: place.write_text("no such thing")
    yield lambda place: place.write_bytes(_npy(np.zeros(3)))
    for text in ("[1]", "3", "{}", "{"):
        yield lambda place, text=text: np.savez(place, **{**whole, "record": np.array(text)})
    for start in ("record", "network/", "average/"):
        yield without(start)


def test_damaged_checkpoints_are_refused(tmp_path):
    place = tmp_path / "training.npz"
    LightGCN(**{**QUICK, "epochs": 2}).fit(csr(X), checkpoint=place)
    with np.load(place) as file:
        whole = dict(file)
    for damage in damages(whole):
        np.savez(place, **whole)
        damage(place)
        with pytest.raises(DataError, match=r"training\.npz is damaged, or no checkpoint.*remove it") as told:
            LightGCN(**{**QUICK, "epochs": 3}).fit(csr(X), checkpoint=place)
        assert "pickle" not in str(told.value)


def test_a_checkpoint_that_fails_at_the_end_costs_no_training(tmp_path, monkeypatch):
    write, times = _training.Checkpoint.write, []

    def full(self, *what):
        times.append(1)
        if len(times) > 1:
            raise DataError("the checkpoint x cannot be written: No space left on device")
        write(self, *what)

    monkeypatch.setattr(_training.Checkpoint, "write", full)
    how = {**QUICK, "epochs": 2}
    with pytest.warns(UserWarning, match="No space left on device; the training is complete without it"):
        found = LightGCN(**how).fit(csr(X), checkpoint=tmp_path / "training.npz")
    np.testing.assert_array_equal(found.user_factors_, LightGCN(**how).fit(csr(X)).user_factors_)


# --- users, parameters, folders ------------------------------------------------------------------------------------


def test_only_multvae_folds_in_new_users(model):
    model.set_params(epochs=2).fit(csr(X))
    new = X[:3].copy()
    new[1, :] = 0
    new[1, [0, 9]] = 1
    if model.folds_in:
        assert model.recommend(csr(new), 3)[0].shape == (3, 3)
        return
    with pytest.raises(DataError, match=r"knows the 90 users .* 1 of 3 histories are none of theirs.*RDLAE"):
        model.recommend(csr(new), 3)
    nobody = csr(np.zeros((1, X.shape[1]), np.float32))
    assert (model.score(nobody) == 0).all()
    popular, scores = model.recommend(nobody, 2)
    assert (scores == 0).all()
    assert (popular >= 0).all()


def test_a_folder_brings_it_back(model, tmp_path):
    data = Interactions(csr(X), items=[f"item {column}" for column in range(X.shape[1])])
    model.set_params(epochs=4, validation_share=0.2, every=2).fit(data)
    model.save(tmp_path / "model", histories=data, title="blocks")
    again = relae.load(tmp_path / "model", verify=True)
    assert repr(again) == repr(model)
    np.testing.assert_allclose(again.score(data), model.score(data), atol=1e-6)
    np.testing.assert_array_equal(again.recommend(data, 3)[0], model.recommend(data, 3)[0])
    np.testing.assert_array_equal(again.curve_, model.curve_)
    assert (again.best_epoch_, again.stopped_) == (model.best_epoch_, model.stopped_)


WITHOUT_TORCH = """
import json, sys
import numpy as np
sys.modules["torch"] = None
import relae
from relae.baselines import LightGCN
model = relae.load(sys.argv[1])
ids, _ = model.recommend(json.loads(sys.argv[2]), 2)
try:
    LightGCN().fit(np.eye(2))
except relae.RelaeError as error:
    print(json.dumps([ids.tolist(), str(error)]))
"""


@pytest.mark.parametrize("kind", ["LightGCN", "MultVAE"])
def test_scores_need_no_torch(kind, tmp_path):
    model = clone(MODELS[kind]).set_params(epochs=3).fit(csr(X))
    model.save(tmp_path / "model")
    history = np.flatnonzero(X[0]).tolist()
    command = [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path / "model"), json.dumps(history)]
    ids, error = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert ids == model.recommend(csr(X[:1]), 2)[0][0].tolist()
    assert error == "torch is not installed: pip install 'relae[neural]'"


@pytest.mark.parametrize(
    ("kind", "wrong", "message"),
    [
        (LightGCN, {"epochs": 0}, "epochs must be a whole number of at least 1"),
        (LightGCN, {"dim": 2.5}, "dim must be a whole number"),
        (LightGCN, {"learning_rate": -1}, "learning_rate must be a finite number"),
        (LightGCN, {"learning_rate": 0}, "learning_rate must be a finite number above 0"),
        (LightGCN, {"validation_share": 1.0}, "validation_share must lie in \\[0, 1\\)"),
        (LightGCN, {"objective": "ndcg"}, "objective must be a metric and a cut-off"),
        (LightGCN, {"batch_size": 0}, "batch_size must be a whole number"),
        (LightGCN, {"average": 1.0}, "average must lie in \\[0, 1\\), got 1.0"),
        (LightGCN, {"patience": -1}, "patience must be"),
        (LightGCN, {"l2": float("nan")}, "l2 must be"),
        (LightGCN, {"seed": -1}, "seed must be a whole number of at least 0"),
        (GRMF, {"smoothness": -1}, "smoothness must be"),
        (LTOCF, {"duration": 0}, "duration must be a finite number above 0"),
        (LTOCF, {"method": "magic"}, "method must be 'euler', 'midpoint', 'rk4' or 'dopri5', got 'magic'"),
        (HMLET, {"gates": "somewhere"}, "gates must be 'end', 'middle', 'front' or 'all'"),
        (HMLET, {"dropout": 1}, "dropout must lie in"),
        (MultVAE, {"hidden": -1}, "hidden must be"),
        (MultVAE, {"anneal_cap": -0.1}, "anneal_cap must be"),
    ],
)
def test_wrong_parameters_are_named(kind, wrong, message):
    with pytest.raises(ValueError, match=message):
        kind(**wrong).fit(csr(X))


def test_a_solver_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchdiffeq", None)
    monkeypatch.delitem(sys.modules, "relae.baselines.neural.ltocf", raising=False)
    with pytest.raises(relae.RelaeError, match=r"torchdiffeq is not installed: pip install 'relae\[neural\]'"):
        LTOCF(**QUICK).fit(csr(X))


def test_a_torch_that_is_broken_is_named(monkeypatch):
    plain = builtins.__import__

    def broken(name, scope=None, local=None, wanted=(), level=0):
        if name == "relae.baselines" and "neural" in (wanted or ()):
            raise ImportError("libc10.so: cannot open shared object file")
        return plain(name, scope, local, wanted, level)

    monkeypatch.setattr(builtins, "__import__", broken)
    with pytest.raises(relae.RelaeError, match=r"torch cannot be loaded \(libc10.so: cannot open.*relae\[neural\]"):
        LightGCN(**QUICK).fit(csr(X))


def test_too_little_memory_is_named():
    with pytest.raises(PlanError, match="LightGCN with dim=1000000000 does not fit into memory: use a smaller dim"):
        LightGCN(dim=10**9).fit(csr(X))


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_time_budget_is_a_number_of_seconds(seconds):
    with pytest.raises(ValueError, match="time_budget must be a number of seconds of at least 0"):
        LightGCN(**QUICK).fit(csr(X), time_budget=seconds)


def test_all_parameters_are_known_by_name():
    model = LightGCN(layers=2, epochs=7, learning_rate=0.5)
    assert repr(model) == "LightGCN(layers=2, learning_rate=0.5, epochs=7)"
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(
        ValueError, match=r"LightGCN has no parameter 'depth': its parameters are dim, layers, l2, learn"
    ):
        model.set_params(depth=3)
    with pytest.raises(TypeError, match="depth"):
        LightGCN(depth=3)


# --- real data -----------------------------------------------------------------------------------------------------


BRIEF = {
    GRMF: {"epochs": 20},
    GRMFNorm: {"epochs": 20},
    LightGCN: {"epochs": 10, "learning_rate": 0.05},
    LTOCF: {"epochs": 10, "learning_rate": 0.05},
    HMLET: {"epochs": 10, "learning_rate": 0.05, "warm_up": 3},
    MultVAE: {"epochs": 15, "batch_size": 100},
}


@pytest.mark.parametrize("kind", BRIEF, ids=lambda kind: kind.__name__)
def test_it_beats_popularity_on_ml_1m(kind):
    data = Interactions.read(real("ml-1m") / "interactions.csv.gz", rating="rating", min_rating=4)
    rng = np.random.default_rng(0)
    some = data.select_users(np.sort(rng.choice(data.n_users, 700, replace=False)))
    split = hold_out_items(some, 0.2, rng=rng)
    model = kind(**BRIEF[kind], validation_share=0.0).fit(split.train)
    ours, base = (evaluate(m, split, ["ndcg"], [20])["ndcg@20"] for m in (model, Popularity().fit(split.train)))
    assert ours > 1.2 * base
