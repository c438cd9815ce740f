"""Means of eight nodes about a common mean, with a spread of their own; 40,000 rows.

A row is (node, value). theta holds the common mean m, the logarithm of the spread s, and the means
of the nodes, each N(m, s^2) under the prior. Exact draws: given s all else is normal, and the
marginal posterior of log s is drawn by quadrature on a line.
"""

import math
from typing import Any

import numpy as np

from dpmc.numerics.compiled import njit
from dpmc.types import Array, Model
from dpmc_league.simulate import generator, rounded
from dpmc_league.task import Task

DIGEST = "bd0099cc72e89e24eedb093e385ca2155bef3f2663ab103bd42c6a4c983ac946"
NUM_NODES, PER_NODE, FRESH = 8, 5000, 2000
MEAN_VARIANCE, LOG_SPREAD_VARIANCE = 4.0, 1.0
NODES = np.arange(NUM_NODES)
# Ends and size of the grid for the logarithm of the spread.
GRID = np.linspace(-6.0, 6.0, 60_001)


# Coefficients: 0, 0, the eight means; features of a row: its value and 1 where its node is.
@njit
def _log_likelihood(theta: Any, z: Any) -> Any:
    total = 0.0
    for k in range(NUM_NODES):
        e = z[0] - theta[2 + k]
        total -= 0.5 * z[1 + k] * e * e
    return total


@njit
def _gradient(t: Any, z: Any) -> Any:
    return (
        0.0 * z[0],
        0.0 * z[0],
        z[1] * (z[0] - t[2]),
        z[2] * (z[0] - t[3]),
        z[3] * (z[0] - t[4]),
        z[4] * (z[0] - t[5]),
        z[5] * (z[0] - t[6]),
        z[6] * (z[0] - t[7]),
        z[7] * (z[0] - t[8]),
        z[8] * (z[0] - t[9]),
    )


def _log_prior(theta: Array) -> float:
    precision = math.exp(-2.0 * theta[1])
    spread = -0.5 * precision * float(np.sum((theta[2:] - theta[0]) ** 2)) - NUM_NODES * theta[1]
    return float(
        spread
        - 0.5 * theta[0] * theta[0] / MEAN_VARIANCE
        - 0.5 * theta[1] * theta[1] / LOG_SPREAD_VARIANCE
    )


def _log_prior_gradient(theta: Array) -> Array:
    precision = math.exp(-2.0 * theta[1])
    off = theta[2:] - theta[0]
    slope = np.empty(2 + NUM_NODES)
    slope[0] = precision * np.sum(off) - theta[0] / MEAN_VARIANCE
    slope[1] = precision * np.sum(off**2) - NUM_NODES - theta[1] / LOG_SPREAD_VARIANCE
    slope[2:] = -precision * off
    return slope


def _features(x: Array) -> Array:
    return np.concatenate([x[:, 1:].T, (NODES[:, None] == x[:, :1].T).astype(np.float64)])


def sample(x: Array, size: int, rng: np.random.Generator) -> Array:
    """Exact draws, shape (size, 10)."""
    means = np.array([x[x[:, 0] == k, 1].mean() for k in NODES])
    counts = np.array([np.count_nonzero(x[:, 0] == k) for k in NODES])
    # Node means are N(m, v) with v = s^2 + 1 / n; m is integrated out.
    v = np.exp(2 * GRID)[:, None] + 1 / counts
    precision = np.sum(1 / v, axis=1) + 1 / MEAN_VARIANCE
    centre = np.sum(means / v, axis=1) / precision
    log_density = 0.5 * (
        precision * centre**2
        - np.sum(means**2 / v, axis=1)
        - np.sum(np.log(v), axis=1)
        - np.log(precision)
        - GRID**2 / LOG_SPREAD_VARIANCE
    )
    density = np.exp(log_density - log_density.max())
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    log_spread = np.interp(rng.random(size) * cumulative[-1], cumulative, GRID)
    v = np.exp(2 * log_spread)[:, None] + 1 / counts
    precision = np.sum(1 / v, axis=1) + 1 / MEAN_VARIANCE
    common = np.sum(means / v, axis=1) / precision
    common = common + rng.standard_normal(size) / np.sqrt(precision)
    within = counts + np.exp(-2 * log_spread)[:, None]
    centres = (counts * means + (np.exp(-2 * log_spread) * common)[:, None]) / within
    nodes = centres + rng.standard_normal((size, NUM_NODES)) / np.sqrt(within)
    return np.column_stack([common, log_spread, nodes])


def build() -> Task:
    """Task."""
    rng = generator("hierarchical-10-v1")
    centres = 0.5 + 0.8 * rng.standard_normal(NUM_NODES)
    node = np.concatenate([np.repeat(NODES, PER_NODE), np.arange(FRESH) % NUM_NODES])
    x = rounded(np.column_stack([node, centres[node] + rng.standard_normal(len(node))]))
    model = Model(
        "hierarchical",
        2 + NUM_NODES,
        _log_likelihood,
        _gradient,
        _log_prior,
        _log_prior_gradient,
        features=_features,
        example_rows=np.column_stack([np.arange(48) % NUM_NODES, np.linspace(-2, 2, 48)]),
    )
    first = NUM_NODES * PER_NODE
    return Task(
        name="hierarchical-10-v1",
        title="means of eight nodes, d = 10",
        model=model,
        rows=x[:first],
        names=("mean", "log_spread", *(f"node_{k + 1}" for k in NODES)),
        bounds={},
        start=np.zeros(2 + NUM_NODES),
        fresh=x[first:],
        sample=sample,
    )
