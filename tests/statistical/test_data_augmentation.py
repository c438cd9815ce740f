"""Data augmentation against the chain for Gaussian features, and by ranks of simulated truths."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpmc.diagnostics.autocorrelation import standard_error
from dpmc.linreg.methods import data_augmentation, mcmc_normal_x
from dpmc.linreg.release import release
from dpmc.linreg.sufficient_statistics import node_statistics
from dpmc.linreg.types import Prior
from dpmc.rng import stream
from tests.support import linreg_releases

pytestmark = pytest.mark.slow

SEED = 20261124
PRIOR = Prior(np.zeros(2), np.eye(2), 3.0, 2.0, 3.0 * np.eye(2), 6.0)


def release_of(num_rows, theta, noise_sd):
    return linreg_releases.release(stream(SEED, "augmentation"), num_rows, theta, noise_sd)


def released(prior, num_rows, bounds, rng):
    """Return a truth of the prior and a release of rows that it made."""
    sd = stats.invwishart.rvs(prior.dof, prior.scale, random_state=rng).reshape(prior.dim, -1)
    theta = rng.multivariate_normal(prior.mean, prior.covariance)
    variance = prior.rate / rng.gamma(prior.shape)
    x = rng.multivariate_normal(np.zeros(prior.dim), sd, num_rows)
    y = x @ theta + math.sqrt(variance) * rng.standard_normal(num_rows)
    sums = node_statistics((x, y), 1, num_rows, bounds)
    return theta, variance, release(sums, *bounds, 2.0, 1e-3, rng, with_u=True)


def test_it_agrees_with_the_chain_for_gaussian_features_where_nothing_is_clipped():
    """Means and mean squares of both coefficients and of the log variance, two nodes.

    Differences within 4.5 standard errors, by autocorrelation times: 4e-5 for all six.
    """
    quiet = release_of((30, 40), np.array([0.7, -0.4]), 6.0)
    one = data_augmentation.fit(
        quiet, PRIOR, data_augmentation.Params(8_000, 1_500), stream(SEED, "one")
    )
    other = mcmc_normal_x.fit(
        quiet, PRIOR, mcmc_normal_x.Params(8_000, 1_500), stream(SEED, "other")
    )

    def apart(found):
        values = [np.column_stack([fit.draws, np.log(fit.variances)]) for fit in (found, other)]
        values = [np.column_stack([each, each**2]) for each in values]
        errors = [[standard_error(c, warn=False) for c in each.T] for each in values]
        difference = values[0].mean(axis=0) - values[1].mean(axis=0)
        return np.abs(difference) / np.hypot(*errors)

    assert apart(one).max() < 4.5
    # Were rows clipped, the law would be another one.
    clipped = data_augmentation.fit(
        quiet, PRIOR, data_augmentation.Params(8_000, 1_500, 0.5, 1.0), stream(SEED, "one")
    )
    assert apart(clipped).max() > 4.5


@pytest.mark.parametrize("aware", [True, False])
def test_truths_have_uniform_ranks_where_rows_are_clipped(aware):
    """120 truths of the prior: Kolmogorov's test of the ranks of a coefficient, error rate 1e-4.

    Half of the rows are beyond the bounds. A chain that does not know of it is found out.
    """
    prior = Prior(np.array([1.0]), np.array([[0.25]]), 6.0, 2.0, np.array([[20.0]]), 20.0)
    bounds = (0.7, 0.8)
    known = dict(zip(("x_bound", "y_bound"), bounds, strict=True)) if aware else {}
    params = data_augmentation.Params(900, 100, **known)
    ranks = []
    for number in range(120):
        rng = stream(SEED, "ranks", number)
        theta, variance, noisy = released(prior, 100, bounds, rng)
        fit = data_augmentation.fit(noisy, prior, params, rng)
        ranks.append([np.mean(fit.draws[:, 0] < theta[0]), np.mean(fit.variances < variance)])
    tails = [stats.kstest(each, "uniform").pvalue for each in np.transpose(ranks)]
    assert min(tails) > 1e-4 if aware else min(tails) < 1e-4
