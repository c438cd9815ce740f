"""The example of a method: its target, and what its ledger holds. To copy to ``tests/mcmc/``."""

import lazy_walk  # after copying: from dpmc.mcmc.methods import lazy_walk
import numpy as np
import pytest

import dpmc
from dpmc.models import gaussian_mean

ROWS = np.random.default_rng(0).normal(size=(400, 1))
MODEL = gaussian_mean.build(gaussian_mean.Params(1, [[1.0]], prior_variance=100.0))
QUIET = {"num_chains": 2, "seed": 1, "progress": False}


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_a_fit_spends_what_its_plan_holds():
    walk = {"step": 0.05, "ratio_noise_multiplier": 20.0, "ratio_clip_bound": 4.0}
    fit = dpmc.fit(
        MODEL, ROWS, method=lazy_walk, epsilon=4, delta=1e-6, max_iterations=50, **QUIET, **walk
    )
    assert dict(fit.ledger)["gaussian(20.0)"] == 2 * 50
    assert fit.guarantee.epsilon <= 4


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_its_target_is_the_posterior():
    """With noise of 0.2 of a decision. Means within 5 standard errors of 200 independent draws.

    The seed is fixed; for another one a false alarm has a probability of 1e-6, and deviations
    within a fifth are 4 standard errors away.
    """
    loud = {"step": 0.15, "ratio_noise_multiplier": 0.1, "ratio_clip_bound": 6.0}
    fit = dpmc.fit(
        MODEL,
        ROWS,
        method=lazy_walk,
        epsilon=1e7,
        delta=1e-6,
        max_iterations=10_000,
        **QUIET,
        **loud,
    )
    sd = 1 / np.sqrt(len(ROWS) + 0.01)
    kept = fit.kept()
    assert abs(kept.mean() - ROWS.mean()) < 5 * sd / np.sqrt(200)
    assert kept.std() / sd == pytest.approx(1, abs=0.2)
