"""`dpmc.fit` as a whole, run by an attacker who sees what it returns and nothing of its inside.

The canary moves a quantile: ten of forty rows are long, and the canary is one more or not, which is
where the first clip bound jumps from the short rows to the long ones if counts have no noise. Under
addition or removal the canary is there or not, and the number of rows one more or not. A correct
fit is found guilty with a probability of at most 1e-3; seeds are fixed. What sums could tell is
audited release by release in :mod:`tests.automatic.test_privacy` and `test_neighbours`.
"""

from __future__ import annotations

import functools
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


def mechanism(neighbours: str, data: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return what a fit says: number of rows, first and last clip bound, draws and their width."""
    fit = dpmc.fit(
        MODEL,
        data,
        epsilon=EPSILON,
        delta=DELTA,
        num_draws=2,
        num_chains=1,
        neighbours=neighbours,
        seed=int(rng.integers(2**32)),
        progress=False,
    )
    steps = [one for one in fit.plan.stages if "gradient_clip_bound" in one]
    # None where noise hides how many rows there are.
    first, last = (steps[i]["gradient_clip_bound"] if steps else 1.0 for i in (0, -1))
    widening = fit.plan.widening[0] if steps else 1.0
    seen = [math.log(first), math.log(last), fit.draws.mean(), math.log(widening)]
    return np.array([fit.plan.details["num_rows"], *seen])


def audit(neighbours: str) -> dpmc.AuditResult:
    claim = {"mu": GaussianBudget.of(EPSILON, DELTA).mu, "delta": DELTA}
    without = rows(SHORT) if neighbours == "replace" else rows(BEYOND)[:-1]
    return dpmc.audit(
        functools.partial(mechanism, neighbours),
        without,
        rows(BEYOND),
        num_runs=RUNS,
        confidence=CONFIDENCE,
        seed=1,
        **claim,
    )


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_a_fit_claims_no_more_than_it_has(neighbours):
    assert not audit(neighbours).violates_claim


def test_a_fit_that_uses_its_number_of_rows_is_found(monkeypatch):
    noisy = Purse.total

    def exact(self, value, cost):
        found, noise = noisy(self, value, cost)
        first = not self.ledger.counts or sum(self.ledger.counts.values()) == 1
        return (value.value, noise) if first else (found, noise)

    monkeypatch.setattr(Purse, "total", exact)
    result = audit("add_remove")
    assert result.violates_claim
    assert result.mu_lower > 1.5 * result.claim_mu


def test_a_fit_whose_counts_have_no_noise_is_found(monkeypatch):
    monkeypatch.setattr(Purse, "count", lambda self, number, cost: number.value)
    result = audit("replace")
    assert result.violates_claim
    assert result.mu_lower > 1.5 * result.claim_mu
