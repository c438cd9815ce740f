"""Small models, and short runs of the methods, for the tests of what methods do."""

from __future__ import annotations

import functools
import math

import numpy as np

from dpmc import registry
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.types import Model
from tests.support import posteriors
from tests.support.posteriors import rows

# One model for all tests: its functions are compiled once.
gaussian_model = functools.cache(posteriors.gaussian_model)
banana_model = functools.cache(posteriors.banana_model)

START = np.array([[0.2, -0.1]])
START_3 = np.array([[0.1, 0.2, 0.3]])


@functools.cache
def cauchy_model() -> Model:
    """Return a model that is not linear in its coefficients, with theta and rows as they are."""

    def log_likelihood(c, x):
        return -math.log1p((x[0] - c[0]) ** 2) - math.log1p((x[1] - c[1]) ** 2)

    def gradient(c, x):
        a, b = x[0] - c[0], x[1] - c[1]
        return 2 * a / (1 + a * a), 2 * b / (1 + b * b)

    return Model(
        "cauchy",
        2,
        log_likelihood,
        gradient,
        log_prior=lambda theta: -0.5 * np.sum(theta**2),
        log_prior_gradient=lambda theta: -theta,
    )


@functools.cache
def half_line_model() -> Model:
    """Return a model whose row ratio is not a number at a negative parameter, as its prior says."""
    return Model(
        "half_line",
        1,
        lambda c, x: math.log(c[0]) - c[0] * x[0] * x[0],
        lambda c, x: (1 / c[0] - x[0] * x[0],),
        log_prior=lambda theta: 0.0 if theta[0] > 0 else -math.inf,
        log_prior_gradient=lambda theta: 0.0 * theta,
    )


# What each method of a batch or of noisy gradients is run with here: 60 rows or more.
PARAMS = {
    "dp_barker": {"proposal_sd": 0.1, "batch_size": 20},
    "minibatch_penalty": {
        "proposal_sd": 0.1,
        "batch_size": 20,
        "ratio_noise_multiplier": 0.1,
        "ratio_clip_bound": 2.0,
    },
    "dp_mala": {
        "step_size": 0.1,
        "ratio_noise_multiplier": 0.1,
        "gradient_noise_multiplier": 0.2,
        "gradient_clip_bound": 3.0,
        "ratio_clip_bound": 3.0,
    },
    "dp_hmc": {
        "step_size": 0.1,
        "num_leapfrog_steps": 3,
        "ratio_noise_multiplier": 0.1,
        "gradient_noise_multiplier": 0.2,
        "gradient_clip_bound": 3.0,
        "ratio_clip_bound": 3.0,
    },
}


def run_method(method, model=None, dataset=None, start=START, k=50, ledger=None, **changes):
    """Return the run of a method, and its ledger, with its settings here."""
    module = registry.load("method", method)
    params = registry.parameters(module, PARAMS[method] | changes)
    start = np.asarray(start)
    posterior = Posterior(model or gaussian_model(), dataset or rows("methods", 60, start.shape[1]))
    ledger = ledger or Ledger()
    streams = [Streams.of(1, method, chain) for chain in range(len(start))]
    return module.sampler(posterior, params)(start, k, streams, ledger), ledger
