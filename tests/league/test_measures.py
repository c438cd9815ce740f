"""Measures against closed forms, and the gate against what must not pass it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

import dpmc_league
from dpmc.diagnostics.mmd import Reference
from dpmc.types import DpmcError
from dpmc_league import gate, measures

RNG = np.random.default_rng(20261124)
BASE = RNG.standard_normal((4000, 3)) @ np.array([[2.0, 0.3, 0], [0, 1.0, 0.2], [0, 0, 0.1]])
REFERENCE = Reference.of(BASE)


@pytest.mark.slow
def test_the_sliced_distance_of_a_shift_and_of_a_widening_is_what_it_must_be() -> None:
    """Of the reference itself, moved: no sampling error but that of 100 directions (5 %)."""
    step = np.array([0.3, -0.4, 0.0])
    moved = BASE + step @ np.linalg.inv(REFERENCE.whitener)
    expected = math.sqrt(0.25 / 3)
    assert measures.sliced_wasserstein(moved, REFERENCE) == pytest.approx(expected, rel=0.12)
    wide = BASE.mean(axis=0) + 1.5 * (BASE - BASE.mean(axis=0))
    assert measures.sliced_wasserstein(wide, REFERENCE) == pytest.approx(0.5, rel=0.02)
    assert measures.sliced_wasserstein(BASE, REFERENCE) == pytest.approx(0, abs=1e-12)


def test_mmd_of_a_shifted_normal_is_that_of_the_closed_form() -> None:
    """Gaussian kernel of width w, N(0, I) and N(m, I): 2 a (1 - exp(-m^2 / (2 (w^2 + 2)))).

    The estimate has a standard error of about 0.01 with 4,000 draws of each: 5 of them.
    """
    one, other = RNG.standard_normal((2, 4000, 2))
    reference = Reference.of(one)
    shift = np.array([0.8, 0.0])
    w2 = reference.width**2
    squared = 2 * (w2 / (w2 + 2)) * (1 - math.exp(-0.64 / (2 * (w2 + 2))))
    found = measures.mmd(other + shift, reference)
    assert found == pytest.approx(math.sqrt(squared), abs=0.05)


def test_errors_are_in_posterior_deviations_and_effective_draws_their_inverse_square() -> None:
    errors = measures.mean_errors(BASE + 0.1 * BASE.std(axis=0), BASE)
    assert errors == pytest.approx([0.1] * 3)
    assert measures.effective_draws(errors) == pytest.approx(100)
    assert measures.deviation_ratios(2 * BASE, BASE) == pytest.approx([2.0] * 3)
    assert measures.effective_draws(np.zeros(2)) == math.inf


def test_coverage_is_the_level_for_exact_draws_and_that_of_the_normal_law_for_others() -> None:
    """Shares of 100,000 draws, quantiles of as many: four standard errors are below 0.01."""
    exact, other = RNG.standard_normal((2, 100_000, 2))
    for level in (0.5, 0.9):
        assert measures.coverage(other, exact, level) == pytest.approx(level, abs=0.01)
        end = norm.ppf(0.5 + level / 2)
        wide = norm.cdf(2 * end) - norm.cdf(-2 * end)
        assert measures.coverage(2 * other, exact, level) == pytest.approx(wide, abs=0.01)
        shifted = norm.cdf(1 + end) - norm.cdf(1 - end)
        assert measures.coverage(other + 1, exact, level) == pytest.approx(shifted, abs=0.01)


def test_the_predictive_score_is_that_of_the_normal_predictive_density() -> None:
    """Of the Gaussian mean: a posterior N(m, V) predicts N(m, V + covariance).

    Draws far too wide (V = 4, against 1e-5) in two dimensions: within 5 %.
    """
    from scipy.stats import multivariate_normal

    task = dpmc_league.task("gaussian-2-v1")
    reference = task.reference()
    centre = reference.mean(axis=0)
    draws = centre + 0.3 * RNG.standard_normal((4000, 2))
    covariance = np.array([[1, 0.5], [0.5, 1]])
    rows = task.fresh[: measures.SCORED_ROWS]
    expected = np.mean(
        multivariate_normal.logpdf(rows, centre, covariance + 0.09 * np.eye(2))
        - multivariate_normal.logpdf(rows, centre, covariance)
    )
    found = measures.predictive(task.model, draws, reference, task.fresh)
    assert found == pytest.approx(expected, abs=0.01)
    assert abs(measures.predictive(task.model, reference[5000:], reference, task.fresh)) < 1e-4


@pytest.mark.parametrize(
    ("ledger", "message"),
    [
        (None, "`ledger` must list releases, got none"),
        ([], "`ledger` must list at least one release"),
        ([("gaussian(1.0)", 9)], "`ledger` must come to epsilon 1 at most, got"),
        ([("gaussian(1.0)", -1)], "must list pairs"),
        ([("gaussian(1.0)", 1.5)], "must list pairs"),
        ([("gaussian(1.0)",)], "must list pairs"),
        (["gaussian(1.0)"], "must list pairs"),
        ([("laplace(1.0)", 1)], "an event must read"),
        ([("gaussian(nan)", 1)], "noise_multiplier|event"),
    ],
)
def test_ledgers_that_do_not_pass(ledger, message) -> None:
    with pytest.raises(DpmcError, match=message):
        gate.ledger(ledger, 1e-6, 1.0)


@pytest.mark.parametrize(
    ("draws", "message"),
    [
        (np.zeros((60, 3)), "must have 2 columns, got shape"),
        (np.zeros((49, 2)), "must be at least 50, got 49"),
        (np.full((60, 2), np.nan), "must be finite"),
        (np.zeros(60), "must have 2 columns"),
        ("none", "must be numbers"),
        ([[1, 2], [3]], "must be numbers"),
    ],
)
def test_draws_that_do_not_pass(draws, message) -> None:
    with pytest.raises(DpmcError, match=message):
        gate.draws(draws, 2)


def test_a_ledger_of_exactly_its_budget_passes_and_of_one_percent_more_does_not() -> None:
    from dpmc.privacy.gaussian_noise import analytic_multiplier

    for epsilon in (0.5, 1.0, 4.0):
        multiplier = analytic_multiplier(epsilon, 1e-6)
        passed = gate.ledger([(f"gaussian({multiplier * 10})", 100)], 1e-6, epsilon)
        assert passed.epsilon == pytest.approx(epsilon, rel=gate.TOLERANCE)
        assert passed.mu == pytest.approx(1 / multiplier)
        with pytest.raises(DpmcError, match="must come to epsilon"):
            gate.ledger([(f"gaussian({multiplier * 9.9})", 100)], 1e-6, epsilon)


def test_a_score_is_given_to_draws_alone() -> None:
    task = dpmc_league.task("circle-v1")
    ledger = [("gaussian(2.0)", 1)]
    good = dpmc_league.score(task, task.reference(3000), ledger, epsilon=4, outside=("a shape",))
    assert good.scored
    assert good.outside == ("a shape",)
    assert good.releases == 1
    assert good.coverage_90 == pytest.approx(0.9, abs=0.03)
    assert math.isnan(good.predictive)
    worse = dpmc_league.score(task, 1.2 * task.reference(3000), ledger, epsilon=4)
    assert worse.mmd > good.mmd
    assert worse.deviation_ratio == pytest.approx(1.2, rel=0.03)
    assert not dpmc_league.score(task, task.reference(3000), ledger, epsilon=1).scored
