"""Columns beside the features: the same answer as without privacy, and no more told of a row."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import dpmc
from dpmc.automatic.glm import kernels, run
from dpmc.automatic.glm.till import Till
from dpmc.privacy.budgets import GaussianBudget
from dpmc.rng import stream
from dpmc.types import Dataset, DpmcError
from tests.automatic.glm.searches import search
from tests.automatic.replay import Recording

MU = 0.8
SLOPES = np.array([0.5, -0.3])
SETTINGS = {"delta": 1e-6, "progress": False, "num_draws": 500, "seed": 1}


def simulated(likelihood, num_rows=20_000, shift=8.0):
    """Return features, a response and an offset that is far from 0 and varies."""
    rng = stream(0, "columns beside", likelihood)
    x = rng.normal(size=(num_rows, 2))
    offset = shift + (
        np.log(rng.gamma(1, 1, num_rows)) if likelihood == "poisson" else x[:, 0] ** 2
    )
    eta = 0.2 - shift + x @ SLOPES + offset
    if likelihood == "poisson":
        return x, rng.poisson(np.exp(eta)) * 1.0, offset
    if likelihood == "logistic":
        return x, (rng.random(num_rows) < 1 / (1 + np.exp(-eta))) * 1.0, offset
    return x, eta + rng.normal(size=num_rows), offset


def without_privacy(likelihood, x, y, offset):
    design = sm.add_constant(x)
    if likelihood == "linear":
        return sm.OLS(y - offset, design).fit()
    kind = sm.families.Poisson() if likelihood == "poisson" else sm.families.Binomial()
    return sm.GLM(y, design, family=kind, offset=offset).fit()


def fitted(x, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        fit = dpmc.regression(x, y, **{"epsilon": 1e4, **SETTINGS, **options})
    return fit, fit.draws.reshape(-1, fit.draws.shape[2])


def agrees(draws, exact):
    """Return whether means are within half a deviation of the estimates, and widths within 15 %."""
    away = (draws.mean(axis=0) - exact.params) / exact.bse
    ratio = draws.std(axis=0) / exact.bse
    return bool(np.all(np.abs(away) < 0.5) and np.all(np.abs(np.log(ratio)) < 0.15))


@pytest.mark.parametrize("likelihood", ["linear", "logistic", "poisson"])
def test_an_offset_is_a_known_part_of_the_predictor(likelihood):
    x, y, offset = simulated(likelihood)
    exact = without_privacy(likelihood, x, y, offset)
    _, draws = fitted(x, y, likelihood=likelihood, offset=offset)
    assert agrees(draws[:, :3], exact)
    _, without = fitted(x, y, likelihood=likelihood)
    assert not agrees(without[:, :3], exact)


def test_an_offset_without_an_intercept():
    x, y, offset = simulated("poisson", shift=0.6)
    design = np.column_stack([np.ones(len(x)), x])
    _, draws = fitted(design, y, likelihood="poisson", offset=offset, intercept=False)
    assert agrees(draws, without_privacy("poisson", x, y, offset))


def test_exposure_is_an_offset_on_the_scale_of_responses():
    x, y, offset = simulated("poisson", 2000, 1.0)
    one, _ = fitted(x, y, likelihood="poisson", offset=offset)
    other, _ = fitted(x, y, likelihood="poisson", exposure=np.exp(offset - 1), offset=np.ones(2000))
    assert np.allclose(one.draws, other.draws, rtol=1e-6)


@pytest.mark.parametrize("likelihood", ["logistic", "poisson"])
@pytest.mark.parametrize("offset", [1e308, -1e308, 0.0, 50.0, -50.0, math.nan, math.inf])
def test_no_offset_tells_more_of_a_row_than_it_is_charged_for(likelihood, offset):
    x, y, known = simulated(likelihood, 400, 1.0)
    first = np.column_stack([x, known, y])
    second = first.copy()
    second[-1] = 3.0, -3.0, offset, 1.0
    for one, other in ((first, second), (second, first)):
        seen = search(likelihood, one, MU, 0, None, "zero", robust=True, offset=True)
        there = search(likelihood, other, MU, 0, seen.transcript, "zero", robust=True, offset=True)
        assert seen.transcript.sensitivities == there.transcript.sensitivities
        exact = zip(seen.transcript.exact, there.transcript.exact, strict=True)
        for (a, b), sensitivity in zip(exact, seen.transcript.sensitivities, strict=True):
            assert np.linalg.norm(a - b) <= sensitivity * (1 + 1e-9)
        assert seen.transcript.cost(there.transcript) <= MU**2 * (1 + 1e-9)


def test_what_is_found_of_offsets_follows_from_what_was_released():
    """Rows with other offsets, and the same answers: the same is found."""
    answers, seen = None, []
    for shift in (1.0, 3.0):
        x, y, known = simulated("poisson", 2000, shift)
        ledger = Recording(GaussianBudget(2.0), answers)
        till = Till(ledger, np.random.default_rng(0))
        dataset = Dataset.of("rows", np.column_stack([x, 2 * known, y]))
        found, frame, *_ = run.search(
            till, dataset, kernels.POISSON, True, None, 4.0, False, offset=True
        )
        seen.append((found.posterior.mean, frame.offset, found.checks))
        answers = ledger.transcript
    for one, other in zip(*seen, strict=True):
        assert str(one) == str(other)


def test_no_warning_tells_of_a_row():
    x, y = np.ones((50, 1)), np.full(50, 1e308)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(DpmcError, match="must hold finite numbers only"):
            dpmc.regression(x, y, offset=-y, epsilon=1.0, delta=1e-6, progress=False)


REFUSED = [
    ({"offset": np.zeros(3)}, "`offset` must have one number for each of 50 rows"),
    ({"exposure": np.ones(50)}, "`exposure` must be None with likelihood 'linear'"),
    ({"likelihood": "poisson", "exposure": np.zeros(50)}, "`exposure` must be positive"),
    ({"likelihood": "poisson", "offset": np.full(50, np.inf)}, "`offset` must hold finite numbers"),
    ({"offset": pd.Series(np.zeros(50), index=range(1, 51))}, "`offset` must have the index of"),
]


@pytest.mark.parametrize(("options", "match"), REFUSED)
def test_columns_that_do_not_fit_are_refused(options, match):
    x = pd.DataFrame(np.ones((50, 1)), columns=["a"])
    with pytest.raises(DpmcError, match=match):
        dpmc.regression(x, np.ones(50), epsilon=1.0, delta=1e-6, progress=False, **options)
