"""Judge any recommender by what it finds of a split's truth."""

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from relae._common.progress import Progress
from relae.algebra import Dial
from relae.data import Ids, Interactions
from relae.errors import DataError, Option, ParameterError, UnknownItemsWarning
from relae.evaluation.metrics import DEFAULT_METRICS, ItemOrder, Mode, Scorer
from relae.evaluation.result import Evaluation, Evaluations
from relae.evaluation.splits import Split
from relae.linalg import Csr
from relae.recommender import HistoryRecommender, Recommender, SimpleRecommender, encode

_BATCH_BYTES = 256e6  # of ranked lists at a time
_PLACE_BYTES = 12  # a column and its score


class Options(TypedDict, total=False):
    """The optional parameters of `evaluate`."""

    mode: Mode
    head_share: float
    propensity_exponent: float
    propensity_floor: float
    item_order: ItemOrder | None
    name: str | None
    progress: Progress | None


@overload
def evaluate(
    recommender: Recommender | SimpleRecommender,
    split: Split,
    metrics: Sequence[str] = ...,
    ks: Sequence[int] = ...,
    xis: None = None,
    **options: Unpack[Options],
) -> Evaluation: ...


@overload
def evaluate(
    recommender: Recommender | SimpleRecommender,
    split: Split,
    metrics: Sequence[str] = ...,
    ks: Sequence[int] = ...,
    *,
    xis: Sequence[float | Dial],
    **options: Unpack[Options],
) -> Evaluations: ...


def evaluate(
    recommender: Recommender | SimpleRecommender,
    split: Split,
    metrics: Sequence[str] = DEFAULT_METRICS,
    ks: Sequence[int] = (20, 100),
    xis: Sequence[float | Dial] | None = None,
    *,
    mode: Mode = "standard",
    head_share: float = 0.2,
    propensity_exponent: float = 0.5,
    propensity_floor: float = 0.01,
    item_order: ItemOrder | None = None,
    name: str | None = None,
    progress: Progress | None = None,
) -> Evaluation | Evaluations:
    """Judge a fitted recommender by what it finds of a split's truth.

    Parameters
    ----------
    recommender
        Anything with `recommend(histories, k)`. Histories go in as a sparse matrix and columns come out; if it has
        `items_`, columns are matched with the split's by raw id. A split with candidates needs a `HistoryRecommender`.
        What users have seen beside history and truth is left out of the lists; any other recommender is asked for so
        many items more.
    split
        See `hold_out_users`, `hold_out_items`, `hold_out_new_items`, `leave_last_out`, `split_by_time`, `given_split`.
    metrics
        Names out of `relae.evaluation.METRICS`.
    ks
        Cut-offs.
    xis
        Evaluate these values of ξ instead of the model's own, all from one projection. A `Dial` has α and γ as well;
        each α takes a projection.
    mode, head_share, propensity_exponent, propensity_floor, item_order
        See `Scorer`.
    name
        What to call the recommender; its `repr` if not given.
    progress
        Called with the name of a stage and the fraction of it that is done.

    Returns
    -------
    An Evaluation; with `xis` the Evaluations of all of them.

    Users without truth do not count, and are counted; in the mode "paper" they count as 0. That mode knows nothing of
    what is seen beside history and truth: it is a candidate.
    """
    scorer = Scorer(
        split.truth,
        split.item_counts,
        split.train.n_users,
        metrics,
        ks,
        mode=mode,
        head_share=head_share,
        propensity_exponent=propensity_exponent,
        propensity_floor=propensity_floor,
        truth_order=split.truth_order,
        candidates=split.candidates,
        item_order=item_order,
    )
    xis = None if xis is None else [xi if isinstance(xi, Dial) else float(xi) for xi in xis]
    model = recommender if isinstance(recommender, HistoryRecommender) else _Adapted(recommender, split)
    if xis is not None and not model.dials:
        raise ParameterError(f"{type(recommender).__name__} has no ξ: leave ", Option("xis"), " out")
    paths: list[float | Dial | None] = [None] if xis is None else list(xis)
    if not paths:
        raise ParameterError(Option("xis"), " is empty: give at least one value, or leave it out")
    if mode == "paper" and split.seen is not None:
        split = replace(split, seen=None)
    lists = _Lists(model, split, xis)
    users, k = len(split.users), scorer.ks[-1]
    values: list[dict[str, list[NDArray[np.float64]]]] = [{} for _ in paths]
    shown = np.zeros((len(paths), len(scorer.ks), split.train.n_items), np.int64)
    step = max(1, int(_BATCH_BYTES / (_PLACE_BYTES * k * len(paths))))
    for start in range(0, users, step):
        stop = min(start + step, users)
        report = _part_of(progress, start / users, stop / users)
        for at, ranked in enumerate(lists.ranked(start, stop, k, xis, report)):
            for key, per_user in scorer.values(ranked, slice(start, stop)).items():
                values[at].setdefault(key, []).append(per_user)
            shown[at] += scorer.exposure(ranked)
        if progress is not None:
            progress("evaluate", stop / users)
    truth = _fingerprint(split)
    results = [
        Evaluation(
            name or repr(recommender),
            split.protocol,
            mode,
            split.users,
            {key: np.concatenate(parts) for key, parts in per_user.items()},
            scorer.overall(exposed),
            _worth_counting(scorer, split, lists),
            path.xi if isinstance(path, Dial) else path,
            truth,
            path if isinstance(path, Dial) else None,
        )
        for path, per_user, exposed in zip(paths, values, shown, strict=True)
    ]
    return results[0] if xis is None else Evaluations(results)


class _Lists:
    """Ranked lists on the columns of a split, whatever columns the recommender has."""

    def __init__(self, recommender: Recommender, split: Split, xis: Sequence[float | Dial] | None) -> None:
        self.recommender = recommender.for_many(len(split.users), xis)
        self.histories: Csr = split.histories
        self.times = split.history_times
        self.seen: Csr | None = split.seen
        self.columns: NDArray[np.int64] | None = None  # of the split, for each of the model's
        self.allow = split.candidates  # columns of the model
        self.unknown_truth = 0
        items, ours = recommender.items_, split.train.items
        if items is not None and items is not ours and items != ours:
            encoded = encode(
                Interactions(split.histories, items=ours, seen=split.seen, times=split.history_times), items
            )
            self.histories, self.seen, self.columns = encoded.matrix, encoded.seen, ours.positions(items.values)
            self.times = encoded.times
            if self.allow is not None:
                known = items.positions(ours.values[self.allow])
                self.allow = known[known >= 0]
            self.unknown_truth = int(np.count_nonzero(items.positions(ours.values)[split.truth.indices] < 0))
            if encoded.unknown or self.unknown_truth:
                warnings.warn(
                    f"unknown to the model: {encoded.unknown:,} of {split.histories.nnz:,} items in histories, which "
                    f"are ignored, and {self.unknown_truth:,} of {split.truth.nnz:,} in truth, which it cannot find",
                    UnknownItemsWarning,
                    stacklevel=3,
                )

    def ranked(
        self, start: int, stop: int, k: int, xis: Sequence[float | Dial] | None, progress: Progress | None
    ) -> Iterator[NDArray[np.int64]]:
        """Yield the lists of some users, for each of `xis`."""
        histories, seen = self.histories[start:stop], None if self.seen is None else self.seen[start:stop]
        options: dict[str, Any] = {"progress": progress, "allow": self.allow, "seen": seen}
        if self.times is not None:
            options["times"] = self.times[self.histories.indptr[start] : self.histories.indptr[stop]]
        lists = (
            [self.recommender.recommend(histories, k, **options)]
            if xis is None
            else self.recommender.recommend_path(histories, xis, k, **options)
        )
        for ids, _ in lists:
            yield ids if self.columns is None else np.append(self.columns, -1)[ids]


class _Adapted:
    """A `SimpleRecommender` as a `Recommender`: without dials, and without filters of its own."""

    dials = ()

    def __init__(self, recommender: SimpleRecommender, split: Split) -> None:
        if split.candidates is not None:
            raise DataError(
                f"only {len(split.candidates):,} of {split.train.n_items:,} items may be recommended "
                f"({split.protocol}), and {type(recommender).__name__} cannot be told so: make it a "
                "relae.recommender.HistoryRecommender, whose `recommend` takes `allow`"
            )
        self._recommender = recommender
        items = getattr(recommender, "items_", None)  # the one thing that is optional
        self.items_ = items if items is None or isinstance(items, Ids) else Ids(items)

    def for_many(self, users: int, xis: Iterable[Any] | None = None) -> "_Adapted":
        return self

    def recommend(
        self,
        histories: Csr,
        k: int = 10,
        *,
        seen: Csr | None = None,
        times: NDArray[np.int64] | None = None,
        allow: Sequence[Any] | None = None,
        progress: Progress | None = None,
    ) -> tuple[NDArray[Any], Any]:
        """Ask for as many more items as users have seen beside their histories, and leave these out."""
        more = 0 if seen is None else int(np.diff(seen.indptr).max(initial=0))
        ids, scores = self._recommender.recommend(histories, min(k + more, histories.shape[1]))
        return (ids if seen is None else _unseen(ids, seen, k)), scores

    def recommend_path(self, histories: Any, xis: Iterable[Any], k: int = 10, **options: Any) -> Any:
        raise ParameterError(f"{type(self._recommender).__name__} has no ξ: leave ", Option("xis"), " out")


def _unseen(lists: NDArray[np.int64], seen: Csr, k: int) -> NDArray[np.int64]:
    """Return the first k of each list that are not seen, −1 where there are fewer : (users, k)."""
    left = np.full((len(lists), k), -1, np.int64)
    for row, listed in enumerate(lists):
        own = seen.indices[seen.indptr[row] : seen.indptr[row + 1]]
        kept = listed[(listed >= 0) & ~np.isin(listed, own)][:k]
        left[row, : len(kept)] = kept
    return left


def _fingerprint(split: Split) -> str:
    """Return a checksum of the truth and the candidates, to detect results of another truth."""
    digest = hashlib.md5(split.truth.indptr.astype(np.int64).tobytes(), usedforsecurity=False)
    digest.update(split.truth.indices.astype(np.int64).tobytes())
    if split.candidates is not None:
        digest.update(split.candidates.tobytes())
    if split.seen is not None:
        digest.update(split.seen.indptr.astype(np.int64).tobytes())
        digest.update(split.seen.indices.astype(np.int64).tobytes())
    return digest.hexdigest()


def _part_of(progress: Progress | None, low: float, high: float) -> Callable[[str, float], None] | None:
    """Report the progress of one batch as that of all."""
    if progress is None:
        return None
    return lambda _, fraction: progress("evaluate", low + (high - low) * fraction)


def _worth_counting(scorer: Scorer, split: Split, lists: _Lists) -> dict[str, int]:
    without = scorer.users_without_truth
    unseen = int(np.count_nonzero(scorer.item_counts[split.truth.indices] == 0))
    return {
        "of them without truth": without["all"],
        **{f"without {group} truth": without[group] for group in ("head", "tail") if group in without},
        **({} if split.candidates is None else {"items to choose from": len(split.candidates)}),
        **(
            {} if split.seen is None else {"pairs seen beside them, neither to be found nor candidates": split.seen.nnz}
        ),
        "without a history": int(np.count_nonzero(np.diff(split.histories.indptr) == 0)),
        **{f"others left out ({reason})": count for reason, count in split.left_out.items()},
        f"of {split.truth.nnz:,} interactions to find are with items that train does not have": unseen,
        "are with items that the model does not know": lists.unknown_truth,
    }
