"""The curvature of a log-likelihood from noisy ones, released in several bases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.types import Array

# Least variance of gradients over the multiple of the curvature that it is about, and by how much
# directions differ in it, as a share.
LEAST_RATIO, VARIED = 0.5, 0.5
# Part of an eigenvalue within the noise that is left for inference, over its square and the reach
# of the noise.
WITHIN_NOISE = 0.3


@dataclass(frozen=True)
class NoisyCurvature:
    """A released curvature of the log-likelihood.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
        Whitened by `basis`, with noise.
    noise : float
        Standard deviation of its packed entries.
    basis : ndarray of shape (d, d)
    """

    matrix: Array
    noise: float
    basis: Array


@dataclass(frozen=True)
class Curvature:
    """The curvature that is believed, in the basis of the last release.

    Parameters
    ----------
    values, vectors : ndarray of shape (d,) and (d, d)
        Its eigenvalues, noise and all, and their vectors.
    noise : float
        Standard deviation of its entries.
    """

    values: Array
    vectors: Array
    noise: float

    @property
    def floor(self) -> float:
        """Size of the eigenvalues of the noise alone."""
        return self.noise * float(np.sqrt(len(self.values)))

    @property
    def reach(self) -> float:
        """Largest eigenvalue of the noise alone, d being large: below, nothing is known.

        Entries of the noise beside the diagonal are smaller by sqrt(2) than those on it.
        """
        return float(np.sqrt(2.0)) * self.floor

    @property
    def matrix(self) -> Array:
        """Curvature as it was released, noise and all."""
        return self._with(self.values)

    def for_steps(self) -> Array:
        """Curvature with the size of eigenvalues, of at least the floor.

        Steps are rather too short, and climb where the log-likelihood bends upwards.
        """
        return self._with(np.maximum(np.abs(self.values), self.floor))

    def for_inference(self) -> Array:
        """Curvature with eigenvalues shrunk by what noise adds to them: widths are rather large.

        A direction whose curvature drowns in noise is one that the release says nothing of, and
        the prior has the word. One eigenvalue e above all others is seen as v = e + r^2 / (4 e), r
        being the reach of the noise, and sqrt(v^2 - r^2) has the least squared error. Several of a
        size are spread by noise, and not raised: less is taken, sqrt(v^2 - r^4 / v^2), which is
        nothing at the reach as well.
        """
        values = np.maximum(self.values, 0.0)
        within = np.minimum(values, self.reach) ** 2 * WITHIN_NOISE / self.reach
        lost = self.reach**2 / np.maximum(values, self.reach)
        beyond = np.sqrt(np.maximum(values**2 - lost**2, 0.0))
        return self._with(np.maximum(beyond, within))

    def _with(self, values: Array) -> Array:
        matrix: Array = (self.vectors * values) @ self.vectors.T
        return matrix


def in_basis(basis: Array, other: Array) -> Array:
    """Return ``basis^-1 @ other``, by least squares where no double tells the columns apart."""
    try:
        return np.asarray(np.linalg.solve(basis, other), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(basis, other, rcond=None)[0], dtype=np.float64)


def combine(released: list[NoisyCurvature]) -> Curvature:
    """Average of the last release and those before it.

    An earlier one counts by its noise and by how far it is from the last one, beyond what noise
    explains: curvature changes as the point moves.
    """
    last = released[-1]
    total, weight = last.matrix / last.noise**2, last.noise**-2
    for one in released[:-1]:
        change = in_basis(one.basis, last.basis)
        matrix = change.T @ one.matrix @ change
        noise = one.noise * float(np.linalg.norm(change, 2)) ** 2
        moved = max(0.0, float(np.mean((matrix - last.matrix) ** 2)) - noise**2 - last.noise**2)
        share = 1 / (noise**2 + moved)
        total = total + share * matrix
        weight += share
    values, vectors = np.linalg.eigh(total / weight)
    return Curvature(values, vectors, float(weight**-0.5))


def spread(noisy: Array, noise: float, curvature: Array) -> Array:
    """Covariance of gradients, of rows or persons, as far as noise lets know.

    What noise hides of it is a multiple of the curvature, as it is of gradients that vary by the
    same factor in all directions.

    Parameters
    ----------
    noisy : ndarray of shape (d, d)
        Released sum of outer products.
    noise : float
        Standard deviation of its diagonal entries.
    curvature : ndarray of shape (d, d)
        Positive definite.
    """
    dim = len(noisy)
    ratio = max(float(np.trace(noisy)) / max(float(np.trace(curvature)), 1e-300), LEAST_RATIO)
    usual = ratio * curvature
    expected = VARIED * float(np.trace(usual)) / dim
    known = expected**2 / (expected**2 + noise**2 / 2)
    least = LEAST_RATIO * float(np.linalg.eigvalsh(usual)[0])
    values, vectors = np.linalg.eigh(usual + known * (noisy - usual))
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T, dtype=np.float64)
