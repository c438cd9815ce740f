"""Whether what captions say can be seen: the data behind figures drawn from published runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.lines import Line2D

from dpmc import registry, yaml_files
from dpmc.types import UNAVAILABLE, DpmcError
from dpmc_papers import redraw
from dpmc_papers.config import reader
from dpmc_papers.outputs import _held
from dpmc_papers.pipeline import results
from dpmc_papers.plots import drawn, panels, style
from dpmc_papers.verdicts import claim_file
from tests.support.figures import ambiguous, bare, unexplained

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "results" / "published"
PAPERS = ("raisa2021dphmc", "raisa2021thesis", "vinaroz2022dpsep", "alparslan2023thesis")
SLOPES = {"vinaroz2022dpsep": ["problem"], "alparslan2023thesis": ["problem", "num_nodes"]}


@pytest.fixture(scope="module")
def configuration():
    given = yaml_files.read_yaml(ROOT / "config" / "config.yaml")
    return reader.load_config({**given, "scale": "paper", "papers": list(PAPERS)}, ROOT)


@pytest.fixture(scope="module")
def figure_of(configuration):
    """Return what draws a figure of a paper, and its published runs."""
    read = {}

    def draw(paper, name):
        if paper not in read:
            read[paper] = results.read_runs(PUBLISHED / paper / results.RUNS)
        module = registry.load("output", paper)
        claims = claim_file.load(ROOT / "config" / "published" / f"{paper}.yaml")
        runs, settings = read[paper], configuration.papers[paper]
        figure = redraw.draw(module, runs, settings, name, claims)
        rows = runs.metrics[runs.metrics["experiment"].isin(settings.outputs[name].metrics)]
        return figure, rows

    return draw


def on_the_wrong_side(table, rows):
    """Return names of lines with another number of marks right of 1 than results that fail."""
    claims = _held.claimed(rows)
    pairs = zip(claims["algorithm"], claims["variant"], strict=True)
    names = np.array([style.method_label(*pair) for pair in pairs])
    fails = claims["held"] > (1 + panels.TOLERANCE) * claims["epsilon"]
    right = table["x"] > 1 + panels.TOLERANCE
    return [
        name
        for name in sorted({*names, *table["series"]})
        if fails[names == name].sum() != right[table["series"] == name].sum()
        or (names == name).sum() != (table["series"] == name).sum()
    ]


@pytest.mark.parametrize("paper", PAPERS)
def test_marks_right_of_the_line_are_results_with_less_privacy_than_claimed(paper, figure_of):
    figure, rows = figure_of(paper, "figure_claimed")
    table = drawn.table(figure)
    assert not on_the_wrong_side(table, rows)
    # Marks that are moved aside, by as much as keeps a dozen of them apart, would be noticed.
    moved = table.assign(x=table["x"] * 1.07 ** (np.arange(len(table)) % 12))
    assert on_the_wrong_side(moved, rows)


def off_their_numbers(figure):
    """Return marks that stand at no number which is written beside the figure."""
    table = drawn.table(figure)
    found = []
    for axis in figure.axes:
        numbers = table.loc[table["panel"] == axis.get_title(), "y"].to_numpy(float)
        marks = [line for line in axis.lines if line.get_marker() not in ("None", "")]
        heights = np.concatenate([np.asarray(line.get_ydata(), float) for line in marks])
        known = np.isclose(heights[:, None], numbers, rtol=1e-9).any(axis=1)
        found += heights[~known & np.isfinite(heights)].tolist()
    return found


@pytest.mark.parametrize(("paper", "by"), SLOPES.items())
def test_slopes_show_means_with_intervals_and_no_panel_of_absent_data(paper, by, figure_of):
    figure, rows = figure_of(paper, "figure_slopes")
    there = rows[~rows["status"].fillna("").str.startswith(UNAVAILABLE)]
    tables = 2 if paper == "vinaroz2022dpsep" else 1
    assert len(figure.axes) == tables * there.groupby(by).ngroups
    table = drawn.table(figure)
    ours = table[table["x"] > 0]
    kind = ours["series"].str.rpartition(": ")[2]
    assert 2 * (kind == "mean").sum() == (kind == "90 % interval").sum() > 0
    assert not ours["y"].isna().any()
    assert not off_their_numbers(figure)
    # Means of logarithms, which an axis that is logarithmic too early would have, are noticed.
    line = next(line for line in figure.axes[-1].lines if line.get_marker() not in ("None", ""))
    line.set_ydata(0.9 * np.asarray(line.get_ydata(), float))
    assert off_their_numbers(figure)


def test_no_numbers_are_centred_on_a_logarithmic_axis():
    table = pd.DataFrame({"x": [1, 1], "y": [1.0, 100.0], "hue": "a"})
    _, axes = style.figure(1, 1, 2)
    axes[0, 0].set_yscale("log")
    with pytest.raises(DpmcError, match="must be linear before it has centres, got log"):
        panels.centres(axes[0, 0], table, "x", "y", "hue", {"a": style.look("a")})


@pytest.mark.parametrize(
    ("paper", "name"),
    [("alparslan2023thesis", "figure_convergence"), ("raisa2021dphmc", "figure_held")],
)
def test_every_entry_of_a_legend_has_marks_and_one_meaning(paper, name, figure_of):
    figure, rows = figure_of(paper, name)
    assert len(drawn.table(figure)["panel"].unique()) == rows["problem"].nunique() * (
        2 if name == "figure_convergence" else 1
    )
    assert not [*bare(figure), *unexplained(figure), *ambiguous(figure)]
    (handles,) = [legend.legend_handles for legend in figure.legends]
    marked = [h for h in handles if isinstance(h, Line2D) and h.get_marker() != "None"]
    # The look of one entry for another, an entry of nothing, and a panel of nothing are noticed.
    marked[0].update_from(marked[1])
    assert len(ambiguous(figure)) == 1
    marked[0].set(color="#123456", marker="h")
    assert unexplained(figure) == [marked[0].get_label()]
    figure.add_subplot(9, 9, 81, title="nothing")
    assert bare(figure) == ["nothing"]
