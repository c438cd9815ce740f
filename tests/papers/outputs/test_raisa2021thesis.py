"""Figures of Räisä 2021, from invented runs."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
import pytest

from dpmc.types import DpmcError
from dpmc_papers.outputs import _held
from dpmc_papers.outputs import raisa2021thesis as outputs
from dpmc_papers.plots import drawn
from tests.support import synthetic_thesis as synthetic
from tests.support.figures import legend_of, shown
from tests.support.synthetic_thesis import COMPARISONS


@pytest.fixture(scope="module")
def text():
    return synthetic.context("text", replicates=8)


@pytest.fixture(scope="module")
def figure_of(text):
    """Return a function that makes a figure of these runs by its name, each once."""
    return functools.cache(lambda name: getattr(outputs, name)(text))


@pytest.fixture(scope="module")
def clipping():
    return synthetic.context("clipping", replicates=6)


def lines_of(axis, colour, style="-"):
    return [
        line for line in axis.lines if line.get_color() == colour and line.get_linestyle() == style
    ]


def test_figure6_3_shows_six_algorithms_on_four_bananas(figure_of):
    figure = figure_of("figure6_3")
    axes = shown(figure)
    assert [axis.get_title() for axis in axes] == [
        "Flat banana, d = 2", "Flat banana, d = 10", "Tempered banana, d = 2",
        "Tempered banana, d = 10",
    ]  # fmt: skip
    for axis in axes:
        assert len(axis.patches) == 6 * len(synthetic.EPSILONS) + 1  # the band of exact samples
        assert axis.get_ylim() == (0, 0.9)
    assert set(legend_of(figure)) == {
        "DP-penalty", "DP-penalty OCU+GWMH", "DP-HMC", "Minibatch penalty",
        "Minibatch penalty OCU+GWMH", "DP-Barker", "10 exact samples",
    }  # fmt: skip


def test_figures_of_the_thesis_hold_published_variants_only(text):
    few = text.metrics[(text.metrics["replicate"] < 5) & (text.metrics["epsilon"] == 4)]
    assert set(few["variant"]) > {"as_published"}
    boxes = [
        [box.get_path().vertices.tolist() for axis in figure.axes for box in axis.patches]
        for rows in (few, few[few["variant"] == "as_published"])
        for figure in [outputs.figure6_3(dataclasses.replace(text, metrics=rows))]
    ]
    assert boxes[0] == boxes[1]


def test_clip_fractions_stand_against_the_guideline_of_ten_per_cent(figure_of):
    for name in ("figure6_5", "figure6_6"):
        for axis in shown(figure_of(name)):
            marks = [line.get_ydata()[0] for line in lines_of(axis, "#222222", ":")]
            assert marks == [0.1]
            assert axis.get_ylim()[1] > 0.1


def test_figure6_7_measures_the_distance_from_the_origin(text, figure_of):
    left, middle, right = shown(figure_of("figure6_7"))
    here = text.metrics.query("problem == 'circle' and label == 'dp_hmc' and epsilon == 1")
    for axis, metric in ((left, "mean_norm"), (middle, "ratio_clip_fraction"), (right, "mmd")):
        medians = [line.get_ydata()[0] for line in lines_of(axis, "#222222")]
        assert any(math.isclose(m, here[metric].median()) for m in medians)
        assert [t.get_text() for t in axis.get_xticklabels()] == ["0.5", "0.75", "1"]


def test_figure_variants_stands_over_the_real_guarantee(figure_of):
    figure = figure_of("figure_variants")
    axes = shown(figure)
    assert len(axes) == 12
    titles = [axis.get_title().strip() for axis in axes[:3]]
    assert titles == ["Minibatch penalty", "Minibatch penalty\nOCU+GWMH", "DP-Barker"]
    assert [len(axis.containers) for axis in axes[:3]] == [2, 2, 3]
    for bars, share in zip(axes[2].containers, (0.6, 1.0, 0.3), strict=True):
        places = bars.lines[0].get_xdata()
        assert list(places) == pytest.approx([share * e for e in synthetic.EPSILONS])
    assert {"as published", "corrected", "PLD accounting"} < set(legend_of(figure))


def test_figure_held_stands_over_the_real_guarantee(text, figure_of):
    figure = figure_of("figure_held")
    axes = shown(figure)
    assert len(axes) == 8
    assert all(axis.get_xscale() == "log" for axis in axes)
    runs = text.metrics.query(
        "problem == 'flat_banana_2d' and label == 'dp_barker-corrected' and epsilon == 4"
    )
    points = [bars.lines[0].get_xydata() for bars in axes[0].containers]
    found = [point for curve in points for point in curve if point[0] == pytest.approx(4)]
    assert any(point[1] == pytest.approx(runs["mmd"].median()) for point in found)
    names = legend_of(figure)
    assert any(name.startswith("DP-Barker, corrected (") for name in names)  # much clipped
    assert "DP-penalty" in names
    assert not any("no guarantee" in t.get_text() for axis in axes for t in axis.texts)


def test_figure_held_sets_runs_without_a_guarantee_apart(text):
    rows = text.metrics.copy()
    rows.loc[rows["label"] == "dp_barker-corrected", "guarantee_epsilon"] = math.inf
    axes = shown(outputs.figure_held(dataclasses.replace(text, metrics=rows)))
    assert all("no guarantee" in [t.get_text() for t in axis.texts] for axis in axes)
    finite = rows.loc[np.isfinite(rows["guarantee_epsilon"]), "guarantee_epsilon"].max()
    apart = [bars for bars in axes[0].containers if min(bars.lines[0].get_xdata()) > finite]
    assert len(apart) == 1


def test_figure_claimed_counts_what_has_less_privacy_than_claimed(text):
    rows = text.metrics.copy()
    rows.loc[rows["label"] == "dp_penalty", "guarantee_epsilon"] = math.inf
    figure = outputs.figure_claimed(dataclasses.replace(text, metrics=rows))
    (axis,) = shown(figure)
    words = [text.get_text() for text in axis.texts]
    names = [label.get_text() for label in axis.get_yticklabels()]
    assert "no\nguarantee" in words
    counts = dict(zip(names, [text for text in words if " of " in text], strict=True))
    total = len(rows.query("label == 'dp_penalty'").groupby(["problem", "epsilon"]))
    assert counts["DP-penalty"] == f"{total} of {total}"
    assert counts["DP-HMC"] == f"0 of {total}"
    values = drawn.table(figure)
    assert np.isinf(values.query("series == 'DP-penalty'")["x"]).all()
    assert set(values["series"]) == set(names)


def test_every_mark_of_figure_claimed_stands_at_its_ratio(text):
    """No mark is moved along the axis of the ratio, so that none is on the wrong side of 1."""
    rows = text.metrics.copy()
    shares = np.random.default_rng(0).choice([0.5, 0.96, 1.0, 1.04, 2.0], len(rows))
    rows["guarantee_epsilon"] = shares * rows["epsilon"]
    claims = _held.claimed(rows)
    figure = outputs.figure_claimed(dataclasses.replace(text, metrics=rows))
    axis = figure.axes[0]
    marks = np.concatenate([np.asarray(c.get_offsets()) for c in axis.collections])
    assert sorted(marks[:, 0]) == pytest.approx(sorted(claims["held"] / claims["epsilon"]))
    names = [label.get_text() for label in axis.get_yticklabels()]
    found = drawn.table(figure)
    for place, name in enumerate(names):
        here = marks[np.round(marks[:, 1]) == place]
        recorded = found[found["series"] == name]
        assert sorted(here[:, 0]) == pytest.approx(sorted(recorded["x"]))
        # From top to bottom by the epsilon that was claimed.
        assert (np.diff(recorded["y"].to_numpy()[np.argsort(here[:, 1], kind="stable")]) >= 0).all()


def test_figure6_3_marks_runs_without_a_value(text, figure_of):
    rows = text.metrics.copy()
    gone = rows.query(
        "problem == 'flat_banana_10d' and label == 'minibatch_penalty_ocu_gwmh' and epsilon == 1"
    )
    rows.loc[gone.index, "mmd"] = math.nan
    figure = outputs.figure6_3(dataclasses.replace(text, metrics=rows))
    assert "no value" in legend_of(figure)
    assert [sum(line.get_gid() == "no value" for line in axis.lines) for axis in figure.axes] == [
        0, 1, 0, 0,
    ]  # fmt: skip
    assert "no value" not in legend_of(figure_of("figure6_3"))


def test_figure6_2_and_its_published_companion_show_different_runs(clipping):
    right, published = outputs.figure6_2(clipping), outputs.figure6_2_published(clipping)
    for figure, ending in ((right, ""), (published, ", starts at the truth")):
        axes = shown(figure)
        assert [axis.get_title() for axis in axes[:2]] == [
            f"Banana, d = {d}{ending}" for d in (2, 10)
        ]
        assert [len(axis.patches) for axis in axes[:2]] == [16 + 1] * 2  # the band of exact samples
        assert all(axis.get_ylim() == (0, 0.6) for axis in axes)
        assert legend_of(figure) == ["RWMH", "HMC", "10 exact samples"]
        for axis in axes[2:]:
            assert [line.get_xdata()[0] for line in lines_of(axis, "#222222", ":")] == [0.1]


def test_figure6_1_dots_what_is_no_upper_bound():
    figure = outputs.figure6_1(synthetic.context(replicates=1))
    axes = shown(figure)
    assert [axis.get_title() for axis in axes] == [
        "DP-penalty", "DP-Barker", "DP-HMC", "Minibatch penalty",
    ]  # fmt: skip
    assert [axis.get_yscale() for axis in axes] == ["linear", "log", "linear", "linear"]
    assert legend_of(axes[0]) == ["zCDP (Theorem 5)", "tight (Theorem 6)"]
    assert "RDP, cut short (no bound)" in legend_of(axes[3])
    dotted = [line for axis in axes for line in axis.lines if line.is_dashed()]
    curves = synthetic.curves()
    wrong = curves[~curves["upper_bound"]]
    assert len(dotted) == 1
    np.testing.assert_array_equal(dotted[0].get_ydata(), wrong["num_iterations"])


def test_outputs_say_what_they_lack(text):
    empty = dataclasses.replace(text, metrics=text.metrics.iloc[:0], curves={}, fits={})
    with pytest.raises(DpmcError, match="`metrics` must name one experiment, got none"):
        outputs.figure6_3(empty)
    with pytest.raises(DpmcError, match="must have the curves of 'figure6_1', got none"):
        outputs.figure6_1(empty)
    with pytest.raises(DpmcError, match="chains of experiment 'trajectory' are missing"):
        outputs.figure4_1(empty)
    with pytest.raises(DpmcError, match="`data` of figure5_1 must name at least one problem"):
        outputs.figure5_1(text)


def test_figures_of_a_cut_down_run(text):
    few = text.metrics[
        (text.metrics["problem"] == "flat_banana_2d")
        & (text.metrics["variant"] == "as_published")
        & (text.metrics["epsilon"] == 4)
        & (text.metrics["replicate"] < 2)
        & (text.metrics["algorithm"] == "dp_penalty")
    ]
    for name in COMPARISONS:
        figure = getattr(outputs, name)(dataclasses.replace(text, metrics=few))
        shown(figure)
        if name in ("figure6_3", "figure6_5"):
            assert figure.axes[0].get_title() == "Flat banana, d = 2"
        else:
            assert figure.axes[0].texts[0].get_text().startswith("This run holds")
