"""Algorithms 6, 7 and 8 of [alparslan2023thesis]: Fisher information by importance sampling.

All three estimate the score gamma(y) of a released y by Fisher's identity: the mean score of
latent draws, weighted by the density of y given each, and normalised by the sum of the weights.
F is the mean of gamma^2 over simulated y. The square adds the variance of gamma, which is of
order 1 / M, and normalised weights shrink gamma: two biases of opposite sign. The product of
gammas from two halves of the draws is free of the first only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpmc import checks
from dpmc.numerics.compiled import kept
from dpmc.statsel.fisher import order_statistics
from dpmc.statsel.moments import Moments
from dpmc.statsel.order_draws import BASE_DISTRIBUTIONS, Order
from dpmc.statsel.types import Population, Statistic, plain
from dpmc.types import Array, DpmcError

# Latent numbers that are held at once.
_HELD = 2_000_000
ESTIMATORS = ("squared", "halves")


class LatentDraws(NamedTuple):
    """Latent draws: where each puts y, the Laplace scale of its noise, and its score.

    Parameters
    ----------
    location, scale, score : ndarray of one shape
        Centre and scale of the noisy y, and derivative of the log-density of the draw by theta.
    """

    location: Array
    scale: Array
    score: Array


class LatentSampler(NamedTuple):
    """Source of latent draws.

    Parameters
    ----------
    draw : callable ``(rng, shape) -> LatentDraws``
        Makes independent latent draws.
    cost : int
        Random numbers that one draw takes.
    """

    draw: Callable[[np.random.Generator, tuple[int, int]], LatentDraws]
    cost: int = 1


@dataclass(frozen=True)
class MonteCarloSizes:
    """Monte Carlo sizes and which estimate to take.

    Parameters
    ----------
    num_outer : int
        Simulated y: N of the thesis, which gives no number.
    num_inner : int
        Latent draws for each y: M of the thesis.
    estimator : {"squared", "halves"}
        The square of gamma, as published, or the product of two halves.
    shared : bool
        Whether all y share their latent draws; as published they do not.
    """

    num_outer: int = 10000
    num_inner: int = 100
    estimator: str = "squared"
    shared: bool = False


@kept
def scores(y: Any, location: Any, scale: Any, score: Any, halves: bool, out: Any) -> None:
    """Write the square of each estimated score, or the product of two halves, to `out`.

    Parameters
    ----------
    y, out : ndarray of shape (b,)
        Simulated releases, and their squared or multiplied scores.
    location, scale, score : ndarray of shape (b, m) or (1, m)
        One row of latent draws for each y, or one for all.
    halves : bool
        Multiply the scores of two halves of the latent draws.
    """
    m = location.shape[1]
    num_halves = 2 if halves else 1
    for i in range(y.size):
        row = i if location.shape[0] > 1 else 0
        product = 1.0
        for part in range(num_halves):
            first, last = part * m // num_halves, (part + 1) * m // num_halves
            highest = -math.inf
            for j in range(first, last):
                highest = max(highest, -abs(y[i] - location[row, j]) / scale[row, j])
            weights, total = 0.0, 0.0
            for j in range(first, last):
                log_weight = -abs(y[i] - location[row, j]) / scale[row, j]
                weight = math.exp(log_weight - highest) / scale[row, j]
                weights += weight
                total += weight * score[row, j]
            product *= total / weights
        out[i] = product if halves else product * product


def estimate(
    sampler: LatentSampler, sizes: MonteCarloSizes, rng: np.random.Generator
) -> tuple[float, float]:
    """Mean over y, and its standard error.

    `sizes`: Monte Carlo sizes, and the estimator.

    `value`, `se`: the standard error is that of independent y: too small where they share latent
    draws.
    """
    checks.one_of("estimator", sizes.estimator, ESTIMATORS)
    halves = sizes.estimator == "halves"
    checks.at_least("num_outer", sizes.num_outer, 2)
    checks.at_least("num_inner", sizes.num_inner, 2 if halves else 1)
    products = np.empty(sizes.num_outer)
    common = _draw(sampler, sizes.num_inner, rng) if sizes.shared else None
    block = max(1, _HELD // (sizes.num_inner * sampler.cost))
    for first in range(0, sizes.num_outer, block):
        block_products = products[first : first + block]
        hidden = sampler.draw(rng, (block_products.size, 1))
        y = (hidden.location + rng.laplace(size=(block_products.size, 1)) * hidden.scale)[:, 0]
        latent = common or sampler.draw(rng, (block_products.size, sizes.num_inner))
        scores(y, latent.location, latent.scale, latent.score, halves, block_products)
    return float(products.mean()), float(products.std(ddof=1) / math.sqrt(products.size))


def _draw(sampler: LatentSampler, number: int, rng: np.random.Generator) -> LatentDraws:
    """One row of latent draws, drawn in blocks."""
    block = max(1, _HELD // sampler.cost)
    blocks = [
        sampler.draw(rng, (1, min(block, number - first))) for first in range(0, number, block)
    ]
    return LatentDraws(*(np.concatenate(entry, axis=1) for entry in zip(*blocks, strict=True)))


def of_mean(moments: Moments, theta: float, num_rows: int, scale: float) -> LatentSampler:
    """Latent draws of Algorithm 6: means, normal by the central limit theorem.

    `scale`: of the Laplace noise.
    """
    mean = float(plain(moments.mean)(theta))
    variance = float(plain(moments.variance)(theta)) / num_rows
    d_mean = float(plain(moments.d_mean)(theta))
    d_variance = float(plain(moments.d_variance)(theta)) / num_rows
    sd = math.sqrt(variance)

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> LatentDraws:
        z = rng.standard_normal(shape)
        score = z * d_mean / sd + (z * z - 1) * d_variance / (2 * variance)
        return LatentDraws(mean + sd * z, np.full(shape, scale), score)

    return LatentSampler(draw)


def of_data(
    population: Population, statistic: Statistic, order: Order, theta: float
) -> LatentSampler:
    """Latent draws of Algorithm 7: data sets, with the score of all their records.

    The density of y given a data set has the scale of its noise, which differs between them.

    `statistic`: an order statistic. `order`: it and its noise.
    """
    score_of = _score(population)

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> LatentDraws:
        z = population.draw_base(rng, (shape[0] * shape[1], order.num))
        total = score_of(plain(population.generate)(theta, z), theta).sum(axis=1)
        ordered = np.sort(
            np.abs(z) if BASE_DISTRIBUTIONS[order.distribution] == "folded_normal" else z, axis=1
        )
        value, scale = order_statistics.release(population, statistic, order, theta, ordered)
        return LatentDraws(value.reshape(shape), scale.reshape(shape), total.reshape(shape))

    return LatentSampler(draw, order.num)


def of_record(
    population: Population, statistic: Statistic, theta: float, scale: float
) -> LatentSampler:
    """Latent draws of Algorithm 8: single records, whose F is of one of them."""
    score_of = _score(population)
    low, high = population.support

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> LatentDraws:
        x = plain(population.generate)(theta, population.draw_base(rng, shape))
        s = plain(statistic.transform)(np.clip(x, low, high))
        return LatentDraws(s, np.full(shape, scale), score_of(x, theta))

    return LatentSampler(draw)


def _score(population: Population) -> Callable[..., Array]:
    if population.score is None:
        raise DpmcError(
            f"`population` must have a score, got {population.name!r}, whose support moves with "
            "theta"
        )
    score: Callable[..., Array] = plain(population.score)
    return score
