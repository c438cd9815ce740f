"""Autocorrelation times: known ones are found, and short chains are told.

Chains of 400,000 draws: relative errors of the estimates are about 1.3 % or less; limits are
five of that, an error rate below 1e-5 for the file.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from dpmc.diagnostics import autocorrelation as ac


def autoregression(rho: float, num: int, seed: int = 1) -> np.ndarray:
    from scipy.signal import lfilter

    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(num) * math.sqrt(1 - rho**2)
    noise[0] /= math.sqrt(1 - rho**2)
    return lfilter([1.0], [1.0, -rho], noise)


@pytest.mark.parametrize("rho", [0.9, 0.5, 0.0])
def test_both_estimates_find_the_time_of_an_autoregression(rho):
    truth = (1 + rho) / (1 - rho)
    found = ac.autocorrelation_time(autoregression(rho, 400_000))
    assert found.sokal == pytest.approx(truth, rel=0.07)
    assert found.geyer == pytest.approx(truth, rel=0.07)
    assert found.reliable


def test_draws_that_repel_each_other_are_judged_by_geyer():
    """IAC 1/19: Sokal's window closes at lag 1, at a sum of -0.8."""
    found = ac.autocorrelation_time(autoregression(-0.9, 400_000))
    assert found.sokal < 0
    assert found.geyer == pytest.approx(1 / 19, rel=0.2)
    assert found.value == found.geyer


def test_the_spectrum_gives_the_sums_of_the_definition():
    x = autoregression(0.7, 300)
    away = x - x.mean()
    plain = [np.sum(away[: 300 - k] * away[k:]) / 300 for k in range(300)]
    np.testing.assert_allclose(ac.autocovariance(x), plain, atol=1e-12)
    assert ac.autocorrelation(x, 5).shape == (6,)
    assert ac.autocorrelation(x)[0] == 1


def test_the_standard_error_is_that_of_means_of_many_chains():
    """400 chains: their spread is known to 3.5 %, the limit is five of that."""
    means, errors = [], []
    for seed in range(400):
        x = autoregression(0.8, 4000, seed)
        means.append(x.mean())
        errors.append(ac.standard_error(x))
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.18)
    # Without the autocorrelation it would be a third.
    assert np.mean(errors) > 2 * x.std() / math.sqrt(4000)


def test_a_short_chain_is_told():
    with pytest.warns(ac.ShortChainWarning, match="at least 100 times its") as caught:
        found = ac.autocorrelation_time(autoregression(0.99, 2000))
    assert not found.reliable
    assert "\n" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ac.autocorrelation_time(autoregression(0.5, 20_000))


def test_a_chain_that_stands_still_has_no_time():
    found = ac.autocorrelation_time(np.full(1000, 2.0), warn=False)
    assert math.isnan(found.value)
    assert not found.reliable
    assert math.isnan(ac.standard_error(np.full(1000, 2.0), warn=False))


def test_every_chain_and_component_has_its_own_time():
    draws = np.empty((20_000, 2, 2))
    rhos = np.array([[0.9, 0.5], [0.0, 0.8]])
    for seed, place in enumerate(np.ndindex(2, 2)):
        draws[:, *place] = autoregression(rhos[place], 20_000, seed)
    times = ac.autocorrelation_times(draws)
    for place in np.ndindex(2, 2):
        alone = ac.autocorrelation_time(draws[:, *place], warn=False).value
        assert times[place] == alone
    np.testing.assert_allclose(times, (1 + rhos) / (1 - rhos), rtol=0.35)  # six errors of 5.5 %


def test_components_that_stand_still_or_are_not_finite_have_no_time():
    draws = np.random.default_rng(3).normal(size=(50, 1, 3))
    draws[:, 0, 1] = 2.0
    draws[7, 0, 2] = math.nan
    times = ac.autocorrelation_times(draws)
    assert np.isnan(times).tolist() == [[False, True, True]]
    assert np.isnan(ac.autocorrelation_times(draws[:3])).all()
