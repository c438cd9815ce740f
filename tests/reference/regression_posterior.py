"""Posteriors by quadrature, free of any chain: what the samplers are held against.

With the S_j fixed, theta is Gaussian given sigma_y^2 and can be integrated out, which leaves
one dimension. With Gaussian features of dimension one and a single node, Sigma_x and theta
can, which leaves S and sigma_y^2. Grids are in logarithms; integrands vanish at their ends, so
that sums over evenly spaced points are as good as any rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmc import checks
from dpmc.linreg.gibbs import common as gibbs
from dpmc.linreg.gibbs.conditionals import PriorTerms
from dpmc.linreg.types import NoisyStatistics, Prior
from dpmc.numerics.small_matrices import psd
from dpmc.types import Array, DpmcError

# What is below exp(-CUT) of the highest point of a density does not count.
CUT = 45.0
# Of log sigma_y^2 about its prior mean, where a first look goes, and in how many points.
REACH, COARSE = 40.0, 400


@dataclass(frozen=True)
class FixedS:
    """The posterior of MCMC-fixedS, a mixture over sigma_y^2.

    Parameters
    ----------
    variances : ndarray of shape (m,)
        Points of sigma_y^2, evenly spaced in logarithms.
    weights : ndarray of shape (m,)
        Their posterior probabilities.
    means : ndarray of shape (m, d)
        Mean of theta given each.
    covariances : ndarray of shape (m, d, d)
        Covariance of theta given each.
    """

    variances: Array
    weights: Array
    means: Array
    covariances: Array

    @property
    def mean(self) -> Array:
        """Posterior mean of theta, shape (d,)."""
        mean: Array = self.weights @ self.means
        return mean

    @property
    def covariance(self) -> Array:
        """Posterior covariance of theta, shape (d, d)."""
        away = self.means - self.mean
        within: Array = np.einsum("m,mik->ik", self.weights, self.covariances)
        return within + (away.T * self.weights) @ away

    @property
    def sd(self) -> Array:
        """Posterior standard deviations of theta, shape (d,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def variance_mean(self) -> float:
        """Posterior mean of sigma_y^2."""
        return float(self.weights @ self.variances)

    @property
    def variance_sd(self) -> float:
        """Posterior standard deviation of sigma_y^2."""
        return math.sqrt(float(self.weights @ (self.variances - self.variance_mean) ** 2))

    def variance_density(self) -> Array:
        """Return the posterior density of sigma_y^2 at `variances`, shape (m,)."""
        spacing = math.log(self.variances[1] / self.variances[0])
        return self.weights / (spacing * self.variances)

    def density(self, component: int, points: Array) -> Array:
        """Return the posterior density of one component of theta at `points`, same shape."""
        centre = self.means[:, component]
        spread = self.covariances[:, component, component]
        squares = (points[..., None] - centre) ** 2 / spread
        return np.exp(-squares / 2) @ (self.weights / np.sqrt(2 * np.pi * spread))


def fixed_s(
    noisy: NoisyStatistics, prior: Prior, ridge: float = 0.0, num_points: int = 400
) -> FixedS:
    """Return the posterior of theta and sigma_y^2 with S_j = psd(Shat_j) + ridge * I.

    Parameters
    ----------
    noisy : NoisyStatistics
    prior : Prior
    ridge : float
    num_points : int
        Points of sigma_y^2, at least 20.

    Raises
    ------
    DpmcError
        If release and prior do not fit or `num_points` is too small.
    """
    gibbs.check_release(noisy, prior)
    checks.at_least("num_points", num_points, 20)
    s = psd(noisy.s) + ridge * np.eye(prior.dim)
    values, vectors = np.linalg.eigh(s)
    z = np.einsum("jkl,jk->jl", vectors, noisy.z).ravel()
    rows = np.swapaxes(vectors, 1, 2).reshape(-1, prior.dim)
    spectrum = (np.maximum(values, 0.0).ravel(), rows, z, float(noisy.z_sd) ** 2)
    centre = math.log(prior.rate / (prior.shape + 1))
    coarse = centre + np.linspace(-REACH, REACH, COARSE)
    found = _mixture(np.exp(coarse), spectrum, prior)[0]
    inside = np.flatnonzero(found > found.max() - CUT)
    first, last = max(inside[0] - 1, 0), min(inside[-1] + 1, COARSE - 1)
    variances = np.exp(np.linspace(coarse[first], coarse[last], num_points))
    log_density, means, covariances = _mixture(variances, spectrum, prior)
    weights = np.exp(log_density - log_density.max())
    return FixedS(variances, weights / weights.sum(), means, covariances)


def _mixture(
    variances: Array, spectrum: tuple[Array, Array, Array, float], prior: Prior
) -> tuple[Array, Array, Array]:
    """Return the log-density of log sigma_y^2, and mean and covariance of theta, at points."""
    values, rows, z, z_variance = spectrum
    terms = PriorTerms.of(prior)
    h = variances[:, None] * values + z_variance
    weighted = rows.T * (values**2 / h)[:, None, :]
    precision = terms.precision + weighted @ rows
    shift = terms.shift + (values * z / h) @ rows
    root = np.linalg.inv(np.linalg.cholesky(precision))
    covariances = np.swapaxes(root, 1, 2) @ root
    means = np.einsum("mik,mk->mi", covariances, shift)
    half_log = np.sum(np.log(np.diagonal(root, axis1=1, axis2=2)), axis=1)
    fitted = np.sum(shift * means, axis=1) - np.sum(z * z / h, axis=1)
    log_prior = -prior.shape * np.log(variances) - prior.rate / variances
    log_density = log_prior + half_log + (fitted - np.sum(np.log(h), axis=1)) / 2
    return log_density, means, covariances


@dataclass(frozen=True)
class NormalX:
    """Posterior means and standard deviations of MCMC-normalX, one feature and one node.

    Parameters
    ----------
    s_mean, s_sd : float
        Of S.
    mean, sd : float
        Of theta.
    variance_mean, variance_sd : float
        Of sigma_y^2.
    """

    s_mean: float
    s_sd: float
    mean: float
    sd: float
    variance_mean: float
    variance_sd: float


def normal_x(noisy: NoisyStatistics, prior: Prior, num_points: int = 400) -> NormalX:
    """Return the posterior moments for one feature and one node, theta and Sigma_x integrated out.

    S has the prior S^((n - 2) / 2) (Lambda + S)^(-(kappa + n) / 2), and zhat given S and
    sigma_y^2 is N(S m, S^2 C + sigma_y^2 S + v_z).

    Parameters
    ----------
    noisy : NoisyStatistics
    prior : Prior
    num_points : int
        Points in each dimension, at least 20.

    Raises
    ------
    DpmcError
        If there is more than one feature or node.
    """
    gibbs.check_release(noisy, prior)
    checks.at_least("num_points", num_points, 20)
    if prior.dim != 1 or noisy.num_nodes != 1:
        raise DpmcError(f"release: {noisy.num_nodes} nodes, {prior.dim} features, allowed 1 and 1")
    size = abs(float(noisy.s[0, 0, 0])) + float(noisy.s_sd)
    centres = math.log(size), math.log(prior.rate / (prior.shape + 1))
    axes = [centre + np.linspace(-REACH, REACH, COARSE) for centre in centres]
    # Twice closer in: the peak can be narrower than the first points are apart.
    for count in (COARSE, COARSE, num_points):
        axes = _closer(_log_density_normal_x(axes[0], axes[1], noisy, prior)[0], axes, count)
    log_density, mean, variance = _log_density_normal_x(axes[0], axes[1], noisy, prior)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    s, y = np.exp(axes[0])[:, None], np.exp(axes[1])[None]
    s_mean, y_mean, theta = (float(np.sum(weights * value)) for value in (s, y, mean))
    spread = float(np.sum(weights * (variance + (mean - theta) ** 2)))
    s_spread = float(np.sum(weights * (s - s_mean) ** 2))
    y_spread = float(np.sum(weights * (y - y_mean) ** 2))
    roots = (math.sqrt(value) for value in (s_spread, spread, y_spread))
    s_sd, sd, y_sd = roots
    return NormalX(s_mean, s_sd, theta, sd, y_mean, y_sd)


def _closer(log_density: Array, axes: list[Array], count: int) -> list[Array]:
    """Return axes of `count` points where the density is not negligible, and a step beyond."""
    found = []
    for which, axis in enumerate(axes):
        highest = log_density.max(axis=1 - which)
        inside = np.flatnonzero(highest > log_density.max() - CUT)
        first, last = max(inside[0] - 1, 0), min(inside[-1] + 1, axis.size - 1)
        found.append(np.linspace(axis[first], axis[last], count))
    return found


def _log_density_normal_x(
    log_s: Array, log_variance: Array, noisy: NoisyStatistics, prior: Prior
) -> tuple[Array, Array, Array]:
    """Return the log-density on a grid of logarithms, and mean and variance of theta there."""
    s, y = np.exp(log_s)[:, None], np.exp(log_variance)[None]
    n, scale = float(noisy.num_rows[0]), float(prior.scale[0, 0])
    m, c = float(prior.mean[0]), float(prior.covariance[0, 0])
    z = float(noisy.z[0, 0])
    h = y * s + float(noisy.z_sd) ** 2
    total = s * s * c + h
    log_density = (
        n / 2 * np.log(s)
        - (prior.dof + n) / 2 * np.log(scale + s)
        - ((float(noisy.s[0, 0, 0]) - s) / float(noisy.s_sd)) ** 2 / 2
        - (np.log(total) + (z - s * m) ** 2 / total) / 2
        - prior.shape * np.log(y)
        - prior.rate / y
    )
    gain = s * c / total
    return log_density, m + gain * (z - s * m), c * h / total
