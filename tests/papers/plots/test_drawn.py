"""Numbers behind figures, as they are drawn."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd
import pytest
import yaml
from matplotlib.figure import Figure

from dpmc_papers.outputs import raisa2021dphmc as outputs
from dpmc_papers.plots import drawn, panels
from dpmc_papers.plots.style import look
from tests.support import synthetic

ROOT = Path(__file__).parents[3]
SHOWN = ("figure1", "figure3", "budget", "comparison")


@pytest.fixture(scope="module")
def context():
    config = yaml.safe_load((ROOT / "config/papers/raisa2021dphmc.yaml").read_text())
    config["outputs"] = {name: config["outputs"][name] for name in SHOWN}
    return dataclasses.replace(synthetic.context(), config=config)


def test_the_numbers_behind_a_figure_are_those_of_its_runs(context):
    table = drawn.table(outputs.figure1(context))
    assert list(table.columns) == drawn.COLUMNS
    chosen = (table["panel"] == "Banana: MMD") & (table["series"] == "DP-HMC") & (table["x"] == 8)
    runs = context.metrics.query(
        "experiment == 'comparison' and problem == 'paper_banana_2d' and label == 'dp_hmc' "
        "and epsilon == 8"
    )["mmd"]
    assert sorted(table.loc[chosen, "y"]) == sorted(runs)
    exact = table[(table["panel"] == "Banana: MMD") & (table["series"] == "exact sample")]
    assert sorted(exact["y"]) == sorted(context.exact("paper_banana_2d", "mmd"))


def test_lines_points_and_words_at_ticks_are_told():
    figure = Figure()
    plain, boxed = figure.subplots(1, 2)
    plain.plot([1, 2], [3, 4], label="curve")
    plain.plot([5], [6])
    plain.scatter([7], [8])
    plain.axhline(9)
    plain.set_xticks([1, 2], ["first", "second"])
    runs = pd.DataFrame({"e": [1.0, 1.0, 2.0], "m": [0.1, 0.2, 0.3], "k": "dp_hmc"})
    panels.boxes(boxed, runs, "e", "m", "k", {"dp_hmc": look("dp_hmc")})
    table = drawn.table(figure)
    first = table[table["panel"] == "panel 1"]
    assert list(first["series"]) == ["curve", "curve", "line 2", "points 1"]
    assert list(first.loc[first["series"] == "curve", "x_tick"]) == ["first", "second"]
    second = table[table["panel"] == "panel 2"]
    assert list(second["y"]) == [0.1, 0.2, 0.3]
    assert list(second["x"]) == [1, 1, 2]
    assert drawn.table(Figure()).empty
