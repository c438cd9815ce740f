"""Normal likelihoods as they are known through noise, times a normal prior."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpmc.types import Array

ITERATIONS = 4


@dataclass(frozen=True)
class Normal:
    """A normal distribution of coefficients.

    Parameters
    ----------
    mean : ndarray of shape (d,)
    precision : ndarray of shape (d, d)
    """

    mean: Array
    precision: Array

    def covariance(self) -> Array:
        """Return its covariance, shape (d, d)."""
        inverse = np.linalg.pinv(self.precision, rcond=1e-14, hermitian=True)
        return np.asarray((inverse + inverse.T) / 2, dtype=np.float64)

    def through(self, matrix: Array, offset: Array) -> Normal:
        """Return the distribution of x for ``matrix @ x + offset`` of this one."""
        precision = matrix.T @ self.precision @ matrix
        mean = np.linalg.solve(matrix, self.mean - offset)
        return Normal(mean, (precision + precision.T) / 2)


@dataclass(frozen=True)
class Observed:
    """What was released of the likelihood at one point.

    Parameters
    ----------
    point : ndarray of shape (d,)
    gradient : ndarray of shape (d,)
        With noise.
    noise : float
        Standard deviation of an entry.
    curvature : ndarray of shape (d, d)
    wrong : float
        Standard deviation by which an entry of it may be wrong.
    share : float
        Covariance of the gradient over data sets, relative to the curvature.
    robust : ndarray of shape (d, d), optional
        This covariance, where it was released.
    bend : float
        Unexpected change of the curvature over a step of length 1, as a share of it.
    inferred : callable
        Gives the curvature that second moments let expect at a point.
    """

    point: Array
    gradient: Array
    noise: float
    curvature: Array
    wrong: float
    share: float
    robust: Array | None
    bend: float
    inferred: Callable[[Array], Array]

    def posterior(self, prior: Normal) -> Normal:
        """Return the posterior given a prior.

        The gradient is the mean curvature on the way to the mode times the distance, but for the
        error of the rows, noise, and what is wrong or bent with the curvature over the distance,
        which are independent. What noise hides of the likelihood is thereby left to the prior.
        """
        step = np.zeros(len(self.point))
        found = prior
        for _ in range(ITERATIONS):
            mean = self._with(self.changed(0.5 * step), step, prior).mean
            step = mean - self.point
            found = Normal(mean, self._with(self.changed(step), step, prior).precision)
        return found

    def _with(self, curvature: Array, step: Array, prior: Normal) -> Normal:
        """Return the posterior for one curvature, after a step of some length."""
        observed = self.gradient + curvature @ self.point
        distance = float(step @ step)
        bent = self.bend * (curvature @ step) * math.sqrt(distance)
        covariance = self.robust if self.robust is not None else self.share * curvature
        variance = self.noise**2 + self.wrong**2 * distance
        covariance = covariance + variance * np.eye(len(step)) + np.outer(bent, bent)
        weight = curvature @ np.linalg.solve(covariance, np.eye(len(step)))
        precision = weight @ curvature + prior.precision
        precision = (precision + precision.T) / 2
        mean = np.linalg.solve(precision, weight @ observed + prior.precision @ prior.mean)
        return Normal(mean, precision)

    def times(self, factor: float) -> Observed:
        """Return what was released of this log-likelihood times a factor."""
        robust = None if self.robust is None else factor**2 * self.robust
        return replace(
            self,
            gradient=factor * self.gradient,
            noise=factor * self.noise,
            curvature=factor * self.curvature,
            wrong=factor * self.wrong,
            robust=robust,
            inferred=lambda place: factor * self.inferred(place),
        )

    def changed(self, step: Array) -> Array:
        """Return the curvature after a step, as far as second moments let expect it."""
        return positive(self.curvature + self.inferred(self.point + step) - self.inferred(self.point))


def positive(matrix: Array) -> Array:
    """Return a symmetric matrix with eigenvalues below zero set to zero."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T, dtype=np.float64)
