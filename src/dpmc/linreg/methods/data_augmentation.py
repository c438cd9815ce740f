"""Data augmentation: the posterior given a release, with every private row as an unknown.

One sweep draws the covariance of features, coefficients and noise variance given rows, and then
proposes each row anew from its law given these, accepted by the ratio of the density of what was
released [Ju, Awan, Gong and Rao 2022, Algorithm 1]. Nothing is approximated: rows that were clipped
are clipped in the sums, as they were. It is what the other methods are to be judged by; its time
grows with the rows, and its chains are slow where noise is small beside what a row contributes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpmc import checks
from dpmc.linreg.gibbs import common as gibbs
from dpmc.linreg.gibbs.conditionals import accepts, beliefs_of, draw_features, draw_independent
from dpmc.linreg.release_terms import upper
from dpmc.linreg.types import NoisyStatistics, Prior, Regression
from dpmc.numerics.small_matrices import compiled, psd

STATISTICS: Literal["sz", "szu", "own", "exact"] = "szu"


@dataclass(frozen=True)
class Params:
    """Settings of data augmentation.

    Parameters
    ----------
    num_iterations : int
        All sweeps.
    burn_in : int
        The first of them, whose draws are not returned.
    x_bound, y_bound : float, optional
        What norms of features and absolute responses were clipped to; None says that no row was.
    """

    num_iterations: int = 10_000
    burn_in: int = 5_000
    x_bound: float | None = None
    y_bound: float | None = None

    def __post_init__(self) -> None:
        checks.at_least("burn_in", self.burn_in, 0)
        checks.at_least("num_iterations", self.num_iterations, self.burn_in + 1)
        checks.positive("x_bound", self.x_bound, optional=True)
        checks.positive("y_bound", self.y_bound, optional=True)


def fit(
    noisy: NoisyStatistics, prior: Prior, params: Params, rng: np.random.Generator
) -> Regression:
    """Run one chain.

    Returns
    -------
    Regression
        Diagnostics: the acceptance rate of rows after burn-in.
    """
    gibbs.check_release(noisy, prior)
    dim, sizes = prior.dim, np.asarray(noisy.num_rows, dtype=np.int64)
    blocks = [upper(noisy.s), noisy.z]
    sds = [float(noisy.s_sd)] * blocks[0].shape[1] + [float(noisy.z_sd)] * dim
    if noisy.u is not None:
        blocks.append(noisy.u[:, None])
        sds.append(float(noisy.u_sd))
    released, weights = np.concatenate(blocks, axis=1), np.array(sds) ** -2.0
    x_bound, y_bound = params.x_bound or math.inf, params.y_bound or math.inf
    nodes = np.repeat(np.arange(len(sizes)), sizes)

    beliefs = beliefs_of(prior, conjugate=False)
    covariance = (psd(noisy.s.sum(axis=0)) + prior.scale) / len(nodes)
    factor = np.linalg.cholesky(covariance)
    theta = np.array(prior.mean, dtype=np.float64)
    variance = prior.rate / (prior.shape + 1)
    x = rng.standard_normal((len(nodes), dim)) @ factor.T
    y = x @ theta + math.sqrt(variance) * rng.standard_normal(len(nodes))
    sums, left = np.empty((len(nodes), len(sds))), np.array(released)
    _summarise(x, y, x_bound, y_bound, sums)
    np.subtract.at(left, nodes, sums)
    kept = params.num_iterations - params.burn_in
    draws, variances, accepted = np.empty((kept, dim)), np.empty(kept), 0
    scratch = np.empty(dim), np.empty((1, dim)), np.empty(1), np.empty((1, len(sds)))
    for step in range(-params.burn_in, kept):
        s, z, u = x.T @ x, x.T @ y, float(y @ y)
        draw_features(s, len(y), beliefs, rng, covariance)
        variance, _ = draw_independent(s, z, u, len(y), variance, beliefs, rng, theta)
        moved = _sweep(
            x,
            y,
            sums,
            nodes,
            left,
            weights,
            np.linalg.cholesky(covariance),
            theta,
            math.sqrt(variance),
            x_bound,
            y_bound,
            rng,
            *scratch,
        )
        if step >= 0:
            draws[step], variances[step] = theta, variance
            accepted += moved
    rate = accepted / (kept * len(nodes))
    return gibbs.regression(noisy, draws, variances, {"acceptance_rows": rate})


@compiled
def _summarise(x: Any, y: Any, x_bound: float, y_bound: float, out: Any) -> None:
    """Write what each row adds to S, z and u after it is clipped."""
    rows, dim = x.shape
    for i in range(rows):
        norm = 0.0
        for k in range(dim):
            norm += x[i, k] * x[i, k]
        norm = math.sqrt(norm)
        scale = x_bound / norm if norm > x_bound else 1.0
        response = min(max(y[i], -y_bound), y_bound)
        place = 0
        for k in range(dim):
            for m in range(k, dim):
                out[i, place] = scale * x[i, k] * scale * x[i, m]
                place += 1
        for k in range(dim):
            out[i, place] = scale * x[i, k] * response
            place += 1
        if place < out.shape[1]:
            out[i, place] = response * response


@compiled
def _sweep(
    x: Any,
    y: Any,
    sums: Any,
    nodes: Any,
    left: Any,
    weights: Any,
    factor: Any,
    theta: Any,
    sd: float,
    x_bound: float,
    y_bound: float,
    rng: Any,
    normal: Any,
    new_x: Any,
    new_y: Any,
    new_sums: Any,
) -> int:
    """Propose every row anew; `left` is what was released less the sums of each node."""
    rows, dim = x.shape
    accepted = 0
    for i in range(rows):
        for k in range(dim):
            normal[k] = rng.standard_normal()
        mean = 0.0
        for k in range(dim):
            value = 0.0
            for m in range(dim):
                value += factor[k, m] * normal[m]
            new_x[0, k] = value
            mean += value * theta[k]
        new_y[0] = mean + sd * rng.standard_normal()
        _summarise(new_x, new_y, x_bound, y_bound, new_sums)
        node, ratio = nodes[i], 0.0
        for k in range(len(weights)):
            change = new_sums[0, k] - sums[i, k]
            ratio += weights[k] * change * (left[node, k] - 0.5 * change)
        if accepts(ratio, rng):
            accepted += 1
            y[i] = new_y[0]
            for k in range(dim):
                x[i, k] = new_x[0, k]
            for k in range(len(weights)):
                left[node, k] -= new_sums[0, k] - sums[i, k]
                sums[i, k] = new_sums[0, k]
    return accepted
