"""The users that a report shows lists of."""

import numpy as np

from relae import EASE, Interactions
from relae.evaluation import hold_out_users
from relae.report import make_samples

from ..oracles import csr


def test_what_a_user_has_seen_is_not_among_the_suggestions():
    rng = np.random.default_rng(0)
    x = (rng.random((60, 20)) < 0.3).astype(np.float32)
    data = Interactions(csr(x), seen=csr((rng.random(x.shape) < 0.4) & (x == 0)))
    split = hold_out_users(data, 0.3, rng=rng)
    model = EASE(5.0).fit(split.train)
    shown = make_samples(model, split, 5, 20, ids=True)
    assert len(shown) == 5
    for sample in shown:
        row = int(split.users.positions([sample.label.removeprefix("User ")])[0])
        had = {*split.histories[[row]].indices.tolist(), *split.seen[[row]].indices.tolist()}
        assert {int(pick.item["item"]) for pick in sample.picks} == set(range(20)) - had
