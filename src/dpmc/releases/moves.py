"""Moves of an ensemble of chains: each steps by a difference of two others.

Differential evolution [ter Braak 2006]: the others are of the other half, which rests, so that
every target is kept exactly. Nothing is tuned, and units of parameters do not matter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpmc.types import Array, DpmcError

# Log-densities of states, shape (k, d), of the chains with the given numbers.
Target = Callable[[Array, np.ndarray], Array]
Prior = Callable[[Array], Array]
# Lengths of a step over the best for a normal target that is as wide as the ensemble.
LENGTHS = 1.0, 0.5, 0.15
BEST = 2.38
JITTER = 1e-5
# Moves from a normal start to the prior, of which the last are a pool to begin with.
PRIOR_MOVES, POOL = 300, 50
MOVES_AT_ONE_TEMPERATURE = 10
LEAST_SHARE = 0.5
MOST_TEMPERATURES = 200


def step(x: Array, heights: Array, target: Target, rng: np.random.Generator) -> float:
    """Move all chains once, in place; share of the moves accepted.

    Parameters
    ----------
    x : ndarray of shape (m, d)
    heights : ndarray of shape (m,)
        Log-densities of x.
    target : callable
    rng : numpy.random.Generator
    """
    num_chains, dim = x.shape
    order, half = rng.permutation(num_chains), num_chains // 2
    accepted = 0
    for mine, others in ((order[:half], order[half:]), (order[half:], order[:half])):
        number, size = len(mine), len(others)
        first = rng.integers(size, size=number)
        second = (first + 1 + rng.integers(size - 1, size=number)) % size
        length = BEST / np.sqrt(2 * dim) * rng.choice(LENGTHS, size=(number, 1))
        noise = JITTER * (x[others].std(axis=0) + 1e-6) * rng.standard_normal((number, dim))
        new = x[mine] + length * (x[others[first]] - x[others[second]]) + noise
        found = target(new, mine)
        with np.errstate(invalid="ignore"):
            up = np.log(rng.random(number)) < found - heights[mine]
        x[mine[up]], heights[mine[up]] = new[up], found[up]
        accepted += int(up.sum())
    return float(accepted / num_chains)


def from_prior(log_prior: Prior, start: Array, rng: np.random.Generator) -> Array:
    """Pool of states from the prior, shape (k, d), by moves of an ensemble from its start."""

    def target(states: Array, _: np.ndarray) -> Array:
        return log_prior(states)

    x = start.copy()
    heights = log_prior(x)
    pool = []
    for number in range(PRIOR_MOVES):
        step(x, heights, target, rng)
        if number >= PRIOR_MOVES - POOL:
            pool.append(x.copy())
    return np.concatenate(pool)


def tempered(
    log_prior: Prior,
    log_likelihood: Prior,
    pool: Array,
    num_chains: int,
    rng: np.random.Generator,
) -> Array:
    """States near those of the posterior, from a pool of the prior, by powers of the likelihood.

    Raises
    ------
    DpmcError
        If the likelihood is zero in all of the pool.
    """
    likelihood = np.concatenate(
        [log_likelihood(part) for part in np.array_split(pool, max(1, len(pool) // num_chains))]
    )
    check_possible(likelihood)
    x, power = pool, 0.0
    for _ in range(MOST_TEMPERATURES):
        rise = _rise(likelihood, 1 - power)
        weights = np.exp(rise * (likelihood - likelihood.max()))
        weights = np.where(np.isfinite(weights), weights, 0.0)
        place = (rng.random() + np.arange(num_chains)) / num_chains
        chosen = np.searchsorted(np.cumsum(weights) / weights.sum(), place)
        x, power = x[np.minimum(chosen, len(x) - 1)].copy(), power + rise

        def target(states: Array, _: np.ndarray, power: float = power) -> Array:
            before = log_prior(states)
            inside = np.isfinite(before)
            found = np.full(len(states), -np.inf)
            found[inside] = before[inside] + power * log_likelihood(states[inside])
            return found

        heights = target(x, np.arange(num_chains))
        for _ in range(MOVES_AT_ONE_TEMPERATURE):
            step(x, heights, target, rng)
        if power >= 1 - 1e-12:
            break
        likelihood = log_likelihood(x)
    return x


def check_possible(heights: Array) -> None:
    """Refuse log-densities that all are of what cannot be."""
    if not np.isfinite(heights).any():
        raise DpmcError(
            "`releases` must be possible under the model: no parameters of its prior were found "
            "that give them a density"
        )


def _rise(likelihood: Array, most: float) -> float:
    """Largest rise of the power that leaves half of the states their weight."""
    finite = likelihood[np.isfinite(likelihood)]

    def share(rise: float) -> float:
        weights = np.exp(rise * (finite - finite.max()))
        return float(weights.sum() ** 2 / (weights @ weights) / len(finite))

    if share(most) >= LEAST_SHARE:
        return most
    low, high = 0.0, most
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if share(middle) >= LEAST_SHARE else (low, middle)
    return max(low, 1e-9)
