"""Style, panels and saving."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.stats import multivariate_normal

from dpmc.experiments import plots
from dpmc.experiments.config import grids
from dpmc.experiments.plots import panels, style
from dpmc.types import DpmcError


def drawn():
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot([0, 1], [1, 0])
    return figure


@pytest.mark.parametrize("suffix", [".pdf", ".svg", ".png"])
def test_the_same_figure_gives_the_same_bytes(suffix, tmp_path, monkeypatch):
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    plots.save(drawn(), paths[0])
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    with mpl.rc_context({"svg.hashsalt": "other"}):
        plots.save(drawn(), paths[1])
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert b"Date" not in paths[0].read_bytes()


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(DpmcError, match=r"must be one of .pdf, .svg, .png, got '.jpg'"):
        plots.save(drawn(), tmp_path / "a.jpg")


def test_every_look_differs_by_more_than_colour():
    thesis = (
        "dp_penalty", "dp_penalty_ocu_gwmh", "dp_hmc", "dp_mala", "minibatch_penalty",
        "minibatch_penalty_ocu_gwmh", "dp_barker",
    )  # fmt: skip
    variants = ("as_published", "corrected", "pld")
    groups = (("dp_penalty", "dp_hmc", "dp_sgld", "dp_sgnht"), thesis, ("rwmh", "hmc"), variants)
    for group in groups:
        looks = [style.look(name) for name in group]
        assert len({look.marker for look in looks}) == len(looks)
        assert len({look.colour for look in looks}) == len(looks)
        assert len({str(look.line) for look in looks}) == len(looks)


def test_new_methods_and_variants_have_a_look():
    assert style.look("my_method").label == "my method"
    assert style.look("my_method") == style.look("my_method")
    assert style.ordered(["zeta", "dp_hmc", "dp_penalty", "alpha"], style.METHODS) == [
        "dp_penalty", "dp_hmc", "alpha", "zeta",
    ]  # fmt: skip
    assert plots.method_label("dp_sgld", "langevin") == "DP-SGLD, Langevin noise"
    assert plots.method_label("dp_sgld", "as_published") == "DP-SGLD"
    assert grids.algorithm("dp_barker-pld") == "dp_barker"
    assert plots.method_label(grids.algorithm("minibatch_penalty_ocu_gwmh-corrected")) == (
        "Minibatch penalty OCU+GWMH"
    )


def test_style_does_not_depend_on_the_settings_of_the_caller():
    @style.styled
    def size():
        return mpl.rcParams["font.size"], mpl.rcParams["lines.linestyle"]

    with mpl.rc_context({"font.size": 30, "lines.linestyle": ":"}):
        assert size() == (8, "-")
        assert mpl.rcParams["font.size"] == 30


def test_no_text_is_smaller_than_seven_points():
    sizes = [
        value for key, value in style.RC.items() if key.endswith("size") and "major" not in key
    ]
    assert min(sizes) >= 7


def test_boxes_show_quartiles_and_count_runs_above_the_axis():
    values = [0.1, 0.2, 0.3, 0.4, 0.9, 0.1, 0.2]
    table = pd.DataFrame({"x": [1] * 5 + [2] * 2, "y": values, "hue": "a"})
    _, axes = style.figure(1, 1, 2)
    axis = axes[0, 0]
    panels.boxes(axis, table, "x", "y", "hue", {"a": style.look("a")}, ceiling=0.5)
    assert [label.get_text() for label in axis.get_xticklabels()] == ["1", "2"]
    assert [text.get_text() for text in axis.texts] == ["1"]
    box = axis.patches[0].get_path().vertices[:, 1]
    assert (box.min(), box.max()) == pytest.approx((0.2, 0.4))
    # Two runs make no quartiles: their median and dots only.
    assert len(axis.patches) == 1
    medians = [line for line in axis.lines if line.get_color() == style.INK]
    assert [line.get_ydata()[0] for line in medians] == pytest.approx([0.3, 0.15])
    assert axis.get_ylim() == (0, 0.5)


def test_boxes_keep_a_place_for_grid_points_without_runs():
    table = pd.DataFrame({"x": [4.0] * 5, "y": [0.1] * 5, "hue": "a"})
    _, axes = style.figure(1, 1, 2)
    panels.boxes(axes[0, 0], table, "x", "y", "hue", {"a": style.look("a")}, grid=[1.0, 4.0])
    assert [label.get_text() for label in axes[0, 0].get_xticklabels()] == ["1", "4"]
    assert axes[0, 0].patches[0].get_path().vertices[:, 0].mean() > 0.5


def test_joint_heights_enclose_the_stated_mass():
    """Error rate below 1e-4: shares of 40,000 points, sd 0.25 %, plus smoothing."""
    rng = np.random.default_rng(0)
    sample = rng.normal(size=(40_000, 2))
    grid = np.linspace(-4, 4, 81)
    _, axes = style.figure(1, 1, 2)
    ones = np.ones(2000)
    found = panels.joint(axes[0, 0], sample[:2000], ones, (grid, grid), (0.9, 0.5))
    assert found is not None
    density, heights = found
    assert heights[0] < heights[1]
    truth = multivariate_normal(np.zeros(2)).pdf(np.stack(np.meshgrid(grid, grid), axis=-1))
    truth = truth / truth.sum()
    for height, mass in zip(heights, (0.9, 0.5), strict=True):
        assert truth[density >= height].sum() == pytest.approx(mass, abs=0.05)


def test_guarantees_are_drawn_against_the_epsilon_asked_for():
    rows = [("a", "corrected", e, e) for e in (1, 2)] + [("b", "pld", 2, 0.5), ("b", "pld", 2, 0.7)]
    columns = ["method", "variant", "epsilon", "guarantee_epsilon"]
    _, axes = style.figure(1, 1, 2)
    groups = {"a": style.look("dp_hmc"), "b": style.look("dp_barker")}
    looks = {name: style.look(name) for name in ("corrected", "pld")}
    table = pd.DataFrame(rows, columns=columns)
    panels.guarantees(axes[0, 0], table, "method", groups, "variant", looks)
    diagonal, *drawn = axes[0, 0].lines
    assert diagonal.get_xydata().tolist() == [[0, 0], [2, 2]]
    points = [(line.get_marker(), line.get_xydata().tolist()) for line in drawn]
    assert [p for p in points if p[0] != "None"] == [("s", [[1, 1], [2, 2]]), ("D", [[2, 0.7]])]


def test_a_note_says_what_is_missing():
    figure = style.note("Nothing was run.")
    assert [text.get_text() for text in figure.axes[0].texts] == ["Nothing was run."]


def test_a_sample_that_stands_still_draws_nothing():
    _, axes = style.figure(1, 1, 2)
    grid = np.linspace(0, 1, 5)
    panels.marginal(axes[0, 0], np.ones(5), np.ones(5), grid)
    assert not axes[0, 0].lines
    assert panels.joint(axes[0, 0], np.ones((5, 2)), np.ones(5), (grid, grid), (0.9,)) is None
