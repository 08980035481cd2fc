"""Judge a fitted model by its own training users, each as if the model had been fitted without this user."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from relae._common.progress import Progress
from relae.algebra import Dial
from relae.data import Ids, InteractionsLike, as_interactions
from relae.evaluation.groups import groups_without
from relae.evaluation.metrics import DEFAULT_METRICS, Scorer
from relae.evaluation.result import Evaluation, Evaluations
from relae.evaluation.splits import hide_items
from relae.recommender import HistoryRecommender

PROTOCOL = "leave-one-out users"


def leave_one_out(
    model: HistoryRecommender,
    data: InteractionsLike,
    metrics: Sequence[str] = DEFAULT_METRICS,
    ks: Sequence[int] = (20, 100),
    dials: Sequence[float | Dial] | None = None,
    *,
    users: int | None = None,
    truth_share: float = 0.2,
    head_share: float = 0.2,
    propensity_exponent: float = 0.5,
    propensity_floor: float = 0.01,
    rng: np.random.Generator | None = None,
    name: str | None = None,
    progress: Progress | None = None,
) -> Evaluation | Evaluations:
    """Judge a fitted model by its training users, each scored by the model that a fit without this user would give.

    A share of each user's items is hidden, as in `hold_out_users`, and the others are scored. No model is fitted: the
    inverse without one row follows from the inverse with it (`relae.algebra`). The result is exact for the primal and
    the dual form, with dropout, norms and features; l2 stays that of the fit.

    Parameters
    ----------
    model
        A linear autoencoder that was fitted to `data` in an exact form.
    data
        What the model was fitted to.
    metrics, ks, head_share, propensity_exponent, propensity_floor
        See `evaluate`. Users per item, groups and propensities are those without the user; metrics of all lists
        together, such as coverage and tail_share, take those of all users.
    dials
        Values of ξ, or `Dial`s, to judge instead of the model's own, all from one inverse.
    users
        How many users to draw; all with two items or more if not given.
    truth_share
        The share of a user's items to hide, at least one.
    rng
        Draws the users and what is hidden; a generator with a fixed seed if not given.
    name, progress
        See `evaluate`.

    Returns
    -------
    An Evaluation; with `dials` the Evaluations of all of them.

    Raises
    ------
    DataError
        If the model has no closed form, a local one, a half-life or freshness, or was fitted to other data.
    """
    interactions = as_interactions(data, model.items_)
    paths: list[float | Dial | None] = [None] if dials is None else list(dials)
    left_out = model.left_out(interactions, paths)
    rows, histories, truth, times = hide_items(
        interactions, users, truth_share, rng=np.random.default_rng(0) if rng is None else rng
    )
    counts = np.bincount(interactions.matrix.indices, minlength=interactions.n_items)
    shape = head_share, propensity_exponent, propensity_floor
    scorer = Scorer(
        truth,
        counts,
        interactions.n_users - 1,
        metrics,
        ks,
        head_share=head_share,
        groups=groups_without(counts, interactions.matrix[rows], truth, *shape),
    )
    seen = None if interactions.seen is None else interactions.seen[rows]
    values: list[dict[str, list[NDArray[np.float64]]]] = [{} for _ in paths]
    shown = np.zeros((len(paths), len(scorer.ks), interactions.n_items), np.int64)
    for start, stop, lists in left_out.ranked(rows, histories, scorer.ks[-1], times=times["history_times"], seen=seen):
        for at, ranked in enumerate(lists):
            for key, per_user in scorer.values(ranked, slice(start, stop)).items():
                values[at].setdefault(key, []).append(per_user)
            shown[at] += scorer.exposure(ranked)
        if progress is not None:
            progress("leave one out", stop / len(rows))
    digest = hashlib.md5(truth.indptr.astype(np.int64).tobytes(), usedforsecurity=False)
    digest.update(truth.indices.astype(np.int64).tobytes())
    without = scorer.users_without_truth
    notes = {
        **{f"without {group} truth": without[group] for group in ("head", "tail") if group in without},
        "others left out (a single item)": int(np.count_nonzero(np.diff(interactions.matrix.indptr) < 2)),
    }
    results = [
        Evaluation(
            name or repr(model),
            PROTOCOL,
            "standard",
            Ids(interactions.users.values[rows]),
            {key: np.concatenate(parts) for key, parts in per_user.items()},
            scorer.overall(exposed),
            notes,
            path.xi if isinstance(path, Dial) else path,
            digest.hexdigest(),
            path if isinstance(path, Dial) else None,
        )
        for path, per_user, exposed in zip(paths, values, shown, strict=True)
    ]
    return results[0] if dials is None else Evaluations(results)
