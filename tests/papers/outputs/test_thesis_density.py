"""Exact posteriors, and Figures 4.1 and 5.1 of Räisä 2021."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2

from dpmc_papers.config import problems
from dpmc_papers.config.setups import ProblemSetup
from dpmc_papers.outputs import _thesis_density
from dpmc_papers.outputs import raisa2021thesis as outputs
from dpmc_papers.plots import drawn
from tests.support import synthetic_thesis as synthetic
from tests.support.figures import legend_of, shown

PLANE = ("flat_banana_2d", "tempered_banana_2d", "narrow_banana_2d", "corr_gauss_2d", "circle")


@pytest.fixture(autouse=True)
def _coarse(monkeypatch):
    monkeypatch.setattr(_thesis_density, "CELLS", 41)


@pytest.fixture(scope="module")
def trajectory():
    return synthetic.context("trajectory", data=("circle_from_start",))


def test_figure4_1_follows_the_sixteenth_proposal(trajectory):
    axes = shown(outputs.figure4_1(trajectory))
    steps = [f"close by, step {12 * k} of 48" for k in range(1, 5)]
    titles = [axis.get_title() for axis in axes]
    assert titles == ["the whole posterior", *steps, "all 20 proposals"]
    draws = trajectory.fits["circle_from_start", "dp_hmc"][0][1].draws[0]
    for axis, last in zip(axes, (48, 12, 24, 36, 48), strict=False):
        path, start, current = axis.lines
        np.testing.assert_array_equal(path.get_xydata(), draws[15 * 49 : 15 * 49 + last + 1])
        np.testing.assert_array_equal(start.get_xydata()[0], draws[15 * 49])
        np.testing.assert_array_equal(current.get_xydata()[0], draws[15 * 49 + last])
    # Degrees from the start to the end of each proposal.
    arcs = drawn.table(outputs.figure4_1(trajectory)).query("series.str.endswith('degrees')",
                                                             engine="python")  # fmt: skip
    assert len(arcs) == 20
    angles = np.unwrap(np.arctan2(draws[:, 1], draws[:, 0])).reshape(20, 49)
    expected = np.degrees(angles[:, -1] - angles[:, 0])
    assert sorted(arcs["x"]) == pytest.approx(sorted(expected))
    assert "path of proposal 16, accepted" in legend_of(outputs.figure4_1(trajectory))


def test_figure5_1_shows_five_posteriors_and_the_starts():
    context = synthetic.context(replicates=1, data=PLANE)
    axes = shown(outputs.figure5_1(context))
    assert [axis.get_title() for axis in axes] == [
        "Flat banana, d = 2", "Tempered banana, d = 2", "Narrow banana", "Correlated Gaussian",
        "Circle",
    ]  # fmt: skip
    for axis, name in zip(axes, PLANE, strict=True):
        assert axis.collections
        problem = context.problem_setup(name)
        truth = context.dataset(name).truth
        for replicate, point in enumerate(axis.lines[0].get_xydata()):
            start = problems.start_points(problem, truth, np.empty((1, 0, 2)), 1, [replicate], 1)
            np.testing.assert_array_equal(point, start[0, 0])
        assert replicate == 19


def setup(settings, name):
    return ProblemSetup.read(name, settings["problems"][name])


@pytest.mark.parametrize("name", PLANE)
def test_regions_enclose_their_share_of_exact_draws(name, monkeypatch):
    """Error rate 2e-4 per model: two shares, sd at most 0.95 % from 10,000 and 4,000 draws."""
    monkeypatch.setattr(_thesis_density, "CELLS", 241)
    settings = synthetic.config(["text"])
    model = problems.make_model(setup(settings, name))
    dataset = synthetic.datasets(settings, [name])[name]
    found = _thesis_density.surface(model, dataset)
    evaluate = _thesis_density.log_posterior(model, dataset)
    draws = model.reference(dataset, 4000, np.random.default_rng(1))
    values = np.array([evaluate(theta) for theta in draws])
    for height, mass in zip(found.heights, _thesis_density.MASSES, strict=True):
        assert np.mean(values > height) == pytest.approx(mass, abs=3.9 * 0.0095)
    # The grid agrees with the draws, to the width of its cells.
    density = np.exp(found.log_density - found.log_density.max())
    outer, inner = (density[found.log_density > height].sum() for height in found.heights)
    assert inner / outer == pytest.approx(0.5 / 0.95, abs=0.04)


def test_log_posterior_is_that_of_all_rows():
    settings = synthetic.config(["text"])
    for name in ("tempered_banana_10d", "corr_gauss_2d", "circle"):
        problem = setup(settings, name)
        dataset = problems.make_data(problem.with_data(name, {"num_rows": 50}), 1)
        model = problems.make_model(problem)
        evaluate = _thesis_density.log_posterior(model, dataset)
        rng = np.random.default_rng(2)
        points = rng.normal(size=(2, model.dim))
        sums = []
        for theta in points:
            c = tuple(model.coefficients(theta))
            rows = model.features(dataset.x).T
            each = [model.log_likelihood.py_func(c, tuple(row)) for row in rows]
            sums.append(model.tempering * math.fsum(each) + model.log_prior(theta))
        got = evaluate(points[1]) - evaluate(points[0])
        assert got == pytest.approx(sums[1] - sums[0], rel=1e-9)


def test_borders_of_gaussian_regions_are_those_of_chi_squared():
    """Error rate 1e-4: a quantile of 10,000 draws, sd 0.044 and 0.01 of the log-density."""
    settings = synthetic.config(["text"])
    problem = {**settings["problems"]["corr_gauss_2d"]}
    identity = [[1, 0], [0, 1]]
    problem["model"] = {
        "name": "gaussian_mean",
        "params": {"dim": 2, "covariance": identity, "prior_variance": 100},
    }
    dataset = synthetic.datasets(settings, ["corr_gauss_2d"])["corr_gauss_2d"]
    model = problems.make_model(ProblemSetup.read("corr_gauss_2d", problem))
    found = _thesis_density.surface(model, dataset)
    weight = dataset.num_rows + 1 / 100  # precision of the posterior
    mode = dataset.num_rows * dataset.x.mean(axis=0) / weight
    top = _thesis_density.log_posterior(model, dataset)(mode)
    outer, inner = (-0.5 * chi2(2).ppf(mass) for mass in _thesis_density.MASSES)
    assert found.heights[0] - top == pytest.approx(outer, abs=3.9 * 0.044)
    assert found.heights[1] - top == pytest.approx(inner, abs=3.9 * 0.01)
