"""The paper's analysis on any data, as numbers and as plots: spectra, components, and what each parameter does.

Each function returns numbers with `to_polars()`; a plot takes them and returns a `matplotlib.figure.Figure`. Plots need
the extra `plots`: `pip install 'relae[plots]'`.

| figure of the paper | numbers | plot |
|---|---|---|
| 1 | `spectrum` | `plot_spectrum` |
| 2 | `components` | `plot_components` |
| 3 | `sensitivity_xi` | `plot_sensitivity` |
| 4 | `sensitivity_l2` | `plot_sensitivity` |
| 5 | `sensitivity_dropout` | `plot_sensitivity` |
"""

from relae.analysis._components import Components, components
from relae.analysis._findings import finding
from relae.analysis._plots import plot_components, plot_sensitivity, plot_spectrum
from relae.analysis._sensitivity import (
    Curve,
    Sensitivity,
    sensitivity_dropout,
    sensitivity_l2,
    sensitivity_xi,
)
from relae.analysis._spectrum import Spectrum, spectrum
from relae.analysis._style import PlotsMissingError, render

__all__ = [
    "Components",
    "Curve",
    "PlotsMissingError",
    "Sensitivity",
    "Spectrum",
    "components",
    "finding",
    "plot_components",
    "plot_sensitivity",
    "plot_spectrum",
    "render",
    "sensitivity_dropout",
    "sensitivity_l2",
    "sensitivity_xi",
    "spectrum",
]
