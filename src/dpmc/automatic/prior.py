"""The prior of a model as a quadratic around a point: public, by differences of its gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.numerics.compiled import compile_once
from dpmc.types import Array, DpmcError, Model

# Relative step of differences, Newton steps to the mode, and the spread where a prior has none.
STEP = 1e-5
MOST_STEPS = 50
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
        """Return the prior of a model."""
        density: Any = compile_once(model.log_prior)
        slope: Any = compile_once(model.log_prior_gradient)
        return cls(
            lambda theta: float(density(theta)),
            lambda theta: np.asarray(slope(theta), dtype=np.float64),
            model.dim,
        )

    def precision(self, theta: Array) -> Array:
        """Return the negative Hessian of the log-prior, its negative eigenvalues set to zero."""
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
        """Return the mode that Newton's method finds from `start`; `start` of a flat prior."""
        theta = start.copy()
        for _ in range(MOST_STEPS):
            slope = self.gradient(theta)
            step = np.linalg.lstsq(self.precision(theta), slope, rcond=1e-10)[0]
            if not np.isfinite(step).all():
                return start
            theta = theta + step
            if np.abs(step).max() <= 1e-8 * max(1.0, float(np.abs(theta).max())):
                return theta
        return theta

    def spread(self, theta: Array) -> Array:
        """Return a basis, shape (d, d), whose steps of length 1 are a standard deviation."""
        values, vectors = np.linalg.eigh(self.precision(theta))
        deviations = np.full(self.dim, FLAT_SPREAD)
        proper = values > 1e-12
        deviations[proper] = values[proper] ** -0.5
        basis: Array = vectors * deviations
        return basis


def starting_point(model: Model, prior: Prior, start: Array | None) -> Array:
    """Return where to begin: `start`, or the mode of the prior.

    Raises
    ------
    DpmcError
        If the prior is zero there.
    """
    theta = prior.mode(np.zeros(model.dim)) if start is None else np.asarray(start, dtype=float)
    if not np.isfinite(prior.log_density(theta)):
        raise DpmcError(
            f"model {model.name!r}: `log_prior` must be finite where the search starts, at "
            f"{theta.tolist()}: give another `start`"
        )
    return theta
