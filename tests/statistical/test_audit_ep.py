"""Private expectation propagation, run by an attacker who knows all rows but one.

With one row and one pass, what is fitted is the one release. Each audit finds a correct method
guilty with a probability of at most 1e-3; seeds are fixed.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest

import dpmc
from dpmc.ep.mixture import dp_sep as mixture_sep
from dpmc.ep.mixture import engine as mixture_engine
from dpmc.ep.mixture.model import MixtureModel
from dpmc.ep.mixture.settings import MixtureSettings
from dpmc.ep.network import dp_sep as network_sep
from dpmc.ep.network import engine as network_engine
from dpmc.ep.network import variants as network_variants
from dpmc.ep.network.task import Task
from dpmc.privacy import noise_calibration
from dpmc.privacy.accountants._whole import mean_loss
from dpmc.privacy.clipped import Clip
from dpmc.privacy.ledger import Ledger
from dpmc.types import Budget
from tests.statistical.auditing import CONFIDENCE, DELTA, HUGE

pytestmark = pytest.mark.slow

MULTIPLIER, CLIP, RUNS = 0.7, 1.0, 2000
# Of one unit either way from the first prediction of a network: its factor is mostly a shift.
TARGET = 2.0
MODEL = MixtureModel.isotropic(1.0, [[0.0]], 1.0)


def mu_of(ledger):
    return math.sqrt(2 * mean_loss(ledger.counts))


@functools.cache
def mixture(order):
    """Return a fit of one row, or of two in a permutation, and mu of its releases."""
    others = [[HUGE]] * (order == "permutation")
    params = MixtureSettings(
        num_passes=1,
        step=0.2,
        clip="joint",
        clip_bound=CLIP,
        noise_multiplier=MULTIPLIER,
        order=order,
        repair="noise",
    )

    def fit(sign, rng, ledger=None):
        rows = np.array([[sign * HUGE], *others])
        return mixture_engine.fit(rows, MODEL, params, rng, ledger=ledger).h[0, 0]

    fit(1, np.random.default_rng(1), ledger := Ledger())
    return fit, mu_of(ledger)


@functools.cache
def one_step_of_a_network():
    """Return a fit of one row, its log-likelihood ratio for the statistic, and mu."""
    settings = (1, 1, CLIP)

    def fit(sign, rng, multiplier=MULTIPLIER, ledger=None):
        params = network_variants.private(*settings, multiplier, 1.0, step=1.0)
        params = replace(params, prior_precision=1.0)
        found = network_engine.fit(
            np.ones((1, 1)), np.array([sign * TARGET]), params, rng, ledger=ledger
        )
        precisions = [1 / layer for layer in found.variances]
        shifts = [m * p for m, p in zip(found.means, precisions, strict=True)]
        return np.concatenate([layer.ravel() for layer in (*shifts, *precisions)])

    # The first means do not matter to a step of 1, whose cavity is the prior.
    exact = [fit(sign, np.random.default_rng(1), 1e-9) for sign in (-1, 1)]
    fit(1, np.random.default_rng(1), ledger=(ledger := Ledger()))
    return lambda sign, rng: fit(sign, rng) @ (exact[1] - exact[0]), mu_of(ledger)


CASES = {
    "mixture": lambda: (*mixture("independent"), 0.8),
    "mixture, permutation": lambda: (*mixture("permutation"), 0.4),  # a step in between is hidden
    "network": lambda: (*one_step_of_a_network(), 0.6),
}


@pytest.mark.parametrize("name", CASES)
def test_a_release_reaches_the_claim_and_does_not_exceed_it(name, monkeypatch):
    """A sensitivity without its factor 2 is found, and so is half of the noise."""
    fit, mu, share = CASES[name]()

    def run(mechanism):
        given = {"mu": mu, "delta": DELTA, "confidence": CONFIDENCE, "num_runs": RUNS, "seed": 1}
        return dpmc.audit(mechanism, -1, 1, **given)

    def mechanism(sign, rng):
        return fit(sign, rng)

    result = run(mechanism)
    assert not result.violates_claim
    assert result.mu_lower > share * mu
    right = Clip.sensitivity.fget
    monkeypatch.setattr(Clip, "sensitivity", property(lambda clip: right(clip) / 2))
    assert run(mechanism).violates_claim


def test_half_the_noise_of_a_block_is_found():
    fit, mu = mixture("independent")

    class Faulty(Ledger):
        def noise_block(self, *args, **kwargs):
            return super().noise_block(*args, **kwargs) / 2

    def mechanism(sign, rng):
        return fit(sign, rng, Faulty())

    result = dpmc.audit(
        mechanism, -1, 1, mu=mu, delta=DELTA, confidence=CONFIDENCE, num_runs=RUNS, seed=1
    )
    assert result.violates_claim


BUDGET = Budget(1.0, 0.01, "rdp")


def fitted_mixture(sign, rng):
    rows = np.array([[sign * HUGE], [HUGE]])
    fit, guarantee = mixture_sep.fit(rows, MODEL, mixture_sep.Params(1, 1.0), BUDGET, rng)
    assert guarantee.epsilon <= BUDGET.epsilon
    return np.concatenate([fit.h.ravel(), fit.precision.ravel()])


def fitted_network(sign, rng):
    x, y = np.ones((2, 1)), np.array([sign * TARGET, TARGET])
    params = network_sep.Params(num_passes=1, noise_variance=1.0, prior_precision=1.0)
    fitted = network_sep.fit(x, y, Task("pair", 1), params, BUDGET, rng)
    assert fitted.guarantee.epsilon <= BUDGET.epsilon
    return np.concatenate([layer.ravel() for layer in fitted.predictor.means])


@pytest.mark.parametrize("mechanism", [fitted_mixture, fitted_network])
def test_a_fit_does_not_exceed_the_budget_that_it_was_given(mechanism, monkeypatch):
    monkeypatch.setattr(
        noise_calibration, "calibrate", functools.cache(noise_calibration.calibrate)
    )
    result = dpmc.audit(
        mechanism,
        -1,
        1,
        claim=BUDGET.epsilon,
        delta=BUDGET.delta,
        confidence=CONFIDENCE,
        num_runs=1000,
        seed=1,
    )
    assert not result.violates_claim
