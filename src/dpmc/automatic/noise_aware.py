"""Draws from the posterior given what was released: the prior, exact, times a noisy likelihood."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmc.automatic.centre import Centre, likelihood
from dpmc.automatic.curvature import in_basis
from dpmc.automatic.prior import NormalPrior, Prior, proper
from dpmc.types import Array

# Newton steps to the mode of the prior times the likelihood as it was released.
MOST_STEPS = 100
# Least share of such a step that is tried where the density does not rise over all of it.
LEAST_SHARE = 1e-12
# Least precision in any direction over the largest: below rounding errors are not far.
ROUNDING = 1e-10


@dataclass(frozen=True)
class NoiseAware:
    """The posterior of theta given what was released.

    The likelihood is normal: what privacy noise adds to the error of the mode is in its
    covariance. The prior is the model's own.

    Parameters
    ----------
    prior : Prior
    origin : ndarray of shape (d,)
        Where steps start.
    basis : ndarray of shape (d, d)
        Steps ``z`` are ``origin + basis @ z``.
    precision : ndarray of shape (d, d)
        Of the likelihood, in steps.
    weighted : ndarray of shape (d,)
        ``precision @ mean`` of the likelihood.
    """

    prior: Prior
    origin: Array
    basis: Array
    precision: Array
    weighted: Array

    @classmethod
    def of(cls, centre: Centre, prior: Prior) -> NoiseAware:
        """Result of a search for the centre."""
        rows = centre.of_rows(centre.curvature.for_inference())
        precision, weighted = likelihood(centre.estimate, rows)
        return cls(prior, centre.theta, centre.basis, precision, weighted)

    @classmethod
    def of_nothing(cls, prior: Prior, start: Array) -> NoiseAware:
        """Knowledge before any row is asked: the prior."""
        normal, dim = NormalPrior.of(prior, start), prior.dim
        return cls(prior, normal.mean, normal.basis, np.zeros((dim, dim)), np.zeros(dim))

    def approximation(self) -> tuple[Array, Array]:
        """Mode and covariance of its normal approximation, in steps."""
        step: Array = np.zeros(len(self.weighted))
        covariance, height = np.zeros_like(self.precision), self._height(step)
        for _ in range(MOST_STEPS):
            theta = self.origin + self.basis @ step
            slope = (
                self.weighted - self.precision @ step + self.basis.T @ self.prior.gradient(theta)
            )
            newer = inverse_of_sum(self.precision, self.prior.precision(theta), self.basis)
            if not (np.isfinite(slope).all() and np.isfinite(newer).all()):
                break
            covariance = newer
            change = covariance @ slope
            share, small = 1.0, 1e-9 * max(1.0, abs(height))
            while not (higher := self._height(step + share * change)) >= height - small:
                share /= 2
                if share < LEAST_SHARE:
                    break
            else:
                step, height = step + share * change, higher
            if np.abs(share * change).max() < 1e-9 * max(1.0, float(np.abs(step).max())):
                break
        return step, covariance

    def against_prior(self) -> tuple[float, float]:
        """Distance of rows and prior, and the move of the posterior by the prior.

        Returns
        -------
        apart : float
            Squared distance between the means of likelihood and prior, in deviations of both:
            chi-squared of d degrees of freedom where parameters are from the prior. Zero for a
            prior that is not normal, which has no such distance.
        pulled : float
            Length of the move from the mean of the likelihood to that of the posterior where rows
            say much more than the prior, in deviations of the posterior.
        """
        normal = NormalPrior.of(self.prior, self.origin)
        if not normal.is_exact:
            return 0.0, 0.0
        values, vectors = np.linalg.eigh(normal.precision)
        inside = in_basis(self.basis, vectors / np.sqrt(values))
        offset = in_basis(self.basis, self.origin - normal.mean)
        known, axes = np.linalg.eigh(inside.T @ self.precision @ inside)
        known = np.maximum(known, 1e-12)
        mean = axes.T @ (inside.T @ (self.weighted + self.precision @ offset)) / (1 + known)
        apart, pulled = np.sum(mean**2 * (1 + known) / known), np.sum(mean**2 / (1 + known))
        return float(apart), math.sqrt(pulled)

    def _height(self, step: Array) -> float:
        """Log-density of one step; minus infinity where it is not a number."""
        value = float(self.log_densities(step[None])[0])
        return value if math.isfinite(value) else -math.inf

    def log_densities(self, steps: Array) -> Array:
        """Log-densities of steps, shape (m,), up to one constant."""
        quadratic = steps @ self.weighted
        quadratic -= 0.5 * np.einsum("ij,jk,ik->i", steps, self.precision, steps)
        thetas = self.origin + steps @ self.basis.T
        densities: Array = quadratic + [self.prior.log_density(theta) for theta in thetas]
        return densities

    def draws(
        self, num_draws: int, num_chains: int, rng: np.random.Generator
    ) -> tuple[Array, float]:
        """Draws of theta, shape (chains, draws, d), and the share of moves accepted.

        Metropolis-Hastings with independent proposals from the normal approximation: with a normal
        prior each is accepted, and the draws are independent.
        """
        mean, covariance = self.approximation()
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
        out, accepted = np.empty((num_chains, num_draws, len(mean))), 0
        for chain in range(num_chains):
            normal = rng.standard_normal((num_draws + 1, len(mean)))
            steps = mean + normal @ root.T
            weights = self.log_densities(steps) + 0.5 * np.sum(normal**2, axis=1)
            barriers = np.log(rng.random(num_draws))
            current, states = 0, np.empty(num_draws, dtype=np.int64)
            for k in range(num_draws):
                # Not a number compares as false: a chain that began where the prior is zero moves.
                if not barriers[k] >= weights[k + 1] - weights[current]:
                    current = k + 1
                    accepted += 1
                states[k] = current
            out[chain] = self.origin + steps[states] @ self.basis.T
        return out, accepted / (num_draws * num_chains)


def inverse_of_sum(likelihood_precision: Array, prior_precision: Array, basis: Array) -> Array:
    """Inverse of the sum of two precisions, in steps of a basis.

    What is next to nothing beside other directions is no rounding error there: where the rows say
    little the prior has the word.

    Parameters
    ----------
    likelihood_precision : ndarray of shape (d, d)
        In steps.
    prior_precision : ndarray of shape (d, d)
        In coordinates of theta.
    basis : ndarray of shape (d, d)
    """
    both = likelihood_precision + basis.T @ prior_precision @ basis
    if not np.isfinite(both).all():
        return np.full_like(both, math.nan)
    values, vectors = np.linalg.eigh(both)
    root: Array
    if values[0] > ROUNDING * values[-1]:
        root = vectors / np.sqrt(values)
    else:
        # In deviations of the prior the sum is the identity and something that is not negative.
        values, vectors = np.linalg.eigh(proper(prior_precision))
        deviations = in_basis(basis, vectors / np.sqrt(values))
        inside = deviations.T @ likelihood_precision @ deviations
        known, axes = np.linalg.eigh(0.5 * (inside + inside.T))
        root = deviations @ (axes / np.sqrt(1 + np.maximum(known, 0.0)))
    return root @ root.T
