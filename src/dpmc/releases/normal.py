"""Sums that count as normal: the central limit theorem for the records, noise as it is.

Laplace noise is normal with a variance that is exponential, and a rounded or clamped value has a
normal one behind it: both are drawn, so that the sums themselves never are.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from dpmc.releases.mechanisms import GEOMETRIC, LAPLACE
from dpmc.releases.problem import Problem
from dpmc.types import Array

# Beside the variances of sums and noise: what rounding errors may take away.
ROUNDING = 1e-12


class NormalSums:
    """Posterior of theta for normal sums, with variances and unrounded values as of chains.

    Parameters
    ----------
    problem : Problem
    level : int
        Rule of integration for the moments of a record.
    num_chains : int

    Attributes
    ----------
    values, variances : ndarray of shape (m, q)
        Noisy sums before they were rounded or clamped, and variances of their noise.
    """

    def __init__(self, problem: Problem, level: int, num_chains: int) -> None:
        self.problem, self.level = problem, level
        low, high, variance, scale = [], [], [], []
        for _, one, mechanism in problem.each():
            ends = mechanism.ends(one.value)
            if mechanism.on_integers:  # half of the way to the next integer
                ends = (
                    np.where(np.isinf(ends[1]), ends[0] - 0.5, ends[0]),
                    np.where(np.isinf(ends[0]), ends[1] + 0.5, ends[1]),
                )
            low.append(ends[0])
            high.append(ends[1])
            variance.append(np.broadcast_to(mechanism.variance(), one.size))
            heavy = mechanism.name in (LAPLACE, GEOMETRIC)
            scale.append(np.sqrt(variance[-1] / 2) if heavy else np.zeros(one.size))
        self._low, self._high = np.concatenate(low), np.concatenate(high)
        self._scale = np.concatenate(scale)
        self._open = np.flatnonzero(self._low < self._high)
        self.values = np.tile(problem.values, (num_chains, 1))
        self.variances = np.tile(np.concatenate(variance), (num_chains, 1))

    def log_likelihood(self, x: Array) -> Array:
        """Log-density of states, shape (m, dim), for values and variances as they began."""
        return self._log_likelihood(x, np.zeros(len(x), dtype=np.int64))

    def log_density(self, x: Array, chains: np.ndarray) -> Array:
        """Log-density of states of chains, up to a constant."""
        before = self.problem.log_prior(x)
        inside = np.isfinite(before)
        found = np.full(len(x), -np.inf)
        found[inside] = before[inside] + self._log_likelihood(x[inside], chains[inside])
        return found

    def _log_likelihood(self, x: Array, chains: np.ndarray) -> Array:
        mean, covariance = self._of_values(x, chains)
        good = np.isfinite(mean).all(axis=1) & np.isfinite(covariance).all(axis=(1, 2))
        covariance[~good] = np.eye(mean.shape[1])
        root = np.linalg.cholesky(covariance)
        with np.errstate(invalid="ignore"):
            scaled = np.linalg.solve(root, (self.values[chains] - mean)[..., None])[..., 0]
        found = -0.5 * (scaled**2).sum(axis=1)
        found -= np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        return np.where(good, found, -np.inf)

    def _of_values(self, x: Array, chains: np.ndarray) -> tuple[Array, Array]:
        """Mean and covariance of the noisy sums before they were rounded or clamped."""
        theta, number = self.problem.split(x)
        mean, covariance, _ = self.problem.records.moments(theta, self.level)
        with np.errstate(over="ignore", invalid="ignore"):
            total = number[:, None, None] * covariance
            total += np.eye(mean.shape[1]) * self.variances[chains][:, None, :]
            # Against rounding errors of moments that are far from 0.
            size = np.diagonal(total, axis1=1, axis2=2)
            total += np.eye(mean.shape[1]) * (ROUNDING * size)[:, None, :]
            return number[:, None] * mean, total

    def distance(self, x: Array) -> Array:
        """Standard deviations, shape (m,), of releases from the means of states, shape (m, dim)."""
        mean, covariance = self._of_values(x, np.arange(len(x)))
        good = np.isfinite(mean).all(axis=1) & np.isfinite(covariance).all(axis=(1, 2))
        covariance[~good] = np.eye(mean.shape[1])
        missed = np.clip(mean, self._low, self._high) - mean
        scaled = np.linalg.solve(np.linalg.cholesky(covariance), missed[..., None])[..., 0]
        return np.where(good, np.sqrt((scaled**2).sum(axis=1)), np.inf)

    def update(self, x: Array, rng: np.random.Generator) -> None:
        """Draw values and variances of all chains, given their states."""
        if not len(self._open) and not self._scale.any():
            return
        mean, covariance = self._of_values(x, np.arange(len(x)))
        precision = np.asarray(np.linalg.inv(covariance), dtype=float)
        for j in self._open:
            rest = self.values - mean
            rest[:, j] = 0.0
            inside = precision[:, j, j]
            centre = mean[:, j] - (precision[:, j] * rest).sum(axis=1) / inside
            sd = 1 / np.sqrt(inside)
            low, high = (self._low[j] - centre) / sd, (self._high[j] - centre) / sd
            self.values[:, j] = centre + sd * truncated(low, high, rng)
        heavy = np.flatnonzero(self._scale)
        if len(heavy):
            error = self._error(mean, covariance, precision, rng)[:, heavy]
            scale = self._scale[heavy]
            with np.errstate(divide="ignore"):
                centre = np.minimum(1 / (scale * np.abs(error)), 1e12 / scale**2)
            inverse = rng.wald(centre, 1 / scale**2)
            self.variances[:, heavy] = 1 / np.maximum(inverse, 1e-300)

    def _error(
        self, mean: Array, covariance: Array, precision: Array, rng: np.random.Generator
    ) -> Array:
        """Draws of the noise given noisy sums: a draw of both, corrected by what it misses."""
        noise = np.sqrt(self.variances) * rng.standard_normal(mean.shape)
        diagonal = np.eye(mean.shape[1]) * self.variances[:, None, :]
        sizes, axes = np.linalg.eigh(covariance - diagonal)
        loose = np.sqrt(np.maximum(sizes, 0.0)) * rng.standard_normal(mean.shape)
        sums = (axes @ loose[..., None])[..., 0]
        missed = self.values - mean - sums - noise
        return np.asarray(noise + self.variances * (precision @ missed[..., None])[..., 0])


def truncated(low: Array, high: Array, rng: np.random.Generator) -> Array:
    """Standard normal draws between ends, which may be far out."""
    flip = low > -high
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        bottom, top = log_ndtr(a), log_ndtr(b)
        share = np.log1p(-np.exp(bottom - top))
        drawn = top + np.logaddexp(bottom - top, np.log(rng.random(len(a))) + share)
    found = np.clip(ndtri_exp(drawn), a, b)
    return np.asarray(np.where(flip, -found, found))
