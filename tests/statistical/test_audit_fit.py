"""`dpmc.fit` as a whole, run by an attacker who sees what it returns and nothing of its inside.

The canary moves a quantile: ten of forty rows are long, and the canary is one more or not, which is
where the first clip bound jumps from the short rows to the long ones if counts have no noise. A
correct fit is found guilty with a probability of at most 1e-3; seeds are fixed. What sums could
tell is audited release by release in :mod:`tests.automatic.test_privacy`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpmc
from dpmc.automatic.purse import Purse
from dpmc.models import gaussian_mean
from dpmc.privacy.budgets import GaussianBudget

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

EPSILON, DELTA, RUNS, CONFIDENCE = 4.0, 1e-3, 200, 0.999
N, LONG, SHORT, BEYOND = 40, 1.0, 1e-3, 30.0
MODEL = gaussian_mean.build(gaussian_mean.Params(1, [[1.0]], prior_variance=1.0))


def rows(canary: float) -> np.ndarray:
    """Return a quarter of long rows and others that are short, the canary last."""
    x = SHORT * (-1.0) ** np.arange(N)
    x[: N // 4] *= LONG / SHORT
    x[-1] = canary
    return x[:, None]


def mechanism(data: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return what a fit says: its first and last clip bound, its draws and their width."""
    fit = dpmc.fit(
        MODEL,
        data,
        epsilon=EPSILON,
        delta=DELTA,
        num_draws=2,
        num_chains=1,
        seed=int(rng.integers(2**32)),
        progress=False,
    )
    first, last = (fit.plan.stages[i]["gradient_clip_bound"] for i in (0, -1))
    widening = fit.plan.widening[0]
    return np.array([math.log(first), math.log(last), fit.draws.mean(), math.log(widening)])


def audit() -> dpmc.AuditResult:
    claim = {"mu": GaussianBudget.of(EPSILON, DELTA).mu, "delta": DELTA}
    pair = rows(SHORT), rows(BEYOND)
    return dpmc.audit(mechanism, *pair, num_runs=RUNS, confidence=CONFIDENCE, seed=1, **claim)


def test_a_fit_claims_no_more_than_it_has():
    assert not audit().violates_claim


def test_a_fit_whose_counts_have_no_noise_is_found(monkeypatch):
    monkeypatch.setattr(Purse, "count", lambda self, number, cost: number.value)
    result = audit()
    assert result.violates_claim
    assert result.mu_lower > 1.5 * result.claim_mu
