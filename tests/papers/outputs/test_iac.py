"""Figures of autocorrelation times: their numbers are what the captions say."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

from dpmc_papers.outputs import alparslan2023thesis, raisa2021dphmc
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import drawn
from tests.support import synthetic
from tests.support.figures import legend_of, shown

STEPS = {"num_iterations": 3000, "burn_in": 1000}


@pytest.fixture(scope="module")
def comparison():
    """Ten runs of each method, which keep 2000 draws of a chain; one of them stands still."""
    whole = synthetic.context(replicates=10, epsilons=(2, 15))
    rows = whole.metrics[whole.metrics["experiment"] == "comparison"].copy()
    rows["num_draws"] = 2000 * rows["num_chains"]
    rows["iac"] = np.random.default_rng(0).uniform(5, 15, len(rows))
    rows.loc[rows["method"] == "dp_sgld", "iac"] *= 30
    stuck = rows["method"].eq("dp_hmc") & rows["epsilon"].eq(2) & rows["replicate"].lt(3)
    rows.loc[stuck, "iac"] = math.nan
    rows.loc[rows["method"].eq("dp_sgnht") & rows["epsilon"].eq(2), "iac"] = math.nan
    return dataclasses.replace(whole, metrics=rows)


def values(table, series, epsilon):
    """Return the numbers of a series of the banana at one epsilon."""
    here = table[(table["panel"] == "Banana") & (table["series"] == series)]
    return here.loc[here["x"] == epsilon, "y"].tolist()


def test_medians_leave_out_runs_without_a_time_and_count_them(comparison):
    figure = raisa2021dphmc.figure_iac(comparison)
    axes = shown(figure)
    table = drawn.table(figure)
    rows = comparison.metrics.query("problem == 'paper_banana_2d' and method == 'dp_hmc'")
    for epsilon, lost in ((2, 3), (15, 0)):
        times = rows.loc[rows["epsilon"] == epsilon, "iac"].dropna()
        assert len(times) == 10 - lost
        assert values(table, "DP-HMC: median", epsilon) == [pytest.approx(times.median())]
        ends = values(table, "DP-HMC: quartile", epsilon)
        assert ends == pytest.approx(np.quantile(times, [0.25, 0.75]))
        counted = values(table, "DP-HMC: runs without a value", epsilon)
        assert counted == ([lost] if lost else [])
    assert "3" in [text.get_text() for text in axes[0].texts]
    # No run of this method has a time: a cross without a number.
    assert values(table, "DP-SGNHT: runs without a value", 2) == [10]
    assert "10" not in [text.get_text() for text in axes[0].texts]
    assert not values(table, "DP-SGNHT: median", 2)
    crosses = [line for line in axes[0].lines if line.get_gid() == "no value"]
    assert len(crosses) == 2
    assert "no value" in legend_of(figure)


def test_marks_of_chains_below_a_hundred_times_are_hollow(comparison):
    figure = raisa2021dphmc.figure_iac(comparison)
    table = drawn.table(figure)
    # Times of 5 to 15 for 2000 draws, and thirty times as much.
    assert values(table, "DP-penalty: median", 15)
    assert not values(table, "DP-penalty, chains too short: median", 15)
    assert values(table, "DP-SGLD, chains too short: median", 15)
    assert not values(table, "DP-SGLD: median", 15)
    assert values(table, "DP-SGLD: draws kept: median", 15) == [2000]
    fills = {
        line.get_color(): line.get_markerfacecolor()
        for line in figure.axes[0].lines
        if line.get_marker() in ("o", "^") and np.isfinite(line.get_ydata()).any()
    }
    assert fills == {"#0072B2": "#0072B2", "#009E73": "white"}


def study_rows():
    selection = [
        ("posterior_gaussian", "mh", "mh", "as_published", 1.0, 0, 5.0, math.nan),
        ("posterior_gaussian", "quadrature", "quadrature", "as_published", 1.0, 0, math.nan,
         math.nan),
        ("posterior_laplace", "pmmh-as_published", "pmmh", "as_published", 1.0, 10, math.nan,
         math.nan),
        ("posterior_laplace", "pmmh-corrected", "pmmh", "corrected", 1.0, 10, 6.0, math.nan),
        ("autocorrelation_particles", "mhaar-tuned", "mhaar", "corrected", 5.0, 2, math.nan, 8.0),
        ("autocorrelation_particles", "mhaar-tuned", "mhaar", "corrected", 5.0, 50, math.nan, 4.0),
    ]  # fmt: skip
    columns = [
        "experiment", "label", "method", "variant", "epsilon", "num_particles", "iac", "iac_sokal",
    ]  # fmt: skip
    rows = pd.DataFrame(selection, columns=columns).assign(num_iterations=10_000, problem="normal")
    regression = [
        ("simulated", "mcmc_bs-correct", "mcmc_bs", "correct", epsilon, nodes * time)
        for epsilon, time in ((0.1, 8.0), (10.0, 2.0))
        for nodes in (1, 2, 6)
    ]
    more = pd.DataFrame(regression, columns=[*columns[:5], "iac"]).assign(problem="simulated_2d")
    other = more.assign(method="adassp", label="adassp-correct", iac=math.nan)
    return pd.concat([rows, more, other], ignore_index=True).assign(status="complete")


@pytest.fixture(scope="module")
def studies():
    config = {
        "problems": {"simulated_2d": {"label": "simulated, d = 2"}},
        "studies": {"simulated": {"params": STEPS}},
    }
    return Context(config=config, metrics=study_rows())


def test_studies_are_drawn_against_epsilon_or_particles(studies):
    figure = alparslan2023thesis.figure_iac(studies)
    axes = shown(figure)
    labels = {axis.get_title(): axis.get_xlabel() for axis in axes}
    assert labels == {
        "Figure 6.1: Gaussian noise": "ε asked for",
        "Figure 6.2: Laplace noise": "ε asked for",
        "Table 6.1: Laplace noise, ε = 5": "particles",
        "correct: simulated, d = 2": "ε asked for",
    }
    table = drawn.table(figure).set_index(["panel", "series"])
    particles = table.loc[("Table 6.1: Laplace noise, ε = 5", "Algorithm 11, tuned: median")]
    assert particles[["x", "y"]].to_numpy().tolist() == [[2, 8], [50, 4]]
    stuck = table.loc[[("Figure 6.2: Laplace noise", "Algorithm 10: runs without a value")]]
    assert stuck[["x", "y"]].to_numpy().tolist() == [[1, 1]]
    # Over the numbers of nodes; of 2000 draws, 20 is the time that they still tell.
    panel = table.loc["correct: simulated, d = 2"]
    assert panel.loc["MCMC-B&S: median"][["x", "y"]].to_numpy().tolist() == [[0.1, 16], [10, 4]]
    kept = panel.loc["MCMC-B&S: draws kept: median", "y"]
    assert set(kept) == {STEPS["num_iterations"] - STEPS["burn_in"]}
    assert not {"adaSSP", "quadrature"} & set(legend_of(figure))
