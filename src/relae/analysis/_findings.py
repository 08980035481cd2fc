"""The finding of a figure as a sentence, computed from its numbers."""

import numpy as np
from numpy.typing import NDArray

from relae.analysis._components import Components
from relae.analysis._sensitivity import Curve, Sensitivity
from relae.analysis._spectrum import Spectrum

_EVEN = 1.25  # times as much: less is called alike
_FLAT = 0.02  # of the mean: less is called hardly a change


def finding(result: Spectrum | Components | Sensitivity) -> str:
    """Return what the numbers of a figure say, in a sentence."""
    if isinstance(result, Spectrum):
        return _of_spectrum(result)
    return _of_components(result) if isinstance(result, Components) else _of_sensitivity(result)


def _of_spectrum(spectrum: Spectrum) -> str:
    rank = len(spectrum.eigenvalues)
    first, last = (
        f"{count:,} of {rank:,} ({count / rank:.1%}) at λ = {number(l2)}"
        for count, l2 in ((spectrum.half_kept[at], spectrum.l2s[at]) for at in (0, -1))
    )
    estimated = "" if spectrum.exact else f"; all but the largest of the {rank:,} eigenvalues are estimated"
    return f"components that L2 regularization keeps by half or more: {first}, {last}{estimated}"


def _of_components(components: Components) -> str:
    estimated = "" if components.exact else "; estimated, the edges of the two groups are smooth"
    return (
        f"the {components.share:.0%} highest-ranked components speak of {lean(components, components.high)}, the "
        f"{components.share:.0%} lowest-ranked of {lean(components, components.low)}, by mean weight of a "
        f"pair{estimated}"
    )


def lean(components: Components, part: NDArray[np.float64]) -> str:
    """Say which items some components speak of: two popular ones, or two unpopular ones, by mean absolute weight."""
    popular, _, unpopular = components.weight(part)
    if min(popular, unpopular) * _EVEN >= max(popular, unpopular):
        return "popular and unpopular items alike"
    names = ("popular", "unpopular") if popular > unpopular else ("unpopular", "popular")
    times = max(popular, unpopular) / max(min(popular, unpopular), np.finfo(np.float64).tiny)
    return f"{names[0]} items ({number(float(f'{times:.2g}'))} to 1)"


def _of_sensitivity(sensitivity: Sensitivity) -> str:
    best = f"the best {symbol(sensitivity)} for all items is {number(sensitivity.best)}"
    sentence = f"{trend(sensitivity, 'tail')}; {trend(sensitivity, 'head')}; {best}"
    if sensitivity.unconstrained is not None:
        share = sensitivity.unconstrained[sensitivity.curves["all"].best]
        sentence += f", where {share:.1%} of the diagonal constraints are gone"
    return sentence


def trend(sensitivity: Sensitivity, group: str) -> str:
    """Say how NDCG of a group goes from the first to the last value, by way of its peak where that is inside."""
    curve, what = sensitivity.curves[group], f"{group} ndcg@{sensitivity.k}"
    at = [f"{symbol(sensitivity)} = {number(value)}" for value in sensitivity.values]
    if np.isnan(curve.mean).all():
        return f"{what} is not known: no user has {group} items to find"
    first, last, peak = curve.mean[0], curve.mean[-1], curve.best
    ends = f"{first:.4f} at {at[0]} to {last:.4f} at {at[-1]}"
    word = direction(curve)
    if word == "peaks":
        return f"{what} peaks with {curve.mean[peak]:.4f} at {at[peak]}, from {ends}"
    return f"{what} {word} from {ends}"


def direction(curve: Curve) -> str:
    """Return "rises", "falls", "peaks" (higher inside than at both ends) or "hardly changes"."""
    first, last, peak = curve.mean[0], curve.mean[-1], float(np.nanmax(curve.mean))
    small = _FLAT * peak
    if peak - float(np.nanmin(curve.mean)) <= small:
        return "hardly changes"
    if peak - max(first, last) > small:
        return "peaks"
    return "rises" if last > first else "falls"


def change(sensitivity: Sensitivity, group: str) -> str:
    """Say what happens to a group of items as the parameter grows."""
    curve = sensitivity.curves[group]
    if np.isnan(curve.mean).all():
        return "are not looked for"
    return {
        "rises": "gain",
        "falls": "lose",
        "peaks": f"gain up to {number(sensitivity.values[curve.best])} and lose beyond",
        "hardly changes": "hardly change",
    }[direction(curve)]


def symbol(sensitivity: Sensitivity) -> str:
    """Return how the parameter is written."""
    return {"xi": "ξ", "l2": "λ", "dropout": "dropout"}[sensitivity.parameter]


def number(value: float) -> str:
    """Return a value of a parameter with three digits, as a person would write it."""
    if value == 0:
        return "0"
    digits = max(0, 2 - int(np.floor(np.log10(abs(value)))))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
