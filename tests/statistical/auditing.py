"""Chains that an audit can run, seen by an attacker who knows all rows but one."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpmc
from dpmc import registry
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.accountants._whole import mean_loss
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.types import Dataset, Model
from tests.support.clipped import less

# A row that any clip bound here shortens.
HUGE = 1e6
DELTA = 1e-3
# Of one audit; a correct mechanism is found guilty with a probability of at most 1e-3.
CONFIDENCE = 0.999
RUNS, RUNS_COUNTS = 4000, 10_000


class Recording(Ledger):
    """Keeps what was released; with a factor below 1, a fault: its noise is that much smaller."""

    def __init__(self, noise: float = 1.0, only: float | None = None) -> None:
        super().__init__()
        self.noise, self.only = noise, only
        self.noisy: list[Any] = []

    def _factor(self, noise_multiplier: float) -> float:
        return self.noise if self.only in (None, noise_multiplier) else 1.0

    def release(self, clipped, noise_multiplier, *args, **kwargs):
        scaled = less(clipped, self._factor(noise_multiplier))
        self.noisy.append(super().release(scaled, noise_multiplier, *args, **kwargs))
        return self.noisy[-1]

    def release_barker(self, ratio, *args, **kwargs):
        noisy = super().release_barker(ratio, *args, **kwargs)
        self.noisy.append(ratio.value + self.noise * (noisy - ratio.value))
        return self.noisy[-1]

    def noise_block(self, *args, **kwargs):
        return self.noise * super().noise_block(*args, **kwargs)


@functools.cache
def linear_model(dim: int = 1) -> Model:
    """Return a flat prior and a log-likelihood linear in theta: a huge row is always clipped."""
    if dim == 1:
        return _flat("linear", 1, lambda c, x: x[0] * c[0], lambda c, x: (x[0],))
    return _flat("linear", 2, lambda c, x: x[0] * c[0] + x[1] * c[1], lambda c, x: (x[0], x[1]))


@functools.cache
def staying_model() -> Model:
    """Return a model whose chains stay at the origin, where a row says the same of all moves."""
    return Model(
        "staying",
        1,
        lambda c, x: x[0] * c[0] * c[0],
        lambda c, x: (2 * x[0] * c[0],),
        log_prior=lambda theta: -1e12 * theta[0] * theta[0],
        log_prior_gradient=lambda theta: -2e12 * theta,
    )


def _flat(name, dim, log_likelihood, gradient) -> Model:
    return Model(
        name,
        dim,
        log_likelihood,
        gradient,
        log_prior=lambda theta: 0.0 * theta[0],
        log_prior_gradient=lambda theta: 0.0 * theta,
    )


@dataclass
class Transcript:
    """What an attacker sees of chains that start at the origin.

    Parameters
    ----------
    noisy : ndarray of shape (chains, releases)
        Of each chain in order.
    before, proposed, after : ndarray of shape (chains, iterations, d)
        Where an iteration starts, what it proposes, where it ends.
    """

    noisy: np.ndarray
    before: np.ndarray
    proposed: np.ndarray
    after: np.ndarray


class Chains:
    """A method on one data set, ready to run."""

    def __init__(self, method: str, model: Model, rows: Any, iterations: int, **params: Any):
        self.module = registry.load("method", method)
        self.params = registry.parameters(self.module, params)
        x = np.array(rows, dtype=float).reshape(len(rows), -1)
        self.posterior = Posterior(model, Dataset("pair", x))
        self.iterations, self.num_rows = iterations, len(x)
        self.proposed: list[np.ndarray] = []
        log_prior = self.posterior.log_prior

        def recording(theta):
            self.proposed.append(theta.copy())
            return log_prior(theta)

        self.posterior.log_prior = recording
        self.sampler = self.module.sampler(self.posterior, self.params)

    def counts(self, iterations: int | None = None):
        """Return what one chain is said to release."""
        releases = self.module.releases(self.params, self.num_rows)
        return releases.counts(iterations or self.iterations, 1)

    def mu(self, iterations: int | None = None) -> float:
        """Return mu of Gaussian releases from all rows."""
        return math.sqrt(2 * mean_loss(self.counts(iterations)))

    def run(self, size: int, rng: np.random.Generator, ledger: Recording) -> Transcript:
        """Run independent chains."""
        self.proposed.clear()
        start = np.zeros((size, self.posterior.dim))
        streams = Streams(*rng.spawn(3))
        run = self.sampler(start, self.iterations, [streams] * size, ledger)
        after = np.moveaxis(run.draws, 0, 1)
        before = np.concatenate([start[:, None], after[:, :-1]], axis=1)
        proposed = np.empty_like(after)
        if self.proposed:
            shape = (size, self.iterations + 1, self.posterior.dim)
            proposed = np.array(self.proposed).reshape(shape)[:, 1:]
        noisy = np.array([np.ravel(value)[0] for value in ledger.noisy]).reshape(size, -1)
        return Transcript(noisy, before, proposed, after)


def log_ratio(y, data, neighbour):
    """Return the log-likelihood ratio of releases, summed over the last axis.

    `data` and `neighbour` are lists of (weight, mean, standard deviation): of the normal
    distributions that a release has under either.
    """

    def log_density(parts):
        terms = [np.log(weight / sd) - 0.5 * ((y - mean) / sd) ** 2 for weight, mean, sd in parts]
        return np.logaddexp.reduce(terms)

    return (log_density(neighbour) - log_density(data)).sum(axis=-1)


def one_sign(y, sd, q=1.0):
    """Return that ratio for a sum at -1 with probability q, else at 1, against 1 always."""
    data = [(q, -1, sd), (1 - q, 1, sd)] if q < 1 else [(1, -1, sd)]
    return log_ratio(y, data, [(1, 1, sd)])


def audit_chains(pair, statistic, noise=1.0, only=None, seed=1, **claim):
    """Audit the statistic of a transcript."""
    runs = RUNS if "mu" in claim else RUNS_COUNTS

    def mechanism(chains, size, rng):
        return statistic(chains.run(size, rng, Recording(noise, only)))

    return dpmc.audit(mechanism, *pair, num_runs=runs, seed=seed, confidence=CONFIDENCE, **claim)
