"""The linear autoencoders as one search: which parameters need a fit, which are dials, and which model owns a point.

One inverse serves every model of the family, so a search over RDLAE finds the best of all six models of the paper, and
a search over DAN that of DAN. This is the only module of the room that knows these parameters by name.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from relae._common.checks import refuse
from relae._common.tables import short
from relae.errors import DataError
from relae.evaluation import Split
from relae.linalg import Csr
from relae.models import DAN, DLAE, EASE, EDLAE, LAE, RDLAE, RLAE, LinearAutoencoder, suggested_l2
from relae.recommender import HistoryRecommender, Range
from relae.tuning import _time
from relae.tuning._search import Auto, Axis, Dials, GridSearch, Setting, Space, three_digits
from relae.tuning._trial import Trial

MEMBERS: dict[str, type[LinearAutoencoder]] = {
    kind.__name__: kind
    for kind in (LAE, EASE, RLAE, DLAE, EDLAE, RDLAE, DAN)  # the most special one comes first
}
BASES: tuple[type[LinearAutoencoder], ...] = (RDLAE, DAN)  # the models that a search is made for
_DECLARED = {parameter.name: parameter for parameter in DAN.PARAMETERS}
# where they change nothing: what only DAN has is a constant of the other models
_NEUTRAL = {name: getattr(RDLAE, name) for name in _DECLARED if name not in RDLAE().get_params()}
_OCTAVES, _DROPOUTS, _XIS, _USER_NORMS, _ITEM_NORMS = (
    _DECLARED[name].steps for name in ("l2", "dropout", "xi", "user_norm", "item_norm")
)
_SEARCHED = tuple(name for name in _DECLARED if _DECLARED[name].steps)  # in the order in which they are shown
_DIALS = tuple(name for name in _SEARCHED if _DECLARED[name].kind == "dial")
# Octaves from the suggested l2, and dropouts: one look at each corner that some data set likes best.
_START = ((0.0, 0.0), (2.5, 0.2), (-2.5, 0.4), (4.0, 0.0), (0.0, 0.5))
_START_WITH_NORMS = ((0.0, 0.5, 0.0), (-1.5, 0.7, 0.3), (2.5, 0.2, 0.5), (0.0, 0.7, 0.8), (0.0, 0.5, 0.5))


def symbol(name: str) -> str:
    """Return the symbol by which tables show a parameter of the linear autoencoders; any other name as it is."""
    return _DECLARED[name].label if name in _SEARCHED and name != "l2" else name  # λ is l2 wherever it is typed


def describe(name: str) -> dict[str, Any]:
    """Return what a report says of a parameter: its symbol, where it changes nothing, and its effect in words.

    `is_time` tells whether it is one of the parameters of time.
    """
    return {
        "symbol": symbol(name),
        "neutral": _NEUTRAL.get(name),
        "phrase": f"a norm of {_DECLARED[name].title} {symbol(name)} of" if name in _NEUTRAL else symbol(name),
        "effect": _DECLARED[name].effect if name in _DECLARED else "",
        "is_time": name in _time.NAMES,
    }


def ends(parameters: Mapping[str, Any], dial: str) -> tuple[str, str]:
    """Return the names of the models at both ends of a dial, where norms are left aside."""
    plain = {name: value for name, value in parameters.items() if name not in _NEUTRAL}
    low, high = (type(linear_model({**plain, dial: end})).__name__ for end in (0.0, 1.0))
    return low, high


def is_base(model: HistoryRecommender) -> bool:
    """Return whether one search over this model serves several; a DataError for a model that such a search contains."""
    if type(model) in MEMBERS.values() and not isinstance(model, BASES):
        name = type(model).__name__
        raise DataError(f"one search tunes all six linear autoencoders, {name} among them: tune RDLAE() instead")
    return isinstance(model, BASES)


def searched_names(kind: type[HistoryRecommender], split: Split | None = None) -> list[str]:
    """Return the parameters of a model that a search goes through, in the order in which they are shown.

    Where a split is by time, those of time are among them.
    """
    own = kind().get_params()
    time = _time.searched(split.train) if split is not None and is_timed(split) else ()
    return [name for name in (*_SEARCHED, *time) if name in own]


def is_timed(split: Split) -> bool:
    """Return whether a search on a split goes through the parameters of time."""
    return split.by_time and split.train.times is not None


# --- which model owns a point ------------------------------------------------------------------------------------


def owns(kind: type[LinearAutoencoder], parameters: Mapping[str, Any]) -> bool:
    """Return whether parameters are a configuration of a model: its constants hold, whatever its own parameters are."""
    return all(parameters[name] == value for name, value in _constants(kind, parameters).items())


def _constants(kind: type[LinearAutoencoder], names: Sequence[str] | Mapping[str, Any]) -> dict[str, float]:
    """Return those of some parameters that are constants of a model."""
    own = kind().get_params()
    return {name: getattr(kind, name) for name in names if name not in own}


def linear_model(parameters: Mapping[str, Any], name: str | None = None, base: HistoryRecommender | None = None) -> Any:
    """Return the model of a configuration, not fitted.

    Parameters
    ----------
    parameters
        Those that were searched. Norms that are not among them are 0.
    name
        The model; the most special one that owns the configuration if not given.
    base
        Where all other parameters come from; they are the defaults if not given.
    """
    if name is None:
        name = next(name for name, kind in MEMBERS.items() if owns(kind, parameters))
    kind = MEMBERS[name]
    if not owns(kind, parameters):
        raise ValueError(f"{', '.join(f'{key}={short(value)}' for key, value in parameters.items())} is no {name}")
    others = {} if base is None else base.get_params()
    values = _NEUTRAL | others | dict(parameters)
    return kind(**{each: values[each] for each in kind().get_params() if each in values})


# --- what is searched --------------------------------------------------------------------------------------------


def ranges(model: HistoryRecommender, split: Split) -> dict[str, Range]:
    """Return what a search goes through, by parameter, in the order in which they are shown."""
    scale = suggested_l2(split.train.matrix)
    octaves = Range(scale * 2.0 ** _OCTAVES[0], scale * 2.0 ** _OCTAVES[-1], log=True)
    steps = {name: _DECLARED[name].steps for name in searched_names(type(model)) if name != "l2"}
    spaces = {"l2": octaves} | {name: Range(values[0], values[-1]) for name, values in steps.items()}
    return spaces | (_time.ranges(split.train) if is_timed(split) else {})


def start(model: HistoryRecommender, split: Split) -> tuple[Setting, Dials]:
    """Return the parameters of a model that nobody has tuned: those that need a fit, and its dials."""
    own, names = model.get_params(), searched_names(type(model), split)
    dials = (*_DIALS, *_time.DIALS)
    setting = {name: own[name] for name in names if name not in dials}
    if own["l2"] is None:
        train = split.train if own["half_life"] is None else split.train.weighted(half_life=own["half_life"])
        setting["l2"] = three_digits(suggested_l2(train.matrix, getattr(model, "user_norm", 0.0)))
    return setting, {name: own[name] for name in names if name in dials}


def plan(
    search: str, model: HistoryRecommender, split: Split, objective: str, budget: int | None, constraint: Any
) -> Auto | GridSearch:
    """Return the search of a name, made for the data of a split; see `tune`."""
    x = split.train.matrix
    norms = _norm_factors(x) if isinstance(model, DAN) else None
    scale = suggested_l2(x)
    if search == "auto":
        space = linear_space(scale) if norms is None else linear_space(scale, norms, _ITEM_NORMS)
        if is_timed(split):
            space = _time.timed(space, split.train, objective)
        return Auto(space, objective, 16 if budget is None else budget, constraint)
    if search == "grid":
        l2s = [three_digits(scale * 2.0**octave) for octave in range(-4, 7)]
        return paper_grid(l2s) if norms is None else paper_grid(l2s, norms, _ITEM_NORMS)
    refuse("search", search, "be 'auto', 'grid' or a search of your own")


def _norm_factors(x: Csr) -> dict[float, float]:
    """Return by how much the Gram, and so the l2 that suits it, is smaller with each norm of users."""
    return {norm: suggested_l2(x, norm) / suggested_l2(x) for norm in _USER_NORMS}


def paper_grid(
    l2s: Sequence[float], user_norms: Mapping[float, float] | None = None, item_norms: Sequence[float] | None = None
) -> GridSearch:
    """Return the search of the paper: dropout 0 to 0.9 and ξ 0 to 1; with norms of users also what l2 they multiply."""
    dials: dict[str, Sequence[float]] = {"xi": _XIS}
    dropouts = _DROPOUTS[::2]
    if user_norms is None:
        return GridSearch({"l2": l2s, "dropout": dropouts}, dials)
    settings = [
        {"l2": _scaled(l2, user_norms[norm]), "dropout": dropout, "user_norm": norm}
        for norm, dropout, l2 in product(user_norms, dropouts, l2s)
    ]
    return GridSearch(settings, dials if item_norms is None else dials | {"item_norm": item_norms})


def _scaled(l2: float, factor: float) -> float:
    return float(l2) if factor == 1 else three_digits(l2 * factor)


def linear_space(
    scale: float, user_norms: Mapping[float, float] | None = None, item_norms: Sequence[float] = (0.0,)
) -> Space:
    """Return what `Auto` searches.

    Parameters
    ----------
    scale
        An l2 of the right order of magnitude, such as `suggested_l2`.
    user_norms
        Norms of users to choose from, and what each multiplies the scale by. With them, DAN alone is searched for;
        without, the six models of the paper.
    item_norms
        Norms of items that every inverse is judged with, where there are norms of users.
    """
    l2 = Axis("l2", _OCTAVES, (1.5, 2.5, 4.0, 6.0), octaves=True)
    dropout = Axis("dropout", _DROPOUTS, (0.2, 0.35, 0.6, 1.0))
    if user_norms is None:
        names = (l2.name, dropout.name, "xi")
        shared = tuple(constants for kind in MEMBERS.values() if (constants := _constants(kind, names)))
        return Space((l2, dropout), _START, lambda _: scale, lambda model, _: _relaxations(model, 10, 7), shared)
    norm = Axis("user_norm", tuple(user_norms), (0.4, 0.8, 1.6))

    def scale_of(setting: Setting) -> float:
        return scale * user_norms.get(setting["user_norm"], 1.0)

    def dials_of(model: Any, _: Sequence[Trial]) -> list[Dials]:
        return [dials | {"item_norm": each} for each in item_norms for dials in _relaxations(model, 5, 4)]

    return Space((l2, dropout, norm), _START_WITH_NORMS, scale_of, dials_of)


def _relaxations(model: Any, quantiles: int, steps: int) -> list[Dials]:
    """Return ξ of 0, 1, the default, and some between which equal shares of the constraints are removed."""
    diagonal = model.free_diagonal_
    inner = np.concatenate(
        [
            np.quantile(diagonal, np.linspace(0.05, 0.95, quantiles)),
            np.linspace(diagonal.min(), diagonal.max(), steps)[1:-1],
        ]
    )
    return [{"xi": xi} for xi in sorted({0.0, 1.0, RDLAE().xi, *np.round(inner.clip(0.0, 1.0), 4).tolist()})]


def fit_facts(model: Any) -> dict[str, Any]:
    """Return what a trial keeps of a fitted linear model: its solver, how exact it is, and the ξ that matter."""
    return {"interval": list(model.xi_interval_), "residual": model.residual_, "solver": model.plan_.solver}


def remarks(model: HistoryRecommender, trials: Sequence[Trial]) -> list[str]:
    """Return remarks on the best of each model, such as that it rests on a part of the trials."""
    plain = sum(trial.parameters["dropout"] == 0 for trial in trials)
    texts = []
    if plain < len(trials):
        texts.append(
            f"LAE, EASE and RLAE rest on the {plain} inversions without dropout: a fair comparison of models gives "
            "each a search of its own (`relae compare`)"
        )
    if isinstance(model, DAN):
        plain = sum(trial.parameters["user_norm"] == 0 for trial in trials)
        texts.append(
            f"searched for DAN: models without norms had only {plain} of them, and may do better by their own search"
        )
    return texts
