"""A neural network: two hidden units and one input; 8,000 simulated rows.

y = a_1 tanh(exp(b_1) (x - c_1)) + a_2 tanh(exp(b_2) (x - c_2)) + noise of known size. The prior
puts one unit left and the other right, so that no labels can be swapped.
"""

import math
from typing import Any

import numpy as np

from dpmc.numerics.compiled import njit
from dpmc.types import Array, Model
from dpmc_league.simulate import generator, rounded
from dpmc_league.task import Task

DIGEST = "cbe687e5daf9ba1f54997c027c53474867f67f72e41d95aef2ee2b4afdec8d26"
NUM_ROWS, FRESH = 8_000, 2000
NOISE = 0.5
TRUTH = 1.0, -0.8, 0.4, 0.2, -1.0, 1.2
PRIOR_MEAN = np.array([1.0, -1.0, 0.0, 0.0, -1.0, 1.0])
PRIOR_SD = np.array([0.5, 0.5, 0.5, 0.5, 0.3, 0.3])


@njit
def _log_likelihood(t: Any, z: Any) -> Any:
    u = math.tanh(math.exp(t[2]) * (z[0] - t[4]))
    v = math.tanh(math.exp(t[3]) * (z[0] - t[5]))
    e = (z[1] - t[0] * u - t[1] * v) / NOISE
    return -0.5 * e * e


@njit
def _gradient(t: Any, z: Any) -> Any:
    p, q = math.exp(t[2]), math.exp(t[3])
    u, v = math.tanh(p * (z[0] - t[4])), math.tanh(q * (z[0] - t[5]))
    e = (z[1] - t[0] * u - t[1] * v) / (NOISE * NOISE)
    du, dv = t[0] * p * (1.0 - u * u), t[1] * q * (1.0 - v * v)
    return e * u, e * v, e * du * (z[0] - t[4]), e * dv * (z[0] - t[5]), -e * du, -e * dv


def _log_prior(theta: Array) -> float:
    return -0.5 * float(np.sum(((theta - PRIOR_MEAN) / PRIOR_SD) ** 2))


def _log_prior_gradient(theta: Array) -> Array:
    slope: Array = (PRIOR_MEAN - theta) / PRIOR_SD**2
    return slope


def build() -> Task:
    """Task."""
    rng = generator("network-6-v1")
    x = rng.uniform(-3.0, 3.0, NUM_ROWS + FRESH)
    a1, a2, b1, b2, c1, c2 = TRUTH
    mean = a1 * np.tanh(math.exp(b1) * (x - c1)) + a2 * np.tanh(math.exp(b2) * (x - c2))
    rows = rounded(np.column_stack([x, mean + NOISE * rng.standard_normal(len(x))]))
    return Task(
        name="network-6-v1",
        title="network of two hidden units, d = 6",
        model=Model("network_6", 6, _log_likelihood, _gradient, _log_prior, _log_prior_gradient),
        rows=rows[:NUM_ROWS],
        names=("a_1", "a_2", "b_1", "b_2", "c_1", "c_2"),
        bounds={"input": 3.0},
        start=PRIOR_MEAN,
        fresh=rows[NUM_ROWS:],
    )
