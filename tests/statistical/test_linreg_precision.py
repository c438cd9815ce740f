"""The draw of W in MCMC-normalX has exactly the degrees of freedom and scale of its conditional.

W given all S_j is Wishart with dof nu + sum n_j and scale (Lambda + sum S_j)^-1, so that
tr((Lambda + sum S_j) W) is chi-square with d times as many degrees of freedom, and so is
each diagonal ratio with one d-th of them. Kolmogorov-Smirnov tests at level 1e-7 each: an
error rate below 1e-6 for the file. One degree of freedom more or less has to fail.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpmc.linreg.gibbs.conditionals import WALK_ACCEPTANCE, PriorTerms, ReleasedStatistics
from dpmc.linreg.gibbs.gaussian_moves import Frame
from dpmc.linreg.gibbs.normal_x import NormalXSettings, Tuning, sample
from dpmc.linreg.gibbs.wishart_moves import StatisticsScratch, StatisticsState
from tests.support.linreg_releases import dense_prior, release

pytestmark = pytest.mark.slow

LEVEL = 1e-7
DIM, ROWS, DRAWS = 2, (6, 9), 6000
PRIOR = dense_prior(DIM)
FREEDOM = PRIOR.dof + sum(ROWS)


@pytest.fixture(scope="module")
def drawn() -> tuple[np.ndarray, np.ndarray]:
    """Return draws of W after one iteration from one state, and the matrix of their scale."""
    rng = np.random.default_rng(31)
    noisy = release(rng, ROWS, np.array([0.4, -0.8]), 0.1)
    s = np.array([one + 2.0 * np.eye(DIM) for one in noisy.s])
    assert np.linalg.eigvalsh(s).min() > 0
    settings = NormalXSettings(1, 0, False, True, True, WALK_ACCEPTANCE, 0, 0.0)
    released, terms = ReleasedStatistics.of(noisy), PriorTerms.of(PRIOR)
    frame, scratch = Frame.of(DIM), StatisticsScratch.of(len(ROWS), DIM)
    draws, variances, accepted = np.empty((1, DIM)), np.empty(1), np.zeros(3)
    found = []
    for _ in range(DRAWS):
        state, tuning = StatisticsState.of(s, np.zeros(DIM), 0.5), Tuning.of(released, False, 0.8)
        arguments = (released, terms, settings, tuning, state, frame, scratch)
        assert sample(*arguments, rng, draws, variances, accepted) == (0, 1)
        found.append(state.precision.copy())
    return np.array(found), PRIOR.scale + s.sum(axis=0)


def smallest_p_value(drawn: tuple[np.ndarray, np.ndarray], freedom: float) -> float:
    draws, total = drawn
    traces = np.einsum("ik,nki->n", total, draws)
    ratios = np.einsum("nii->ni", draws) / np.diag(np.linalg.inv(total))
    tests = [stats.kstest(traces, stats.chi2(DIM * freedom).cdf)]
    tests += [stats.kstest(column, stats.chi2(freedom).cdf) for column in ratios.T]
    return min(test.pvalue for test in tests)


def test_the_precision_of_features_has_the_law_of_its_conditional(drawn):
    assert smallest_p_value(drawn, FREEDOM) > LEVEL


@pytest.mark.parametrize("freedom", [FREEDOM - 1, FREEDOM + 1])
def test_one_degree_of_freedom_more_or_less_is_found_out(drawn, freedom):
    assert smallest_p_value(drawn, freedom) < LEVEL
