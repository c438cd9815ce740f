"""The default prior of slopes, whose scale is unknown, and units that few rows have to show."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmc.automatic.counted import Counted
from dpmc.automatic.glm import kernels, units
from dpmc.automatic.glm.normal import Normal, Observed, posterior
from dpmc.automatic.glm.rows import Rows
from dpmc.automatic.glm.till import Till
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.ledger import Ledger
from dpmc.rng import stream
from dpmc.types import DpmcError
from tests.automatic.glm.searches import fitted


def priors(*sds):
    return [Normal(np.zeros(1), np.array([[sd**-2.0]])) for sd in sds]


@pytest.mark.parametrize("mode", [0.05, 0.4, 3.0])
def test_a_posterior_is_that_of_a_mixture_of_priors(mode):
    """One gradient at 0, known curvature: against a sum over a fine grid."""
    curvature, noise = 20.0, 6.0
    stage = Observed(
        np.zeros(1), np.array([curvature * mode]), noise, np.array([[curvature]]), 0.0, 1.0, None,
        0.0, lambda place: np.array([[curvature]]),
    )  # fmt: skip
    sds = (2.5, 0.3)
    found = posterior([stage], priors(*sds))
    theta = np.linspace(-20, 20, 400_001)
    density = sum(np.exp(-0.5 * (theta / sd) ** 2) / sd for sd in sds)
    density *= np.exp(-0.5 * (theta - mode) ** 2 / (1 / curvature + (noise / curvature) ** 2))
    density /= density.sum()
    mean = density @ theta
    assert found.mean[0] == pytest.approx(mean, rel=1e-6)
    assert found.covariance()[0, 0] == pytest.approx(density @ (theta - mean) ** 2, rel=1e-6)


def test_the_default_prior_gives_way_to_rows_and_not_to_noise():
    """Twelve slopes of 0.1: nearer than under the widest prior where noise is larger than these.

    Slopes of 2 and much budget: no nearer to 0 than their rows say, within four deviations.
    """
    slopes, width, errors = np.full(12, 0.1), 2.5, {}
    rng = stream(0, "slopes")
    x = rng.normal(size=(600, 12))
    y = (rng.random(600) < 1 / (1 + np.exp(-(x @ slopes)))) * 1.0
    rows = np.column_stack([x, y])
    for name, options in {"default": {}, "widest": {"prior_sd": width}}.items():
        means = [fitted(rows, "logistic", seed=seed, **options)[1] for seed in range(5)]
        errors[name] = np.sqrt(np.mean((np.array(means)[:, 1:] - slopes) ** 2))
    assert errors["default"] < 0.75 * errors["widest"]
    x = rng.normal(size=(3000, 1))
    y = (rng.random(3000) < 1 / (1 + np.exp(-(2 * x[:, 0])))) * 1.0
    fit, mean, sd = fitted(np.column_stack([x, y]), "logistic", epsilon=8.0, seed=1)
    assert abs(mean[1] - 2) < 4 * sd[1]
    assert sd[1] < 0.2
    assert fit.plan.prior["narrower"][0] == 1.0


def test_curvatures_of_either_sign_are_no_farther_apart_than_they_may_be():
    """A Student-t row at 0 in place of one at the least curvature, of the same features."""
    numbers = np.zeros(kernels.NUMBERS)
    numbers[[kernels.Y_INVERSE, kernels.SIGMA, kernels.SCORE]] = 1.0
    numbers[kernels.FREEDOM], numbers[kernels.CURVATURE] = 4.0, 1.25
    numbers[[kernels.LENGTH, kernels.LONGEST, kernels.RESIDUAL, kernels.GRADIENT]] = 2.0
    seen = []
    for response in (0.0, math.sqrt(12.0)):
        row, kind = np.array([[2.0, response]]), kernels.STUDENT_T
        rows = Rows(row, np.zeros(1), np.ones(1), False, kind, Counted(1.0))
        seen.append(rows.scores(np.eye(1), np.zeros(1), numbers, True).curvature)
    assert seen[1].value[0] == pytest.approx(-seen[0].value[0] / 8)
    move = float(np.linalg.norm(seen[0].value - seen[1].value))
    assert 0.75 * seen[0].sensitivity < move <= seen[0].sensitivity


def test_few_rows_show_their_units_for_more_of_the_budget():
    """Eight columns in units of 1,000, 2,500 rows: five octaves are beyond chance.

    Noise of a count is a fifth of the rows or less, so that a scale is two octaves off where two
    counts in a row are wrong by 2.5 deviations: once in 1e4 columns.
    """
    x = 1e3 * stream(0, "units").normal(size=(2500, 8))
    till = Till(Ledger(GaussianBudget(0.124), "continuous"), np.random.default_rng(0))
    found = units.find(till, Counted(2500.0), x, True)
    assert found.seen
    assert np.all((found.scale > 1e3 / 32) & (found.scale < 32e3))
    spent = sum(stage["share"] for stage in till.stages)
    assert 0.08 < spent < 0.3


def test_locations_are_medians_of_what_is_there():
    """Sixty in a hundred rows are missing; a count is 40 deviations from what a scale moves it."""
    x = 7.0 + stream(0, "missing").normal(size=(20_000, 2))
    x[:12_000] = np.nan
    till = Till(Ledger(GaussianBudget(1.0), "continuous"), np.random.default_rng(0))
    found = units.find(till, Counted(20_000.0), x, True)
    np.testing.assert_allclose(found.location, 7.0, atol=1.0)
    assert not found.beyond.any()


def test_a_prior_of_each_coefficient_by_its_name():
    """The posterior of a normal model with little noise is the conjugate one."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2000, 2))
    y = 1.0 + x @ [0.5, -1.0] + rng.normal(size=2000)
    means, sds = {"x2": -0.9, "x1": 0.6}, {"x1": 0.02, "x2": 0.02, "intercept": 10.0}
    fit, mean, sd = fitted(
        np.column_stack([x, y]), "linear", epsilon=1e4, seed=1, prior_mean=means, prior_sd=sds
    )
    design = np.column_stack([np.ones(2000), x])
    precision = np.diag([0.01, 2500.0, 2500.0])
    whole = design.T @ design + precision
    exact = np.linalg.solve(whole, design.T @ y + precision @ [0.0, 0.6, -0.9])
    assert np.all(np.abs(mean[:3] - exact) < sd[:3] / 4)
    assert np.allclose(sd[:3], np.sqrt(np.diag(np.linalg.inv(whole))), rtol=0.1)
    assert fit.plan.prior["mean"][:3] == pytest.approx([0.0, 0.6, -0.9])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"prior_sd": {"x1": 1.0}}, "`prior_sd` must be of 'intercept', 'x1', 'x2', got none of"),
        ({"prior_sd": 1.0, "prior_mean": {"age": 1.0}}, "`prior_mean` must be of .* got 'age'"),
        ({"prior_sd": 1.0, "prior_mean": [0.0, 1.0]}, "`prior_mean` must be one number, or 3"),
        ({"prior_sd": 1.0, "prior_mean": np.inf}, "`prior_mean` must be finite"),
        ({"prior_mean": 1.0}, "`prior_mean` must come with `prior_sd`"),
        ({"prior_sd": -1.0}, "`prior_sd` must be"),
    ],
)
def test_priors_that_are_none_are_refused(options, match):
    with pytest.raises(DpmcError, match=match):
        fitted(np.ones((9, 3)), "linear", **options)
