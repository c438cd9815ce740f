"""Noise on the moments of a Gaussian, or on its natural parameters, and how far it moves it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.types import Array, DpmcError


class Divergences(NamedTuple):
    """Simulated divergences KL(q||p)."""

    values: Array  # (n,): Infinite where p does not exist
    inside: npt.NDArray[np.bool_]  # (n,): whether ``low < 1 + l_1 < high``


@dataclass(frozen=True)
class Perturbation:
    """Noise on the moments of a Gaussian, and the event on which it is bounded.

    Parameters
    ----------
    covariance : ndarray of shape (d, d)
        Sigma, symmetric and positive definite.
    mean_sd, covariance_sd : float
        sigma_1 and sigma_2, finite and > 0.
    low, high : float
        tau in (0, 1) and A > 1, of the event ``tau < 1 + l_1 < A``.
    """

    covariance: Array
    mean_sd: float
    covariance_sd: float
    low: float
    high: float

    def __post_init__(self) -> None:
        _root(self.covariance)
        checks.positive("mean_sd", self.mean_sd)
        checks.positive("covariance_sd", self.covariance_sd)
        if not 0 < self.low < 1:
            raise DpmcError(f"`low` must be in (0, 1), got {self.low}")
        if not 1 < self.high < math.inf:
            raise DpmcError(f"`high` must be a finite number > 1, got {self.high}")

    @property
    def dim(self) -> int:
        """Number of dimensions d."""
        return len(self.covariance)

    @cached_property
    def inverse_root(self) -> Array:
        """Sigma^{-1/2}, symmetric, of shape (d, d)."""
        return np.asarray(np.linalg.inv(_root(self.covariance)), dtype=np.float64)

    @cached_property
    def precision(self) -> Array:
        """M, of shape (d, d)."""
        return self.inverse_root @ self.inverse_root

    @property
    def trace(self) -> float:
        """The trace of M."""
        return float(np.trace(self.precision))

    @property
    def published_variance(self) -> float:
        """The matrix variance v(Z) of the paper, of Z = M E as a Gaussian series.

        ``sigma_2^2 d ||M||^2``, since the squares of the symmetric basis add up to d I.
        """
        norm = float(np.linalg.norm(self.precision, 2))
        return self.covariance_sd**2 * self.dim * norm**2

    @property
    def variance(self) -> float:
        """The matrix variance of Y, which is symmetric: ``||sum of Y_k^2||``, never larger.

        ``sum_k S_k M S_k = tr(M) I + M - diag(M)`` over the symmetric basis S_k.
        """
        m, root = self.precision, self.inverse_root
        middle = self.trace * np.eye(self.dim) + m - np.diag(np.diag(m))
        return self.covariance_sd**2 * float(np.linalg.norm(root @ middle @ root, 2))

    @property
    def trace_variance(self) -> float:
        """The variance of tr Y, which is Gaussian."""
        m = self.precision
        diagonal = float(np.sum(np.diag(m) ** 2))
        return self.covariance_sd**2 * (2 * float(np.sum(m**2)) - diagonal)


def simulate(perturbation: Perturbation, num_draws: int, rng: np.random.Generator) -> Divergences:
    """Draw noise on mean and covariance and return the divergences it makes."""
    checks.at_least("num_draws", num_draws, 1)
    p, root = perturbation, perturbation.inverse_root
    shift = p.mean_sd * rng.standard_normal((num_draws, p.dim)) @ root
    noise = p.covariance_sd * _symmetric(num_draws, p.dim, 1.0, rng)
    values, vectors = np.linalg.eigh(root @ noise @ root)
    shift = np.einsum("nij,ni->nj", vectors, shift)
    smallest = 1 + values[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.log1p(values) - (values - shift**2) / (1 + values)
    divergences = np.where(smallest > 0, 0.5 * each.sum(axis=1), math.inf)
    return Divergences(divergences, (smallest > p.low) & (smallest < p.high))


def simulate_natural(
    covariance: Array, mean: Array, noise_sd: float, num_draws: int, rng: np.random.Generator
) -> Array:
    """Draw noise on natural parameters, as DP-SEP does, and return the divergences it makes.

    Parameters
    ----------
    covariance : ndarray of shape (d, d)
        Covariance of the Gaussian.
    mean : ndarray of shape (d,)
        Of q; the noise on the precision moves the mean too, the more the farther it is from 0.
    noise_sd : float
        On the precision times the mean, and on the precision: on its diagonal, and on its
        other entries times sqrt(2).

    Returns
    -------
    ndarray of shape (num_draws,)
        KL(q||p), infinite where the precision of p is not positive definite.
    """
    root, mean = _root(covariance), np.asarray(mean, dtype=np.float64)
    if mean.shape != (len(root),):
        raise DpmcError(f"`mean` must have shape ({len(root)},), got {mean.shape}")
    if not np.isfinite(mean).all():
        raise DpmcError("`mean` must hold finite numbers only")
    checks.positive("noise_sd", noise_sd)
    checks.at_least("num_draws", num_draws, 1)
    noise = noise_sd * _symmetric(num_draws, len(root), math.sqrt(0.5), rng)
    shift = noise_sd * rng.standard_normal((num_draws, len(root))) - noise @ mean
    values, vectors = np.linalg.eigh(root @ noise @ root)
    shift = np.einsum("nij,ni->nj", vectors, shift @ root)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = values - np.log1p(values) + shift**2 / (1 + values)
    return np.where(values[:, 0] > -1, 0.5 * each.sum(axis=1), math.inf)


def example_covariance(dim: int, rng: np.random.Generator) -> Array:
    """Covariance with eigenvalues from 0.6 to 1.6 in random directions, shape (d, d)."""
    checks.at_least("dim", dim, 1)
    directions = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    covariance = (directions * np.linspace(0.6, 1.6, dim)) @ directions.T
    return np.asarray((covariance + covariance.T) / 2)


def _root(covariance: Array) -> Array:
    """Symmetric square root of a covariance, refusing what is none."""
    sigma = np.asarray(covariance, dtype=np.float64)
    if sigma.ndim != 2 or sigma.shape[0] != sigma.shape[1] or sigma.size == 0:
        raise DpmcError(f"`covariance` must have shape (d, d), got {sigma.shape}")
    if not np.isfinite(sigma).all() or not np.allclose(sigma, sigma.T, rtol=1e-9, atol=0):
        raise DpmcError("`covariance` must be finite and symmetric")
    values, vectors = np.linalg.eigh(sigma)
    if values[0] <= 0:
        raise DpmcError(f"`covariance` must be positive definite, got eigenvalue {values[0]:.3g}")
    return np.asarray((vectors * np.sqrt(values)) @ vectors.T)


def _symmetric(num_draws: int, dim: int, off_diagonal: float, rng: np.random.Generator) -> Array:
    """Symmetric matrices, N(0, 1) on the diagonal and N(0, off_diagonal**2) off it."""
    rows, columns = np.triu_indices(dim)
    entries = rng.standard_normal((num_draws, len(rows))) * np.where(
        rows == columns, 1.0, off_diagonal
    )
    matrices = np.empty((num_draws, dim, dim))
    matrices[:, rows, columns] = entries
    matrices[:, columns, rows] = entries
    return matrices
