"""An independent library, ranx, as the judge of the metrics that it has too."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from relae.evaluation import Scorer

from .suite import random_case

NAMES = ("recall", "ndcg", "precision", "mrr", "map", "hit_rate")
KS = (1, 5, 20)

# ranx compiles for a minute; uncompiled, in a process of its own, it is done in seconds
PROGRAM = """
import json, sys
import ranx
truth, lists, metrics = json.load(sys.stdin)
run = ranx.Run(lists)
ranx.evaluate(ranx.Qrels(truth), run, metrics)
json.dump({name: {user: float(value) for user, value in run.scores[name].items()} for name in metrics}, sys.stdout)
"""


@pytest.mark.skipif(importlib.util.find_spec("ranx") is None, reason="ranx is not installed")
def test_the_metrics_of_ranx():
    case = random_case(60, 40, 25, seed=1, ks=KS)
    judged = [user for user, truth in enumerate(case.truths) if truth]
    assert 0 < len(judged) < 60
    truth = {f"u{user}": {f"i{item}": 1 for item in case.truths[user]} for user in judged}
    lists = {f"u{user}": {f"i{item}": -place for place, item in enumerate(case.lists[user])} for user in judged}
    wanted = [f"{name}@{k}" for name in NAMES for k in KS]
    theirs = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([truth, lists, wanted]),
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = json.loads(theirs.stdout)
    found = Scorer(case.truth, case.counts, 60, NAMES, KS).values(case.lists)
    for name in wanted:
        values = [expected[name][f"u{user}"] for user in judged]
        assert np.allclose(found[name][judged], values, rtol=0, atol=1e-9), name
