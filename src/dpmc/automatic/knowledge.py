"""The point where a score vanishes, from noisy gradients that were released at several points.

Each release is a noisy linear equation for the mode of the likelihood, as far as the curvature
between the point and the mode is known. All of them are solved at once, each weighted by its noise
and by what curvature that changes, or is itself noisy, does to it over the distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.automatic.curvature import in_basis
from dpmc.automatic.tail import Tail
from dpmc.types import Array

# Change of curvature between two points, as a share, that no measurement shows.
UNSEEN_CHANGE = 0.1
# Standard deviation of what clipping took, as a share of its estimate, common to all measurements:
# a power law extrapolates. A lower clip bound takes more, and asks for a longer extrapolation.
UNCERTAINTY = 0.75
# The same of each measurement by itself: how many rows it clipped.
UNCERTAIN_COUNT = 0.8


@dataclass(frozen=True)
class Measurement:
    """A noisy whitened score, and where it was measured.

    Parameters
    ----------
    theta : ndarray of shape (d,)
        The point.
    score : ndarray of shape (d,)
        ``basis.T @ (gradient of the log-likelihood)`` with noise.
    basis : ndarray of shape (d, d)
    noise : float
        Standard deviation of the noise of each entry.
    clipped : float
        Rows that may have been clipped.
    bound : float
        Clip bound of a row.
    curvature : ndarray of shape (d, d)
        Of the log-likelihood at the point as it was known then, in coordinates of theta.
    """

    theta: Array
    score: Array
    basis: Array
    noise: float
    clipped: float
    bound: float
    curvature: Array


@dataclass(frozen=True)
class Estimate:
    """Root of the score of the likelihood, in steps of a basis from a point.

    Parameters
    ----------
    precision : ndarray of shape (d, d)
        Inverse covariance of the error that privacy noise leaves; singular where nothing is known.
    weighted : ndarray of shape (d,)
        ``precision @ mean``.
    """

    precision: Array
    weighted: Array


def combine(
    measurements: list[Measurement],
    theta: Array,
    basis: Array,
    curvature: Array,
    curvature_noise: float,
    centre: Array,
    tail: Tail,
    bending: float = 0.0,
) -> Estimate:
    """Estimate of all measurements together.

    Parameters
    ----------
    measurements : list of Measurement
    theta, basis : ndarray of shape (d,) and (d, d)
        Where steps start, and what they are in coordinates of theta.
    curvature : ndarray of shape (d, d)
        Whitened curvature of the log-likelihood that is believed.
    curvature_noise : float
        Standard deviation of its entries.
    centre : ndarray of shape (d,)
        Step at which distances to the points are taken: an earlier estimate.
    tail : Tail
        Of row gradients: what clipping took from the scores.
    bending : float
        Change of the curvature over a step of length 1, as a share, that is reckoned with beyond
        the point of the last measurements.
    """
    dim = len(theta)
    eye = np.eye(dim)
    inverse = in_basis(basis, eye)
    # The step, and beside it by how much what clipping took is larger than believed, as a share:
    # the same for all measurements.
    precision, weighted = np.zeros((dim + 1, dim + 1)), np.zeros(dim + 1)
    precision[dim, dim] = UNCERTAINTY**-2
    for one in measurements:
        change = in_basis(one.basis, basis)
        offset = inverse @ (one.theta - theta)
        distance = centre - offset
        squared = float(distance @ distance)
        if not np.array_equal(one.theta, theta):
            bent = 0.5 * (basis.T @ one.curvature @ basis - curvature) @ distance
            error = float(bent @ bent) + UNSEEN_CHANGE**2 * squared
        else:
            error = (0.5 * bending * squared) ** 2
        taken, apart = tail.taken(one.bound, one.basis, one.clipped)
        noise = (one.noise**2 + apart) * change.T @ change + error * eye
        # A symmetric matrix with such packed entries, times the distance.
        noise += 0.5 * curvature_noise**2 * (squared * eye + np.outer(distance, distance))
        if bending:
            noise += _flattened(one, tail, curvature @ distance)
        taken = change.T @ taken
        noise += UNCERTAIN_COUNT**2 * np.outer(taken, taken)
        design = np.column_stack([curvature, -taken])
        gain = design.T @ np.linalg.pinv(noise, rcond=1e-14, hermitian=True)
        precision += gain @ design
        weighted += gain @ (change.T @ one.score + taken + curvature @ offset)
    shared = precision[:dim, dim] / precision[dim, dim]
    return Estimate(
        precision[:dim, :dim] - np.outer(shared, precision[dim, :dim]),
        weighted[:dim] - shared * weighted[dim],
    )


def _flattened(one: Measurement, tail: Tail, slope: Array) -> Array:
    """Covariance of what clipping takes from a slope over a distance.

    A clipped row stays as it is while the point moves. Squared lengths of all row gradients sum up
    to the trace of the curvature: m clipped rows hold the share of m bound^2 of it.
    """
    trace = float(np.sum((one.curvature @ one.basis) * one.basis))
    rows = tail.clipped(tail.size(one.bound, one.basis), one.clipped)
    share = min(1.0, rows * one.bound**2 / trace) if trace > 0 else 1.0
    covariance: Array = share**2 * np.outer(slope, slope)
    return covariance
