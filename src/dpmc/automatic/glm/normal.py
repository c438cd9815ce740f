"""Normal likelihoods as they are known through noise, times a normal prior."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpmc.types import Array

ITERATIONS = 10
# Squared distance to the mode, at most, that a wrong curvature is multiplied by beside a step.
FARTHEST = 4.0


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
        """Its covariance, shape (d, d)."""
        size = 1 / np.sqrt(np.diag(self.precision))
        scaled = _inverse(self.precision * np.outer(size, size))
        return np.asarray(scaled * np.outer(size, size), dtype=np.float64)

    def through(self, matrix: Array, offset: Array) -> Normal:
        """Distribution of x for ``matrix @ x + offset`` of this one."""
        precision = matrix.T @ self.precision @ matrix
        mean = np.asarray(np.linalg.solve(matrix, self.mean - offset), dtype=np.float64)
        return Normal(mean, (precision + precision.T) / 2)


@dataclass(frozen=True)
class Observed:
    """Releases of the likelihood at one point.

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

    def times(self, factor: float) -> Observed:
        """Releases of this log-likelihood times a factor."""
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

    def of_more(self, factor: float) -> Observed:
        """Likelihood of more rows, of which these are drawn at random."""
        scaled = self.times(factor)
        sampled = (factor - 1) * self.share * float(np.trace(scaled.curvature)) / len(self.point)
        return replace(scaled, noise=math.sqrt(scaled.noise**2 + sampled))

    def changed(self, step: Array) -> Array:
        """Curvature after a step, as far as second moments let expect it."""
        return positive(
            self.curvature + self.inferred(self.point + step) - self.inferred(self.point)
        )


def posterior(stages: Sequence[Observed], priors: Sequence[Normal]) -> Normal:
    """Posterior given what was released at several points, under one of some priors.

    Which of them it is, is as unknown as the coefficients: the posterior is the normal one with
    the mean and the covariance of the mixture. The first prior is the widest.

    Each gradient is the mean curvature on the way to the mode times the distance, but for noise
    and for what is wrong or bent with the curvature over the distance: equations for the mode of
    the likelihood, with independent errors. The error of the rows is that of the mode. What noise
    hides of the likelihood is thereby left to the prior.
    """
    last, prior = stages[-1], priors[0]
    found, unsure = Normal(last.point, prior.precision), 0.0
    centre = last.point
    for _ in range(ITERATIONS):
        # Half the way: what is discounted for its distance decides the distance.
        centre = (centre + found.mean) / 2
        information, weighted = np.zeros_like(prior.precision), np.zeros_like(prior.mean)
        for stage in stages:
            step = centre - stage.point
            curvature = stage.changed(0.5 * step)
            distance = float(step @ step)
            variance = stage.noise**2 + stage.wrong**2 * (distance + unsure)
            bent = stage.bend * (curvature @ step) * math.sqrt(distance)
            # The inverse of a multiple of the identity and a product of one vector.
            inverse = np.eye(len(step)) - np.outer(bent, bent) / (variance + float(bent @ bent))
            weight = curvature @ inverse / variance
            information += weight @ curvature
            weighted += weight @ (stage.gradient + curvature @ stage.point)
        here = last.changed(centre - last.point)
        rows = here / last.share if last.robust is None else here @ _inverse(last.robust) @ here
        share = information @ _inverse(information + rows)
        found = _mixed(information - share @ information, weighted - share @ weighted, priors)
        unsure = min(float(np.trace(found.covariance())), FARTHEST)
    return found


def _mixed(information: Array, weighted: Array, priors: Sequence[Normal]) -> Normal:
    """Posterior for a normal likelihood, given as its precision and times its mode."""
    found, logs = [], []
    for prior in priors:
        precision = information + prior.precision
        precision = (precision + precision.T) / 2
        whole = weighted + prior.precision @ prior.mean
        mean = np.asarray(np.linalg.solve(precision, whole), dtype=np.float64)
        found.append(Normal(mean, precision))
        sizes = np.linalg.slogdet(prior.precision)[1] - np.linalg.slogdet(precision)[1]
        logs.append(0.5 * float(sizes + whole @ mean - prior.mean @ prior.precision @ prior.mean))
    if len(found) == 1:
        return found[0]
    chances = np.exp(np.array(logs) - max(logs))
    chances /= chances.sum()
    mean = np.asarray(chances @ np.array([one.mean for one in found]), dtype=np.float64)
    covariance = np.zeros_like(information)
    for chance, one in zip(chances, found, strict=True):
        covariance += chance * (one.covariance() + np.outer(one.mean - mean, one.mean - mean))
    return Normal(mean, Normal(mean, covariance).covariance())


def _inverse(matrix: Array) -> Array:
    inverse = np.linalg.pinv((matrix + matrix.T) / 2, rcond=1e-13, hermitian=True)
    return np.asarray(inverse, dtype=np.float64)


def positive(matrix: Array) -> Array:
    """Symmetric matrix with eigenvalues below zero set to zero."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T, dtype=np.float64)
