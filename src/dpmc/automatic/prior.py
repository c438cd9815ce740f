"""The prior of a model as a quadratic, and the normal distribution that a search takes for it.

Both are public, by differences of the gradient of the log-prior. A search has to know how far the
parameters may be, and where they stay if the rows say nothing. The curvature of the log-prior tells
for a normal prior. Where a parameter is the spread of others, as in a hierarchy, it misleads: the
density has its mode where the spread is next to nothing, with a curvature beyond all bounds and no
mass. Such parameters, along which the curvature in other directions changes, are placed at the mode
of their marginal density by Laplace's method.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.numerics.compiled import compile_once
from dpmc.types import Array, DpmcError, Model

# Relative step of differences, Newton steps to the mode, how often one is halved, and the spread
# where a prior has none.
STEP = 1e-5
NEWTON_STEPS = 50
HALVINGS = 100
FLAT_SPREAD = 1.0


@dataclass(frozen=True)
class Prior:
    """The prior of a model.

    Parameters
    ----------
    log_density : callable ``(theta) -> float``
    gradient : callable ``(theta) -> ndarray of shape (d,)``
    dim : int
    """

    log_density: Callable[[Array], float]
    gradient: Callable[[Array], Array]
    dim: int

    @classmethod
    def of(cls, model: Model) -> Prior:
        """Prior of a model."""
        density: Any = compile_once(model.log_prior)
        slope: Any = compile_once(model.log_prior_gradient)
        return cls(
            lambda theta: float(density(theta)),
            lambda theta: np.asarray(slope(theta), dtype=np.float64),
            model.dim,
        )

    def precision(self, theta: Array) -> Array:
        """Negative Hessian of the log-prior, its negative eigenvalues set to zero."""
        columns = np.empty((self.dim, self.dim))
        for k in range(self.dim):
            step = np.zeros(self.dim)
            step[k] = STEP * max(1.0, abs(float(theta[k])))
            difference = self.gradient(theta - step) - self.gradient(theta + step)
            columns[:, k] = difference / (2 * step[k])
        symmetric = 0.5 * (columns + columns.T)
        if not np.isfinite(symmetric).all():
            return np.zeros((self.dim, self.dim))
        values, vectors = np.linalg.eigh(symmetric)
        positive: Array = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return positive

    def mode(self, start: Array) -> Array:
        """Mode that Newton's method finds from `start`, by steps that never lose density.

        Along directions in which the density is not concave it follows the gradient.
        """
        theta, best, reach = start.copy(), self.log_density(start), 1.0
        for _ in range(NEWTON_STEPS):
            slope = self.gradient(theta)
            precision = self.precision(theta)
            step = np.linalg.lstsq(precision, slope, rcond=1e-10)[0]
            flat = slope - precision @ step  # what no curvature bends back
            if np.linalg.norm(flat) > 1e-6 * max(1.0, float(np.linalg.norm(slope))):
                step = step + reach * flat / np.linalg.norm(flat)
                reach *= 2
            if not np.isfinite(step).all():
                return start
            for _ in range(HALVINGS):
                found = self.log_density(theta + step)
                if math.isfinite(found) and not found < best - 1e-9 * max(1.0, abs(best)):
                    break
                step, reach = step / 2, max(reach / 2, 1.0)
            else:
                return theta
            theta, best = theta + step, found
            if np.abs(step).max() <= 1e-8 * max(1.0, float(np.abs(theta).max())):
                return theta
        return theta

    def spread(self, theta: Array) -> Array:
        """Basis, shape (d, d), whose steps of length 1 are a standard deviation."""
        values, vectors = np.linalg.eigh(self.precision(theta))
        deviations = np.full(self.dim, FLAT_SPREAD)
        proper = values > 1e-12
        deviations[proper] = values[proper] ** -0.5
        basis: Array = vectors * deviations @ vectors.T
        return basis


def starting_point(model: Model, prior: Prior, start: Array | None) -> Array:
    """First point: `start`, or the mode of the prior."""
    theta = prior.mode(np.zeros(model.dim)) if start is None else np.asarray(start, dtype=float)
    if not np.isfinite(prior.log_density(theta)):
        raise DpmcError(
            f"model {model.name!r}: `log_prior` must be finite where the search starts, at "
            f"{theta.tolist()}: give another `start`"
        )
    return theta


# Deviations in a direction of which the prior says nothing, in its usual spread: far, not infinite.
FARTHEST = 1e6
# Change of curvatures in other directions over one deviation, as a share: of a parameter of scale.
CHANGE = 0.1
# Random places, one deviation away in each direction, at which a normal prior is told from others.
PLACES = 4
# Most steps of the search for the mode of a marginal density.
MOST_STEPS = 200
# Smallest step of that search, in deviations.
SMALLEST = 0.05


@dataclass(frozen=True)
class NormalPrior:
    """A normal distribution, public, proper in all directions.

    Parameters
    ----------
    mean : ndarray of shape (d,)
    precision : ndarray of shape (d, d)
    basis : ndarray of shape (d, d)
        Its columns are steps to begin with: a deviation, and the usual spread where the prior says
        nothing.
    is_exact : bool
        Whether the prior is a normal one, as far as it was looked at.
    """

    mean: Array
    precision: Array
    basis: Array
    is_exact: bool

    @classmethod
    def of(cls, prior: Prior, start: Array) -> NormalPrior:
        """One for a prior, with what is found from `start`."""
        mode = prior.mode(start)
        if not (np.isfinite(mode).all() and np.isfinite(prior.log_density(mode))):
            mode = start
        is_normal = _is_normal(prior, mode)
        mean = mode if is_normal else _mass(prior, mode)
        return cls(mean, proper(prior.precision(mean)), prior.spread(mean), is_normal)

    def gradient(self, theta: Array) -> Array:
        """Gradient of the log-density, shape (d,)."""
        slope: Array = self.precision @ (self.mean - theta)
        return slope

    def length(self, step: Array) -> float:
        """Length of a step in deviations."""
        return math.sqrt(max(0.0, float(step @ self.precision @ step)))


def proper(precision: Array) -> Array:
    """Precision with a deviation, far but finite, where it says nothing."""
    values, vectors = np.linalg.eigh(precision)
    unknown = np.where(values > 1e-12, 0.0, (FARTHEST * FLAT_SPREAD) ** -2)
    filled: Array = precision + (vectors * unknown) @ vectors.T
    return filled


def _is_normal(prior: Prior, mode: Array) -> bool:
    """True for a prior whose curvature is the same elsewhere."""
    here, basis = prior.precision(mode), prior.spread(mode)
    rng = np.random.default_rng(0)  # of public places, the same each time
    for _ in range(PLACES):
        signs = rng.choice([-1.0, 1.0], prior.dim)
        there = prior.precision(mode + basis @ signs)
        if np.abs(basis.T @ (there - here) @ basis).max() > CHANGE:
            return False
    return True


def _mass(prior: Prior, mode: Array) -> Array:
    """Point whose parameters of scale are at the mode of their marginal density."""
    basis = prior.spread(mode)
    usual = np.linalg.eigvalsh(prior.precision(mode)).max()

    def volume(theta: Array, directions: Array) -> float:
        """Half the log-determinant of the curvature in some directions."""
        inside = directions.T @ prior.precision(theta) @ directions
        values = np.linalg.eigvalsh(inside)
        return 0.5 * float(np.sum(np.log(np.maximum(values, 1e-12 * min(usual, 1.0)))))

    scales = []
    for k in range(prior.dim):
        others = np.delete(basis, k, axis=1)
        ends = [volume(mode + sign * basis[:, k], others) for sign in (-1.0, 1.0)]
        if abs(ends[1] - ends[0]) > CHANGE:
            scales.append(k)
    others = np.delete(basis, scales, axis=1)
    if not scales or not others.shape[1]:
        return mode

    def marginal(theta: Array) -> float:
        value = prior.log_density(theta) - volume(theta, others)
        return value if math.isfinite(value) else -math.inf

    return _climb(marginal, mode, basis[:, scales])


def _climb(density: Callable[[Array], float], start: Array, directions: Array) -> Array:
    """Mode of a density along some directions, by steps that grow and shrink."""
    theta, best, size = start, density(start), 1.0
    for _ in range(MOST_STEPS):
        if size < SMALLEST:
            break
        found = False
        for direction in directions.T:
            for step in (size * direction, -size * direction):
                value = density(theta + step)
                if value > best:
                    theta, best, found = theta + step, value, True
        size = 2 * size if found and size < 1 else size if found else size / 2
    return theta
