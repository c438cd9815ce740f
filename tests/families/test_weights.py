"""Weights of rows: a row with one counts as so many rows, to estimates and to widths.

Fits at little noise are compared with those of repeated rows, and with those of statsmodels.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from dpmc.families import general
from dpmc.families.likelihoods import ALL
from dpmc.privacy.budgets import GaussianBudget
from dpmc.rng import stream
from tests.automatic.replay import Recording
from tests.families.test_likelihoods import fitted, simulated

OWN = "linear", "student_t", "logistic", "poisson"


def rows_of(name, num_rows=4000):
    """Return features, responses, what stands beside them, and weights that follow the feature."""
    if name in OWN:
        rng = stream(0, "weights", name)
        x = 50 + 20 * rng.normal(size=(num_rows, 1))
        eta = 0.3 + 0.02 * (x[:, 0] - 50)
        y = {
            "linear": lambda: 100 * (eta + rng.normal(size=num_rows)),
            "student_t": lambda: 100 * (eta + rng.standard_t(4, num_rows)),
            "logistic": lambda: (rng.random(num_rows) < 1 / (1 + np.exp(-eta))) * 1.0,
            "poisson": lambda: rng.poisson(np.exp(eta)) * 1.0,
        }[name]()
        beside = {}
    else:
        x, y, beside = simulated(name, num_rows)
    rng = stream(1, "weights", name)
    weights = 1.0 + rng.integers(3, size=num_rows) * (x[:, 0] > 40)
    return x, y, beside, weights


def moments(fit):
    draws = fit.draws.reshape(-1, len(fit.names))
    return draws.mean(axis=0), draws.std(axis=0)


@pytest.mark.parametrize("name", ALL)
def test_a_row_counts_as_often_as_its_weight_says(name):
    """Means within a quarter of a deviation, widths within a tenth: draws err by a 30th."""
    x, y, beside, weights = rows_of(name)
    times = weights.astype(int)
    copies = {key: np.repeat(one, times) if np.ndim(one) else one for key, one in beside.items()}
    ones = {"weights": np.ones(times.sum())} if name in OWN else {}
    whole = fitted(
        np.repeat(x, times, axis=0), np.repeat(y, times), likelihood=name, **copies, **ones
    )
    # What the columns' units, and the prior with them, are does not depend on weights.
    mean, sd = moments(fitted(x, y, likelihood=name, weights=weights, **beside))
    expected, spread = moments(whole)
    assert np.all(np.abs(mean - expected) < spread / 4)
    assert np.allclose(sd, spread, rtol=0.1)


@pytest.mark.parametrize("name", ["linear", "logistic", "poisson", "gamma"])
def test_weights_are_the_frequencies_of_statsmodels(name):
    x, y, _, weights = rows_of(name)
    family = {
        "linear": sm.families.Gaussian(),
        "logistic": sm.families.Binomial(),
        "poisson": sm.families.Poisson(),
        "gamma": sm.families.Gamma(sm.families.links.Log()),
    }[name]
    mean, sd = moments(fitted(x, y, likelihood=name, weights=weights))
    known = sm.GLM(y, sm.add_constant(x), family=family, freq_weights=weights).fit()
    assert np.all(np.abs(mean[:2] - known.params) < known.bse / 4)
    assert np.allclose(sd[:2], known.bse, rtol=0.15)


def test_a_formula_takes_weights_of_the_table():
    x, y, _, weights = rows_of("gamma", 2000)
    table = pd.DataFrame({"x1": x[:, 0], "y": y, "w": weights})
    given = {"likelihood": "gamma", "epsilon": 50.0}
    by_formula = fitted("y ~ x1", table, weights="w", **given)
    arrays = fitted(x, y, weights=weights, invalid_rows="zero", **given)
    assert np.array_equal(by_formula.draws, arrays.draws)


@pytest.mark.parametrize("name", ["linear", "gamma", "multinomial"])
def test_one_row_costs_no_more_than_the_budget_whatever_its_weight(name, monkeypatch):
    x, y, beside, weights = rows_of(name, 1500)
    budget, seen, answers = GaussianBudget.of(1.0, 1e-6), [], None
    for weight in (weights[3], 1e300, 0.0, -1.0, math.nan):
        ledger = Recording(budget, answers)
        monkeypatch.setattr(general, "Ledger", lambda *given, ledger=ledger: ledger)
        weights[3] = weight
        fit = fitted(
            x, y, likelihood=name, weights=weights, epsilon=1.0, invalid_rows="zero", **beside
        )
        seen.append(fit.draws)
        answers = ledger.transcript if answers is None else answers
        assert answers.cost(ledger.transcript) <= budget.mu**2 * (1 + 1e-9)
        assert np.array_equal(seen[0], fit.draws)
    assert answers.cost(ledger.transcript) > 0
