"""Means of two equally likely normal components: two modes, one the other with labels swapped."""

import math
from typing import Any

import numpy as np

from dpmc.numerics.compiled import njit
from dpmc.types import Array, Model
from dpmc_league.simulate import generator, rounded
from dpmc_league.task import Task

DIGEST = "4b5a965ab92928cc20d3060b47a692d797d6406e5431bf3368ce8dc7b9608728"
NUM_ROWS, FRESH = 20_000, 2000
TRUTH = 1.0, -1.0
PRIOR_VARIANCE = 10.0


@njit
def _log_likelihood(theta: Any, x: Any) -> Any:
    a, b = x[0] - theta[0], x[0] - theta[1]
    p, q = -0.5 * a * a, -0.5 * b * b
    top = max(p, q)
    return top + math.log1p(math.exp(min(p, q) - top))


@njit
def _gradient(theta: Any, x: Any) -> Any:
    a, b = x[0] - theta[0], x[0] - theta[1]
    share = 1.0 / (1.0 + math.exp(0.5 * (a * a - b * b)))
    return share * a, (1.0 - share) * b


def _log_prior(theta: Array) -> float:
    return -0.5 * float(np.sum(theta**2)) / PRIOR_VARIANCE


def _log_prior_gradient(theta: Array) -> Array:
    return -theta / PRIOR_VARIANCE


def build() -> Task:
    """Task."""
    rng = generator("mixture-2-v1")
    means = np.where(rng.random((NUM_ROWS + FRESH, 1)) < 0.5, *TRUTH)
    x = rounded(means + rng.standard_normal(means.shape))
    return Task(
        name="mixture-2-v1",
        title="mixture of two",
        model=Model("mixture_2", 2, _log_likelihood, _gradient, _log_prior, _log_prior_gradient),
        rows=x[:NUM_ROWS],
        names=("theta_1", "theta_2"),
        bounds={},
        start=np.array([0.5, -0.5]),
        modes=np.array([TRUTH, TRUTH[::-1]]),
        fresh=x[NUM_ROWS:],
    )
