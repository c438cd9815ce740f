"""MCMC-fixedS: theta and sigma_y^2, each S_j held at the nearest positive semi-definite matrix.

[alparslan2023thesis, Algorithm 17]. With S_j = E_j D_j E_j' everything is in terms of the
eigenvalues h = sigma_y^2 D_j + v_z of M_j: no matrix is factored but P, and that only where
sigma_y^2 has changed. ``fixed_s`` of ``tests/reference/regression_posterior.py`` has the same
posterior by quadrature.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from dpmc.linreg.gibbs import common as gibbs
from dpmc.linreg.gibbs.common import GibbsParams
from dpmc.linreg.gibbs.conditionals import (
    WALK_ACCEPTANCE,
    PriorTerms,
    accepts,
    adapted,
    coefficient_mean,
    draw_coefficients,
    finite,
    log_variance_prior,
    probability,
    propose_variance,
)
from dpmc.linreg.types import NoisyStatistics, Prior, Regression
from dpmc.numerics.compiled import kept
from dpmc.numerics.small_matrices import compiled, copy_matrix, copy_vector, spectrum

STATISTICS: Literal["sz", "szu", "own", "exact"] = "sz"

FAILURES = ("", "the precision of theta is not positive definite", "a draw is not finite")


Params = GibbsParams


class FixedSSettings(NamedTuple):
    """Settings as compiled code reads them."""

    num_iterations: int
    burn_in: int
    log_move: bool
    adapted_for: int


class Spectra(NamedTuple):
    """Eigenvalues and eigenvectors of each S_j, and z in that basis."""

    vectors: Any  # (J, d, d): row l of node j is eigenvector l
    values: Any  # (J, d)
    z: Any  # (J, d)
    z_variance: float
    diagonal: bool  # whether P is diagonal and the basis is that of the one node

    @classmethod
    def of(cls, noisy: NoisyStatistics, ridge: float, diagonal: bool) -> Spectra:
        """Take the spectrum of psd(Shat_j) + ridge * I."""
        values, vectors = spectrum(noisy.s)
        rows = np.ascontiguousarray(np.swapaxes(vectors, 1, 2))
        z = np.einsum("jlk,jk->jl", rows, noisy.z)
        return cls(rows, values + ridge, z, float(noisy.z_sd) ** 2, diagonal)


@compiled
def update_mean(
    spectra: Any, prior: Any, variance: float, precision: Any, shift: Any, factor: Any, mean: Any
) -> bool:
    """Write the factor of P and its mean; return False if P is not positive definite."""
    nodes, dim = spectra.values.shape
    copy_matrix(prior.precision, precision)
    copy_vector(prior.shift, shift)
    for j in range(nodes):
        for m in range(dim):
            value = spectra.values[j, m]
            weight = value / (variance * value + spectra.z_variance)
            pull = weight * spectra.z[j, m]
            if spectra.diagonal:
                precision[m, m] += weight * value
                shift[m] += pull
                continue
            for i in range(dim):
                entry = spectra.vectors[j, m, i]
                shift[i] += pull * entry
                entry *= weight * value
                for k in range(i + 1):
                    precision[i, k] += entry * spectra.vectors[j, m, k]
    if not spectra.diagonal:
        return bool(coefficient_mean(precision, shift, factor, mean))
    for m in range(dim):
        if not 0.0 < precision[m, m] < math.inf:
            return False
        factor[m, m] = math.sqrt(precision[m, m])
        mean[m] = shift[m] / precision[m, m]
    return True


@compiled
def draw_theta(spectra: Any, mean: Any, factor: Any, rng: Any, theta: Any) -> None:
    """Draw theta ~ N(mean, P^-1)."""
    if not spectra.diagonal:
        draw_coefficients(mean, factor, rng, theta)
        return
    for m in range(theta.size):
        theta[m] = mean[m] + rng.standard_normal() / factor[m, m]


@compiled
def residuals(spectra: Any, theta: Any, out: Any) -> None:
    """Write ``z - D E' theta`` of every node in its basis."""
    nodes, dim = spectra.values.shape
    for j in range(nodes):
        for m in range(dim):
            projected = 0.0
            if spectra.diagonal:
                projected = theta[m]
            else:
                for i in range(dim):
                    projected += spectra.vectors[j, m, i] * theta[i]
            out[j, m] = spectra.z[j, m] - spectra.values[j, m] * projected


@compiled
def log_target(spectra: Any, prior: Any, residual: Any, variance: float) -> float:
    """Log-density of sigma_y^2 given theta up to a constant."""
    logs, product, squares = 0.0, 1.0, 0.0
    nodes, dim = spectra.values.shape
    for j in range(nodes):
        for m in range(dim):
            h = variance * spectra.values[j, m] + spectra.z_variance
            squares += residual[j, m] ** 2 / h
            product *= h
            # Few logarithms: of products, as long as those stay in range.
            if not 1e-200 < product < 1e200:
                logs += math.log(product)
                product = 1.0
    logs += math.log(product)
    return log_variance_prior(variance, prior.shape, prior.rate) - 0.5 * (logs + squares)


@compiled
def move_variance(
    spectra: Any, prior: Any, residual: Any, variance: float, sd: float, log_move: bool, rng: Any
) -> tuple[float, float]:
    """Sigma_y^2 after a move, the old number if rejected, and the probability."""
    new, log_ratio = propose_variance(variance, sd, log_move, rng)
    if not new > 0.0:
        return variance, 0.0
    log_ratio += log_target(spectra, prior, residual, new)
    log_ratio -= log_target(spectra, prior, residual, variance)
    return (new if accepts(log_ratio, rng) else variance), probability(log_ratio)


@kept
def sample(
    spectra: Any,
    prior: Any,
    settings: Any,
    walk_sd: float,
    variance: float,
    rng: Any,
    draws: Any,
    variances: Any,
) -> tuple[int, int, int, float]:
    """Run a chain.

    Returns
    -------
    failure : int
        Its number, 0 if there is none.
    done : int
        Iterations completed.
    accepted : int
        Moves of sigma_y^2 accepted after burn-in.
    walk_sd : float
        Their step at the end.
    """
    dim = draws.shape[1]
    precision, factor = np.empty((dim, dim)), np.empty((dim, dim))
    mean, shift, theta = np.empty(dim), np.empty(dim), np.empty(dim)
    residual = np.empty(spectra.values.shape)
    changed, accepted, log_sd = True, 0, math.log(walk_sd)
    for i in range(settings.num_iterations):
        if changed and not update_mean(spectra, prior, variance, precision, shift, factor, mean):
            return 1, i, accepted, math.exp(log_sd)
        draw_theta(spectra, mean, factor, rng, theta)
        residuals(spectra, theta, residual)
        old = variance
        variance, chance = move_variance(
            spectra, prior, residual, variance, math.exp(log_sd), settings.log_move, rng
        )
        changed = variance != old
        if i < settings.adapted_for:
            log_sd = adapted(log_sd, chance - WALK_ACCEPTANCE, i + 1)
        if not finite(theta, variance):
            return 2, i, accepted, math.exp(log_sd)
        if i >= settings.burn_in:
            copy_vector(theta, draws[i - settings.burn_in])
            variances[i - settings.burn_in] = variance
            accepted += changed
    return 0, settings.num_iterations, accepted, math.exp(log_sd)


def in_eigenbasis(prior: Prior, vectors: np.ndarray) -> PriorTerms:
    """Prior, whose covariance is a multiple of I, with its mean in another basis."""
    terms = PriorTerms.of(prior)
    return terms._replace(shift=np.ascontiguousarray(vectors @ terms.shift))


def fit(
    noisy: NoisyStatistics, prior: Prior, params: Params, rng: np.random.Generator
) -> Regression:
    """Run one chain.

    Returns
    -------
    Regression
        Diagnostics: the acceptance rate of sigma_y^2 after burn-in, its step at the end, and
        how many eigenvalues of the Shat_j were set to zero.
    """
    gibbs.check_release(noisy, prior)
    covariance = np.asarray(prior.covariance)
    spherical = bool(np.all(covariance == covariance[0, 0] * np.eye(prior.dim)))
    spectra = Spectra.of(noisy, params.ridge, spherical and noisy.num_nodes == 1)
    terms = PriorTerms.of(prior)
    if spectra.diagonal:
        terms = in_eigenbasis(prior, spectra.vectors[0])
    settings = FixedSSettings(
        params.num_iterations, params.burn_in, params.variance_move == "log", params.adapted_for
    )
    kept = params.num_iterations - params.burn_in
    draws, variances = np.empty((kept, prior.dim)), np.empty(kept)
    start = params.first_variance(prior)
    code, done, accepted, walk_sd = sample(
        spectra, terms, settings, params.variance_walk_sd, start, rng, draws, variances
    )
    kept = max(done - params.burn_in, 0)
    draws = draws[:kept] @ spectra.vectors[0] if spectra.diagonal else draws[:kept]
    diagnostics = {
        "acceptance_variance": accepted / max(kept, 1),
        "variance_walk_sd": walk_sd,
        "eigenvalues_projected": float(np.sum(spectra.values <= params.ridge)),
    }
    failure = f"{FAILURES[code]} in iteration {done + 1}" if code else ""
    return gibbs.regression(noisy, draws, variances[:kept], diagnostics, failure)
