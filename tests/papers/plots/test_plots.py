"""Style, panels and saving."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from dpmc_papers import plots
from dpmc_papers.plots import panels, style
from dpmc_papers.plots.drawn import table as table_of
from tests.support.figures import small


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


def test_style_does_not_depend_on_the_settings_of_the_caller():
    @style.styled
    def size():
        seen.append((mpl.rcParams["font.size"], mpl.rcParams["lines.linestyle"]))
        return Figure()

    seen = []
    with mpl.rc_context({"font.size": 30, "lines.linestyle": ":"}):
        size()
        assert seen == [(7.5, "-")]
        assert mpl.rcParams["font.size"] == 30


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


def test_every_box_is_there_or_a_mark_in_its_place():
    rows = [("a", 1, 0.2)] * 5 + [("a", 2, np.nan)] * 5 + [("b", 1, 0.3)] * 5
    table = pd.DataFrame(rows, columns=["hue", "x", "y"])
    figure, axes = style.figure(1, 1, 2)
    looks = {name: style.look(name) for name in "ab"}
    panels.boxes(axes[0, 0], table, "x", "y", "hue", looks, grid=[1, 2])
    assert len(axes[0, 0].patches) == 2
    marks = {line.get_gid(): line for line in axes[0, 0].lines if line.get_gid()}
    assert {gid: line.get_marker() for gid, line in marks.items()} == {
        "no value": "x",
        "not run": "_",
    }
    assert marks["no value"].get_xdata()[0] < 1 < marks["not run"].get_xdata()[0]
    # Where no run has a value, the worst place of the axis and not the best.
    assert marks["no value"].get_ydata()[0] > 0.9
    entries = [entry.get_label() for entry in panels.missing_entries(figure)]
    assert entries == ["no value", "not run"]


def test_runs_without_a_value_are_counted_and_recorded():
    rows = [("a", 1, 0.2)] * 5 + [("a", 1, np.nan)] * 3 + [("a", 2, 0.3)] * 5
    table = pd.DataFrame(rows, columns=["hue", "x", "y"])
    figure, axes = style.figure(1, 1, 2)
    panels.boxes(axes[0, 0], table, "x", "y", "hue", {"a": style.look("dp_hmc")})
    assert [text.get_text() for text in axes[0, 0].texts] == ["3"]
    found = table_of(figure)
    lost = found[found["series"] == "DP-HMC: runs without a value"]
    assert lost[["x", "y"]].to_numpy().tolist() == [[1, 3]]
    assert (found["series"] == "DP-HMC").sum() == 10


def test_medians_stand_side_by_side_within_their_grid_point():
    rows = [(name, x, x + y) for name in "ab" for x in (0.1, 10) for y in (0, 1, 2, 5, 9)]
    table = pd.DataFrame(rows, columns=["hue", "x", "y"])
    figure, axes = style.figure(1, 1, 2)
    looks = {"a": style.look("dp_hmc"), "b": style.look("dp_barker")}
    panels.centres(axes[0, 0], table, "x", "y", "hue", looks)
    lines = {line.get_marker(): line for line in axes[0, 0].lines if len(line.get_xdata()) == 2}
    places = {marker: lines[marker].get_xdata() for marker in ("s", "D")}
    for place in range(2):
        assert -0.5 < places["s"][place] - place < 0 < places["D"][place] - place < 0.5
    assert lines["s"].get_ydata() == pytest.approx([2.1, 12])
    found = table_of(figure)
    chosen = found[(found["series"] == "DP-HMC: quartile") & (found["x"] == 10)]
    assert chosen["y"].tolist() == [11, 15]
    assert set(found["x"]) == {0.1, 10}


def test_numbers_at_logarithmic_axes_have_no_superscripts():
    @style.styled
    def draw():
        figure, axes = style.figure(1, 2, 2)
        axes[0, 0].plot([1, 1e7], [1e-6, 3])
        axes[0, 0].set(xscale="log", yscale="log")
        axes[0, 1].plot([1, 2], [3, 5])
        axes[0, 1].set_yscale("log")
        return figure

    figure = draw()
    assert small(figure) == []
    wide, narrow = figure.axes
    assert "1e-6" in [text.get_text() for text in wide.get_yticklabels()]
    assert sum(3 <= place <= 5 for place in narrow.get_yticks()) >= 2
