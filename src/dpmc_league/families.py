"""Families that several tasks belong to: the mean of a Gaussian, and bananas."""

from __future__ import annotations

import math

import numpy as np

from dpmc.models import banana, gaussian_mean
from dpmc.types import Array
from dpmc_league.simulate import generator, rounded
from dpmc_league.task import Statistic, Task

FRESH = 2000
# How far beyond the root mean square length of a whitened row the public ball reaches.
REACH = 4.5


def gaussian(name: str, dim: int, num_rows: int) -> Task:
    """Mean of a Gaussian whose known covariance falls off as 2^-|i - j|.

    Rows lie in a public ball about the origin, in coordinates where the covariance is the identity:
    a summary is clipped to it, which for these rows clips none.
    """
    rng = generator(name)
    index = np.arange(dim)
    covariance = 0.5 ** np.abs(index[:, None] - index)
    root = np.linalg.cholesky(covariance)
    mean = 0.5 * np.cos(index)
    x = rounded(mean + rng.standard_normal((num_rows + FRESH, dim)) @ root.T)
    prior_variance = 100.0
    model = gaussian_mean.build(
        gaussian_mean.Params(dim, covariance.tolist(), prior_variance=prior_variance)
    )
    whitener = np.linalg.inv(root)
    radius = math.sqrt(dim) + REACH
    rows = x[:num_rows]

    def draw(value: Array, variance: float, size: int, rng: np.random.Generator) -> Array:
        """Draws of theta given a whitened mean with independent errors."""
        precision = whitener.T @ whitener / (1 / num_rows + variance)
        posterior = np.linalg.inv(precision + np.eye(dim) / prior_variance)
        centre = posterior @ (precision @ (root @ value))
        normal: Array = rng.standard_normal((size, dim)) @ np.linalg.cholesky(posterior).T
        return centre + normal

    return Task(
        name=name,
        title=f"mean of a Gaussian in {dim} dimensions",
        model=model,
        rows=rows,
        names=tuple(f"theta_{k + 1}" for k in range(dim)),
        bounds={"radius": radius},
        start=np.zeros(dim),
        fresh=x[num_rows:],
        statistic=Statistic(
            summaries=lambda x: x @ whitener.T,
            bound=radius,
            draw=draw,
            exact_spread=1 / math.sqrt(num_rows),
            transform=lambda means: means @ root.T,
        ),
        shape=root / math.sqrt(num_rows),
        sample=lambda x, size, rng: draw((x @ whitener.T).mean(axis=0), 0.0, size, rng),
    )


def bent(name: str, title: str, params: banana.Params, num_rows: int, truth: Array) -> Task:
    """Banana: a Gaussian mean whose second coordinate is bent along the first."""
    rng = generator(name)
    deviations = np.sqrt(np.asarray(params.variances, dtype=np.float64))
    dim, a = len(deviations), params.curvature
    means = truth.copy()
    means[1] += a * truth[0] ** 2
    x = rounded(means + deviations * rng.standard_normal((num_rows + FRESH, dim)))
    model = banana.build(params)
    radius = math.sqrt(dim) + REACH + 1.0
    variance_of_mean = 1 / (params.tempering * num_rows)

    def bend(values: Array) -> Array:
        thetas = values * deviations
        thetas[:, 1] -= a * thetas[:, 0] ** 2
        return thetas

    def draw(value: Array, variance: float, size: int, rng: np.random.Generator) -> Array:
        """Draws given a mean in units of the deviations of a row."""
        error = variance_of_mean + variance
        precision = 1 / error + deviations**2 / params.prior_variance
        normal = rng.standard_normal((size, dim)) / np.sqrt(precision)
        return bend(value / error / precision + normal)

    return Task(
        name=name,
        title=title,
        model=model,
        rows=x[:num_rows],
        names=tuple(f"theta_{k + 1}" for k in range(dim)),
        bounds={"radius": radius},
        start=np.zeros(dim),
        fresh=x[num_rows:],
        statistic=Statistic(
            summaries=lambda x: x / deviations,
            bound=radius,
            draw=draw,
            exact_spread=math.sqrt(variance_of_mean),
            transform=bend,
        ),
        sample=lambda x, size, rng: draw((x / deviations).mean(axis=0), 0.0, size, rng),
    )
