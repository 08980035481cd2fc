"""Figures: complete, readable in both forms, and clear about what is missing."""

import subprocess
import sys
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest

from relae.analysis import (
    PlotsMissingError,
    components,
    plot_components,
    plot_sensitivity,
    plot_spectrum,
    render,
    sensitivity_dropout,
    sensitivity_l2,
    sensitivity_xi,
    spectrum,
)
from relae.errors import RelaeError
from relae.evaluation import hold_out_users

from .suite import shop

# Computed when first used, and not by every process that collects the tests.


@cache
def data():
    return shop(200, 120)


@cache
def split():
    return hold_out_users(data(), share=0.3, rng=np.random.default_rng(0))


@cache
def eigenvalues():
    return spectrum(data(), rng=np.random.default_rng(0))


@cache
def parts():
    return components(data(), rng=np.random.default_rng(0))


@cache
def by_xi():
    return sensitivity_xi(split(), 8.0, [0.0, 0.1, 0.3, 1.0])


FIGURES = {
    "spectrum": lambda: plot_spectrum(eigenvalues(), "a shop"),
    "components": lambda: plot_components(parts(), "a shop"),
    "xi": lambda: plot_sensitivity(by_xi(), "a shop"),
    "l2": lambda: plot_sensitivity(sensitivity_l2(split(), [1.0, 8.0, 64.0]), "a shop"),
    "dropout": lambda: plot_sensitivity(sensitivity_dropout(split(), [0.0, 0.5], 8.0), "a shop"),
}


def words(figure):
    return " ".join(" ".join(text.get_text().split()) for text in figure.texts)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_labelled_and_can_be_saved_in_both_forms(name):
    figure = FIGURES[name]()
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert len(panels) == {"spectrum": 2, "components": 2, "xi": 4}.get(name, 3)
    assert all(axes.get_xlabel() for axes in panels)
    assert panels[0].get_ylabel()
    assert "a shop" in words(figure)
    assert render(figure, "png").startswith(b"\x89PNG")
    svg = render(figure, "svg")
    text = [node.text for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")]
    assert panels[0].get_title(loc="left") in text  # text stays text
    assert render(FIGURES[name](), "svg") == svg


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_leaves_the_figure(name):
    figure = FIGURES[name]()
    figure.canvas.draw()
    edge = figure.bbox
    texts = [text for text in figure.findobj(match=lambda artist: hasattr(artist, "get_text")) if text.get_text()]
    for text in texts:
        if not text.get_visible():
            continue
        box = text.get_window_extent()
        inside = box.x0 >= edge.x0 - 1 and box.x1 <= edge.x1 + 1 and box.y0 >= edge.y0 - 1 and box.y1 <= edge.y1 + 1
        tick = any(
            text in axis.get_ticklabels(which="both") for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)
        )
        assert inside or tick, text.get_text()


def test_an_estimate_says_so_in_words():
    assert "exact eigenvalues" in words(plot_spectrum(eigenvalues()))
    assert "estimated" not in words(plot_spectrum(eigenvalues()))
    assert "estimated" in words(plot_spectrum(replace(eigenvalues(), exact=False)))
    assert "estimated" not in words(plot_components(parts()))
    assert "estimated" in words(plot_components(replace(parts(), exact=False)))


def test_lines_are_the_numbers():
    figure = plot_sensitivity(by_xi())
    for axes, group in zip(figure.axes, ("all", "head", "tail"), strict=False):
        np.testing.assert_array_equal(axes.lines[0].get_xdata(), by_xi().values)
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), by_xi().curves[group].mean)
    np.testing.assert_array_equal(figure.axes[3].lines[0].get_ydata(), by_xi().unconstrained)
    image = plot_components(parts()).axes[0].images[0].get_array()
    assert np.ma.getmaskarray(image).diagonal().all()
    np.testing.assert_array_equal(image[3, 7], parts().high[3, 7])


def test_a_single_value_and_a_group_without_truth_can_be_drawn():
    nothing = replace(by_xi().curves["tail"], mean=np.full(4, np.nan), low=np.full(4, np.nan), high=np.full(4, np.nan))
    without = replace(by_xi(), curves={**by_xi().curves, "tail": nothing})
    assert "are not looked for" in words(plot_sensitivity(without))
    render(plot_sensitivity(sensitivity_l2(split(), [8.0])), "png")
    render(plot_spectrum(spectrum(data(), [8.0], rng=np.random.default_rng(0))), "png")


def test_without_matplotlib_there_are_numbers_and_a_way_to_get_plots(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PlotsMissingError, match=r"pip install 'relae\[plots\]'"):
        plot_spectrum(eigenvalues())
    assert issubclass(PlotsMissingError, ImportError)
    assert issubclass(PlotsMissingError, RelaeError)


def test_numbers_do_not_import_matplotlib_and_plots_do_not_import_pyplot():
    code = (
        "import sys, numpy as np\n"
        "from relae.analysis import plot_spectrum, render, spectrum\n"
        "found = spectrum(np.eye(9), [1.0], rng=np.random.default_rng(0))\n"
        "assert 'matplotlib' not in sys.modules\n"
        "render(plot_spectrum(found), 'png')\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
