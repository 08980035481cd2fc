"""SASRec: scores in NumPy are those of the network, and no place looks ahead."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `neural` is not installed")

import relae  # noqa: E402
from relae import DataError, Interactions  # noqa: E402
from relae.baselines import SASRec  # noqa: E402
from relae.linalg import Sequences  # noqa: E402

from ...oracles import csr, example  # noqa: E402

USERS, ITEMS = 11, 9
X = example(USERS, ITEMS, weighted=False)
X[:, :3] = 1
TIMES = np.random.default_rng(0).permutation(np.count_nonzero(X))
DATA = Interactions(csr(X), times=TIMES)
QUICK = {"dim": 4, "epochs": 2, "every": 1}


def network(**changes):
    """A network whose weights are all drawn."""
    model = SASRec(**{"dim": 4, "length": 5, "blocks": 2, "heads": 2, **changes})
    torch.manual_seed(1)
    made = model._network(DATA)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model, made.eval()


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("length", [3, 20])
def test_numpy_scores_are_those_of_the_network(blocks, heads, length):
    model, made = network(blocks=blocks, heads=heads, length=length)
    model._take(made.score_arrays(), DATA)
    sequences = Sequences.of(DATA.matrix, TIMES, np.ones(1))
    batch = made.gather(made.users)
    with torch.no_grad():
        h = made(batch)
        expected = [(h[row, length - 1] @ made.items.T).numpy() for row, length in enumerate(batch.lengths)]
    for row, user in enumerate(made.users):
        before = sequences.items[sequences.starts[user] : sequences.starts[user + 1] - 1]
        np.testing.assert_allclose(model.score(before.tolist()), expected[row], atol=1e-5)
    lists = [sequences.items[sequences.starts[user] : sequences.starts[user + 1] - 1].tolist() for user in made.users]
    np.testing.assert_allclose(model.score(lists), expected, atol=1e-5)  # all at once, some of them short


def test_no_place_looks_ahead():
    _, made = network()
    batch = made.gather(made.users)
    changed = batch.items.clone()
    changed[:, 2:] = (changed[:, 2:] + 1) % ITEMS
    with torch.no_grad():
        before, after = made(batch), made(batch._replace(items=changed))
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.allclose(before[:, 2], after[:, 2])


def test_targets_are_the_next_items():
    _, made = network(length=3)
    batch = made.gather(np.array([0]))
    own = made.sequences.items[made.sequences.starts[0] : made.sequences.starts[1]]
    assert batch.items[0].tolist() == own[-4:-1].tolist()
    assert batch.nexts[0].tolist() == own[-3:].tolist()


@pytest.mark.parametrize("negatives", [0, 2])
def test_it_learns(negatives):
    """A circle: what follows is always the same."""
    rng = np.random.default_rng(0)
    starts = rng.integers(0, 8, 60)
    x, times = np.zeros((60, 8)), np.zeros((60, 8), np.int64)
    for user, first in enumerate(starts):
        own = (first + np.arange(5)) % 8
        x[user, own], times[user, own] = 1, np.arange(5)
    model = SASRec(
        16, negatives=negatives, dropout=0.0, learning_rate=0.02, epochs=30, batch_size=20, validation_share=0
    )
    model.fit(Interactions(csr(x), times=times[x > 0]))
    assert model.curve_[-1].loss < model.curve_[0].loss
    assert [int(model.recommend([item, (item + 1) % 8], 1)[0][0]) for item in range(8)] == [
        (item + 2) % 8 for item in range(8)
    ]


def test_a_folder_and_a_checkpoint_keep_it(tmp_path):
    model = SASRec(**QUICK, validation_share=0.3).fit(DATA, checkpoint=tmp_path / "training")
    assert [mark.epoch for mark in model.curve_] == [1, 2]
    model.save(tmp_path / "model")
    opened = relae.load(tmp_path / "model")
    assert np.array_equal(opened.score([1, 2, 3]), model.score([1, 2, 3]))
    other = Interactions(csr(X), times=TIMES[::-1].copy())
    with pytest.raises(DataError, match="other data or parameters"):
        SASRec(**QUICK, validation_share=0.3).fit(other, checkpoint=tmp_path / "training")


def test_what_cannot_be():
    with pytest.raises(ValueError, match="heads"):
        SASRec(dim=4, heads=3).fit(DATA)
    with pytest.raises(DataError, match="no times"):
        SASRec().fit(csr(X))
    model, made = network()
    model._take(made.score_arrays(), DATA)
    model.curve_, model.epochs_, model.best_epoch_, model.stopped_ = (
        [relae.baselines.Mark(1, 0.1, 0.7, 0.2)],
        1,
        1,
        "epochs",
    )
    state = model.state("fitted")
    with pytest.raises(ValueError, match="heads is 3"):
        SASRec().restore({**state.facts, "heads": 3}, state.arrays)
