"""Metrics by loops over one user at a time, straight from their definitions; and data to try them on."""

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from relae.evaluation import METRICS

from ..oracles import csr

OVERALL = ("coverage", "exposure_gini", "tail_share", "popularity", "novelty")
PER_USER = tuple(name for name in METRICS if name not in OVERALL)


# --- one user ----------------------------------------------------------------------------------------------------


def plain_value(name, ranked, truth, k):
    """A metric whose hits all weigh the same."""
    if not truth:
        return math.nan
    places = [place for place, item in enumerate(ranked[:k], start=1) if item in truth]
    if name == "recall":
        return len(places) / len(truth)
    if name == "recall_capped":
        return len(places) / min(k, len(truth))
    if name == "precision":
        return len(places) / k
    if name == "hit_rate":
        return 1.0 if places else 0.0
    if name == "mrr":
        return 1 / places[0] if places else 0.0
    if name == "map":
        return sum(number / place for number, place in enumerate(places, start=1)) / len(truth)
    assert name == "ndcg"
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(k, len(truth)) + 1))
    return sum(1 / math.log2(place + 1) for place in places) / ideal


def unbiased_value(name, ranked, truth, k, propensity, mode):
    """`truth` in the order of its file."""
    if not truth:
        return math.nan
    hits = [(place, item) for place, item in enumerate(ranked[:k], start=1) if item in truth]
    if mode == "paper":
        norm = sum(1 / propensity[item] for item in truth[: min(k, len(truth))])
        if name == "recall":
            return sum(1 / propensity[item] for _, item in hits) / norm
        ideal = sum(1 / math.log2(place + 1) for place in range(1, min(k, len(truth)) + 1))
        return sum(1 / (propensity[item] * math.log2(place + 1)) for place, item in hits) / norm / ideal
    best = sorted((1 / propensity[item] for item in truth), reverse=True)[:k]
    if name == "recall":
        return sum(1 / propensity[item] for _, item in hits) / sum(best)
    ideal = sum(gain / math.log2(place + 1) for place, gain in enumerate(best, start=1))
    return sum(1 / (propensity[item] * math.log2(place + 1)) for place, item in hits) / ideal


def user_value(name, ranked, truth, k, *, head, propensity, mode="standard"):
    """Any metric per user; NaN for one who does not count."""
    group, _, rest = name.partition("_")
    if group == "unbiased":
        value = unbiased_value(rest, ranked, truth, k, propensity, mode)
        return 0.0 if mode == "paper" and not truth else value
    if group in ("head", "tail"):
        return plain_value(rest, ranked, [item for item in truth if (item in head) == (group == "head")], k)
    return 0.0 if mode == "paper" and not truth else plain_value(name, ranked, truth, k)


# --- all lists together ------------------------------------------------------------------------------------------


def overall_value(name, lists, k, counts, n_users, head):
    shown = [item for ranked in lists for item in ranked[:k] if item >= 0]
    if name == "coverage":
        return len(set(shown)) / len(counts)
    if not shown:
        return math.nan
    if name == "tail_share":
        return sum(item not in head for item in shown) / len(shown)
    if name == "popularity":
        return sum(int(counts[item]) for item in shown) / len(shown)
    if name == "novelty":
        return sum(math.log2(n_users / max(counts[item], 1)) for item in shown) / len(shown)
    assert name == "exposure_gini"
    times = [shown.count(item) for item in range(len(counts))]
    apart = sum(abs(a - b) for a in times for b in times)  # the mean difference of two items, over twice the mean
    return apart / (2 * len(counts) * sum(times))


# --- groups ------------------------------------------------------------------------------------------------------


def stable_head(counts, share=0.2):
    order = sorted(range(len(counts)), key=lambda item: (-counts[item], item))
    return set(order[: math.ceil(share * sum(count > 0 for count in counts))])


def paper_head(counts, share=0.2):
    """The authors' `argsort(counts)[::-1]`: NumPy still has that introsort for long doubles."""
    order = np.argsort(np.asarray(counts).astype(np.longdouble))[::-1]
    return set(order[: math.ceil(share * sum(count > 0 for count in counts))].tolist())


def loop_propensities(counts, exponent=0.5, floor=0.01):
    largest = max(max(counts), 1)
    return [max((count / largest) ** exponent, floor) for count in counts]


# --- data --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    lists: np.ndarray  # (users, length), −1 at the ends
    truths: list[list[int]]  # in the order of a file
    counts: np.ndarray
    ks: list[int]  # in any order, with repetitions

    @property
    def n_items(self):
        return len(self.counts)

    @property
    def truth(self):
        rows = np.repeat(np.arange(len(self.truths)), [len(truth) for truth in self.truths])
        columns = np.array([item for truth in self.truths for item in truth], np.int64)
        shape = (len(self.truths), self.n_items)
        return sp.csr_array(sp.coo_array((np.ones(len(rows), np.float32), (rows, columns)), shape=shape))

    @property
    def truth_order(self):
        return np.array([item for truth in self.truths for item in truth], np.int64)


@st.composite
def cases(draw, max_users=5, max_items=9):
    users, items = draw(st.integers(1, max_users)), draw(st.integers(1, max_items))
    ks = draw(st.lists(st.integers(1, items), min_size=1, max_size=4))
    length = max(ks) + draw(st.integers(0, 2))
    lists = np.full((users, length), -1, np.int64)
    for row in lists:
        order = draw(st.permutations(range(items)))[: draw(st.integers(0, length))]
        row[: len(order)] = order
    truths = [draw(st.lists(st.integers(0, items - 1), unique=True)) for _ in range(users)]
    counts = np.array(draw(st.lists(st.integers(0, 4), min_size=items, max_size=items)), np.int64)
    return Case(lists, truths, counts, ks)


def random_case(users, items, length, seed, ks=(5, 20)):
    rng = np.random.default_rng(seed)
    lists = np.array([rng.permutation(items)[:length] for _ in range(users)])
    truths = [rng.permutation(items)[: rng.integers(0, 12)].tolist() for _ in range(users)]
    return Case(lists, truths, rng.integers(0, 6, items), list(ks))


def blocks(users=60, items=30, seed=0):
    """A binary matrix of two tastes with some noise."""
    rng = np.random.default_rng(seed)
    same = (np.arange(users)[:, None] % 2) == (np.arange(items)[None] % 2)
    x = rng.random((users, items)) < np.where(same, 0.4, 0.08)
    x[:, :2] = True  # nobody is left without a history
    return csr(x.astype(np.float32))
