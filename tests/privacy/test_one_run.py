"""Audits of one run: how often a bound is wrong, by sums over all outcomes, and what is found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

import dpmc
from dpmc.privacy.clipped import asserted
from dpmc.privacy.ledger import Ledger
from dpmc.privacy.one_run import epsilon_of_guesses, p_value
from dpmc.types.gaussian_curve import epsilon_of_loss
from tests.support.clipped import less


def wrong_bounds(error, guesses, epsilon, delta, test):
    """Probability of a bound above the truth, of bits that are shown with probability delta.

    Else they are shown by randomised response: of all mechanisms with this epsilon and delta the
    one with most right guesses [Kairouz, Oh and Viswanath 2015].
    """
    right = np.arange(guesses + 1)
    law = binom.pmf(right, guesses, delta + (1 - delta) * expit(epsilon))
    return sum(p for v, p in zip(right, law, strict=True) if test(int(v), error))


@pytest.mark.parametrize("delta", [0.0, 1e-4, 1e-2])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_bounds_are_above_the_truth_as_seldom_as_they_say(epsilon, delta):
    guesses, error = 120, 0.05

    def violated(right, error):
        return epsilon_of_guesses(right, guesses, guesses, delta, error) > epsilon

    assert wrong_bounds(error, guesses, epsilon, delta, violated) <= error


def test_a_bound_without_the_term_of_delta_is_above_the_truth_too_often():
    """The same sum over outcomes has power: it finds the planted fault."""
    guesses, error, epsilon, delta = 120, 0.05, 0.1, 0.1

    def violated(right, error, delta=delta):
        return p_value(right, guesses, guesses, epsilon, delta) <= error

    assert wrong_bounds(error, guesses, epsilon, delta, violated) <= error
    faulty = wrong_bounds(error, guesses, epsilon, delta, lambda v, e: violated(v, e, 0.0))
    assert faulty > 2 * error


def laplace(scale):
    return lambda included, rng: included + rng.laplace(scale=scale, size=included.shape)


def test_half_the_noise_of_laplace_is_found_and_the_right_noise_is_not():
    """Seeds are fixed; the right noise is found guilty in at most 1 % of seeds."""
    given = {"claim": 1.0, "confidence": 0.99, "seed": 1}
    assert not dpmc.audit_one_run(laplace(1.0), 2000, **given).violates_claim
    assert dpmc.audit_one_run(laplace(0.5), 2000, **given).violates_claim


def test_a_sum_of_rows_without_most_of_its_noise_is_found():
    """Canaries are rows of one release, each in a direction of its own."""
    mu, delta = 0.5, 1e-6
    claim = epsilon_of_loss(mu**2 / 2, delta)

    def released(share):
        def mechanism(included, rng):
            clipped = asserted(np.where(included, 1.0, -1.0), 2.0)
            return Ledger().release(less(clipped, share), 1 / mu, rng)

        return dpmc.audit_one_run(mechanism, 500, claim=claim, delta=delta, seed=2)

    right, wrong = released(1.0), released(0.1)
    assert 0 < right.epsilon_lower < claim < wrong.epsilon_lower
    assert wrong.counts["right"] == wrong.counts["guesses"] <= wrong.counts["canaries"] == 500
    assert repr(wrong).endswith("(from one run, confidence 0.95), claim 2.25 violated)")


def test_all_that_is_known_of_constant_scores_is_nothing():
    result = dpmc.audit_one_run(lambda included: np.zeros(100), 100, seed=3)
    assert result.epsilon_lower < math.log(2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_canaries": 9}, "`num_canaries` must be an integer of at least 10, got 9"),
        ({"num_canaries": 20, "confidence": 1}, r"`confidence` must be in \(0.5, 1\), got 1"),
        ({"num_canaries": 20, "delta": 1.0}, r"`delta` must be in \[0, 1\), got 1.0"),
        ({"num_canaries": 20, "seed": "a"}, "`seed` must be an integer or None, got 'a'"),
    ],
)
def test_arguments_out_of_range_are_refused_before_the_run(given, message):
    def never(included):
        raise AssertionError

    with pytest.raises(dpmc.DpmcError, match=message):
        dpmc.audit_one_run(never, **given)


@pytest.mark.parametrize("scores", [np.zeros(19), np.full(20, np.nan), "high", None])
def test_what_is_no_score_for_each_canary_is_refused(scores):
    with pytest.raises(dpmc.DpmcError, match="`mechanism` must return 20 numbers, a score for"):
        dpmc.audit_one_run(lambda included: scores, 20)
