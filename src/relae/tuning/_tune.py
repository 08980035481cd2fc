"""The loop: fit, project the validation users once, rank for every ξ, write it down, forget the inverse."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from relae._common.progress import Progress, of_trials
from relae.algebra import Dial
from relae.errors import DataError
from relae.evaluation import DEFAULT_METRICS, Split, evaluate
from relae.models import DAN, RDLAE, suggested_l2
from relae.solvers import Solver
from relae.tuning._journal import Journal
from relae.tuning._judge import Judge
from relae.tuning._result import Choice, Constraint, Point, Trial, Tuning, check_choice
from relae.tuning._search import Auto, GridSearch, Search, three_digits

_USER_NORMS = tuple(round(0.1 * step, 1) for step in range(11))
_ITEM_NORMS = (-0.1, -0.05, 0.0, 0.05, 0.1, 0.2, 0.3, 0.4)  # below 0 for users who turn to what is popular


def tune(
    split: Split,
    search: str | Search = "auto",
    *,
    objective: str = "ndcg@100",
    budget: int = 16,
    constraint: Constraint | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    solver: Solver | str = "auto",
    norms: bool = False,
    choose: Choice = "tail",
    lengths: ArrayLike | None = None,
    journal: Journal | None = None,
    time_budget: float | None = None,
    progress: Progress | None = None,
    on_trial: Callable[[Trial, "Tuning"], None] | None = None,
) -> Tuning:
    """Search l2, dropout and ξ on the users of a split; one run tunes all six models, or with `norms` DAN.

    The first trial is the model with its defaults, so that the choice is never behind it on the validation users.
    Memory stays that of one fit: an inverse is dropped before the next one is made.

    Parameters
    ----------
    split
        Its train is fitted to, its users are judged by: validation users, not those of the last test.
    search
        "auto" (a budget of inversions, spent where most is to be gained), "grid" (the paper's: 11 l2 around the
        suggested one, dropout 0 to 0.9, ξ 0 to 1: 110 inversions), or a search of your own.
    objective
        What to maximize: a metric and a cut-off.
    budget
        Inversions of "auto", that of the defaults among them.
    constraint
        What to keep meanwhile, such as `Constraint("ndcg@100", loss=0.01)` with the objective "tail_recall@100".
    metrics
        What else to evaluate at every point, at the same cut-off.
    solver
        As of the models' `fit`.
    norms
        Search DAN: also norms of users, which cost inversions, and of items, which do not. The l2 are scaled with the
        norm of users. A "grid" has 11 of these norms: 1,210 inversions.
    choose
        Which configuration is `chosen`. "tail": among those within one standard error of the best, and not behind the
        default, the one with the most tail; the default itself where neither the objective of the best nor this tail
        can be told from the default's. "best": the best of the objective.
    lengths
        How many items the histories have that the model will be asked for: one number for each of them, in any order.
        Hiding items makes those of validation users shorter, so these are weighted until the lengths agree. Those of
        all users of the split, with what is hidden of them, if not given.
    journal
        Where trials are written as they finish, and read from: a search that was stopped goes on.
    time_budget
        Seconds after which no further trial is started, counting those of the journal.
    progress
        Called with the name of a stage and the fraction of it that is done.
    on_trial
        Called with each new trial and the result so far.
    """
    check_choice(choose)
    wanted = [objective, *([constraint.metric] if constraint else [])]
    names, ks = asked(wanted, metrics, split.n_candidates)
    plan = planned(search, split, objective, budget, constraint, norms)
    trials = [] if journal is None else journal.of(Trial)
    untuned = untuned_point(split, norms)
    first = untuned.l2, untuned.dropout, untuned.user_norm
    size = plan.size if isinstance(plan, Auto) else plan.size + 1  # other searches may not have the defaults
    result = Tuning(objective, constraint, trials, choose=choose, untuned=untuned)
    judge = Judge(split, {objective, *result.names}, lengths)
    while (setting := plan.next(trials) if trials else first) is not None:
        spent = [trial.fit_seconds + trial.evaluate_seconds for trial in trials]
        if time_budget is not None and spent and sum(spent) + float(np.mean(spent)) > time_budget:
            return replace(result, complete=False)
        report = of_trials(progress, "search", len(trials), size)
        also = [Dial(untuned.xi, untuned.item_norm)] if setting == first else []
        trial = _trial(split, setting, plan, also, judge, names, ks, solver, report)
        trials.append(trial)
        if journal is not None:
            journal.append(trial)
        result = replace(result, trials=trials)
        if on_trial is not None:
            on_trial(trial, result)
    if progress is not None:
        progress("search", 1.0)
    return result


def _trial(
    split: Split,
    setting: tuple[float, float, float],
    plan: Search,
    also: Sequence[Dial],
    judge: Judge,
    names: Sequence[str],
    ks: Sequence[int],
    solver: Solver | str,
    progress: Progress | None,
) -> Trial:
    """Fit once, and evaluate every dial of the plan, and others."""
    l2, dropout, norm = setting
    started = perf_counter()
    model = DAN(l2, dropout, user_norm=norm).fit(split.train, solver=solver, progress=progress)
    fitted = perf_counter()
    dials = list(dict.fromkeys([*plan.dials(model.free_diagonal_), *also]))
    model = model.for_many(len(split.users), dials)  # the other form goes before the lists come
    found = evaluate(model, split, names, ks, xis=dials, progress=progress)
    points = tuple(
        Point(
            l2,
            dropout,
            dial.xi,
            rounded(judge.means(result)),
            norm,
            dial.item_norm,
            judge.groups(result),
        )
        for dial, result in zip(dials, found, strict=True)
    )
    return Trial(
        l2,
        dropout,
        points,
        model.xi_interval_,
        model.residual_,
        model.plan_.solver,
        round(fitted - started, 3),
        round(perf_counter() - fitted, 3),
        norm,
    )


def untuned_point(split: Split, norms: bool) -> Point:
    """Return the parameters of RDLAE, or with norms of DAN, by default; without figures."""
    model = DAN() if norms else RDLAE()
    l2 = three_digits(suggested_l2(split.train.matrix, model.user_norm))
    return Point(l2, model.dropout, model.xi, {}, model.user_norm, model.item_norm)


def rounded(means: dict[str, float]) -> dict[str, float]:
    """Return means as they are written to a journal, so that a search that goes on sees what it saw before."""
    return {name: round(value, 9) for name, value in means.items()}


def asked(wanted: Sequence[str], metrics: Sequence[str], n_items: int) -> tuple[list[str], list[int]]:
    """Return the metrics and cut-offs to evaluate: those wanted, such as "ndcg@100", and others beside them."""
    ks: set[int] = set()
    for name in wanted:
        metric, at, k = name.partition("@")
        if not metric or at != "@" or not k.isdigit():
            raise ValueError(f"an objective is a metric and a cut-off, such as 'ndcg@100', got {name!r}")
        if int(k) > n_items:
            raise DataError(f"{name} needs more items than the {n_items:,} there are: choose a smaller cut-off")
        ks.add(int(k))
    return list(dict.fromkeys([*(name.partition("@")[0] for name in wanted), *metrics])), sorted(ks)


def planned(
    search: str | Search,
    split: Split,
    objective: str,
    budget: int = 16,
    constraint: Constraint | None = None,
    norms: bool = False,
) -> Search:
    """Return the search of a name, made for the data of a split; see `tune`."""
    if not isinstance(search, str):
        return search
    scale = suggested_l2(split.train.matrix)
    if search == "auto":
        if not norms:
            return Auto(scale, objective, budget, constraint)
        return Auto(scale, objective, budget, constraint, _shrinking(split), _ITEM_NORMS)
    if search == "grid":
        grid = GridSearch([three_digits(scale * 2.0**octave) for octave in range(-4, 7)])
        return replace(grid, user_norms=_shrinking(split), item_norms=_ITEM_NORMS) if norms else grid
    raise ValueError(f"search must be 'auto', 'grid' or a search of your own, got {search!r}")


def _shrinking(split: Split) -> dict[float, float]:
    """How much smaller the Gram, and so the l2 that suits it, is with each user norm."""
    x = split.train.matrix
    return {norm: suggested_l2(x, norm) / suggested_l2(x) for norm in _USER_NORMS}
