"""The example of a model: what only its author can know. To copy to ``tests/models/``."""

import numpy as np
import poisson_rate  # after copying: from dpmc.models import poisson_rate
import pytest
from scipy import stats

import dpmc
from dpmc.mcmc.posterior import Posterior
from dpmc.types import Dataset


def test_ratios_are_those_of_scipy():
    rows = np.resize(poisson_rate.EXAMPLE_ROWS, (40, 2))
    model = poisson_rate.build(poisson_rate.EXAMPLE)
    old, new = np.array([0.2, -0.3]), np.array([-0.1, 0.4])

    def log_density(theta):
        return stats.poisson(np.exp(theta[0] + theta[1] * rows[:, 1])).logpmf(rows[:, 0]).sum()

    ratio, _ = Posterior(model, Dataset("rows", rows)).sums.ratio(old, new, np.inf)
    assert ratio == pytest.approx(log_density(new) - log_density(old), rel=1e-9)


def test_a_prior_without_spread_is_refused():
    with pytest.raises(dpmc.DpmcError, match="`prior_variance` must be positive"):
        poisson_rate.Params(0.0)
