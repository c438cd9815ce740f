"""Updates of the sums T_j of w w' over the rows of a node, given G and what it released.

Released is T_j with independent noise of variance V_ik on each entry of the upper triangle.
With T_j normal around n_j G, both updates leave its conditional distribution invariant:

- :func:`update_direct` draws from it, with one eigendecomposition of the covariance of all
  D products, shared by the nodes [alparslan2023thesis, section 7.1.2].
- :func:`update_augmented` splits the noise. One part has variance v on the diagonal and
  v / 2 off it, the Gaussian orthogonal ensemble, whose distribution is the same in every
  orthonormal basis. The rest is independent. Given T_j plus the first part, the entries of T_j are
  independent in the eigenbasis of G. No matrix is larger than p x p. Successive T_j correlate
  by at most the largest share of the rest in the noise on an entry: one half where all noise
  has one variance.

:func:`elliptical_slice` turns either into an update under the exact Wishart distribution of T_j.
All functions are compiled; matrices have shape (p, p), with p = d + 1 and w = (x, y).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmc.numerics.small_matrices import cholesky, compiled, congruence, log_determinant
from dpmc.types import Array


@compiled
def joint_covariance(theta: Any, variance: float, features: Any, joint: Any) -> None:
    """Write G, the covariance of (x, y).

    Parameters
    ----------
    theta : ndarray of shape (d,)
        Regression coefficients.
    variance : float
        sigma_y^2.
    features : ndarray of shape (d, d)
        Sigma_x.
    """
    d = theta.size
    last = variance
    for i in range(d):
        cross = 0.0
        for k in range(d):
            joint[i, k] = features[i, k]
            cross += features[i, k] * theta[k]
        joint[i, d] = cross
        joint[d, i] = cross
        last += theta[i] * cross
    joint[d, d] = last


@compiled
def pack(matrix: Any, out: Any) -> None:
    """Write the upper triangle of a matrix, row by row, into `out` of shape (p (p + 1) / 2,)."""
    position = 0
    for i in range(matrix.shape[0]):
        for k in range(i, matrix.shape[0]):
            out[position] = matrix[i, k]
            position += 1


@compiled
def unpack(vector: Any, out: Any) -> None:
    """Fill the symmetric matrix `out` whose upper triangle, row by row, is `vector`."""
    position = 0
    for i in range(out.shape[0]):
        for k in range(i, out.shape[0]):
            out[i, k] = vector[position]
            out[k, i] = vector[position]
            position += 1


@compiled
def product_covariance(joint: Any) -> Any:
    """Covariance of all products of one row, shape (D, D) with D = p (p + 1) / 2.

    Products are w_i w_k with i <= k in the order of :func:`pack`. By the theorem of Isserlis
    Cov(w_i w_k, w_l w_m) = G_il G_km + G_im G_kl.
    """
    p = joint.shape[0]
    size = p * (p + 1) // 2
    covariance = np.empty((size, size))
    row = 0
    for i in range(p):
        for k in range(i, p):
            column = 0
            for left in range(p):
                for right in range(left, p):
                    covariance[row, column] = (
                        joint[i, left] * joint[k, right] + joint[i, right] * joint[k, left]
                    )
                    column += 1
            row += 1
    return covariance


@compiled
def log_density_ratio(sums: Any, count: float, factor: Any) -> float:
    """Log-density ratio of a Wishart to the normal distribution of equal moments.

    Zero at the identity, -inf where `sums` is not positive definite.

    Parameters
    ----------
    sums : ndarray of shape (p, p)
        A T A' / n with A G A' = I: the identity on average.
    count : float
        Rows n of the sum.
    factor : ndarray of shape (p, p)
        Work space.
    """
    if not cholesky(sums, factor):
        return -math.inf
    p = sums.shape[0]
    trace, squares = 0.0, 0.0
    for i in range(p):
        trace += sums[i, i] - 1.0
        for k in range(p):
            deviation = sums[i, k] - (1.0 if i == k else 0.0)
            squares += deviation * deviation
    log_ratio = 0.5 * (count - p - 1) * log_determinant(factor)
    return float(log_ratio - 0.5 * count * trace + 0.25 * count * squares)


# A bracket halves with each try on average: more tries mean an angle below rounding.
MOST_TRIES = 200
# Eigenvalues of G below this part of the largest one are rounding.
ROUNDING = 1e-15
# Place of the count of tries of slices.
TRIES = 0
# Place of the count of slices that gave up.
GAVE_UP = 1


class ReleasedSums(NamedTuple):
    """Releases of the nodes: noisy sums of products of w = (x, y)."""

    noisy: Array  # (J, p, p): noisy sums of each node, symmetric
    # (p, p): variance V of the noise on each entry of the upper triangle, positive.
    variances: Array
    counts: Array  # (J,): rows n_j of each node


@compiled
def invariant_part(variances: Any) -> float:
    """Largest v with V_ii >= v and V_ik >= v / 2: the noise that can be turned."""
    largest = math.inf
    for i in range(variances.shape[0]):
        for k in range(i, variances.shape[0]):
            largest = min(largest, variances[i, k] * (1.0 if i == k else 2.0))
    return largest


@compiled
def smooth(sums: Any, noisy: Any, variances: Any, invariant: float, rng: Any, out: Any) -> None:
    """Draw the sums plus the invariant part of the noise, given the sums and all noise."""
    for i in range(sums.shape[0]):
        for k in range(i, sums.shape[0]):
            # The invariant part of the noise of this entry, given all of it, is normal with mean
            # `share` times the residual and variance part (1 - share).
            part = invariant if i == k else 0.5 * invariant
            share = part / variances[i, k]
            # All noise of an entry can be of this part; rounding must not make it more.
            spread = math.sqrt(max(0.0, part * (1.0 - share)))
            value = sums[i, k] + share * (noisy[i, k] - sums[i, k])
            value += spread * rng.standard_normal()
            out[i, k] = value
            out[k, i] = value


@compiled
def whitening(values: Any, vectors: Any, count: float, into: Any, back: Any) -> None:
    """Write the maps to and from the eigenbasis of G, in units in which n G is the identity."""
    for i in range(values.size):
        unit = math.sqrt(count * max(values[i], ROUNDING * values[-1]))
        for k in range(values.size):
            into[i, k] = vectors[k, i] / unit
            back[k, i] = vectors[k, i] * unit


@compiled
def turned_conditional(
    latent: Any, values: Any, count: float, invariant: float, rng: Any, mean: Any, noise: Any
) -> None:
    """Write mean and centred noise of a draw of T given T plus the invariant noise.

    Parameters
    ----------
    latent : ndarray of shape (p, p)
        T plus that noise, in the basis and units of :func:`whitening`, as are the results.
    values : ndarray of shape (p,)
        Eigenvalues of G.
    invariant : float
        v, in the units of the data.
    mean, noise : ndarray of shape (p, p)
        Overwritten; their sum is a draw.
    """
    for i in range(values.size):
        for k in range(i, values.size):
            diagonal = 1.0 if i == k else 0.0
            # Off the diagonal T_ik has variance n g_i g_k with eigenvalues g, and the noise v / 2.
            # On it both are doubled, so one formula gives the share of the noise in the sum.
            least = ROUNDING * values[-1]
            signal = count * max(values[i], least) * max(values[k], least)
            lost = 0.5 * invariant / (signal + 0.5 * invariant)
            # Regression of T on T plus noise, towards its mean, which is the identity here.
            mean[i, k] = diagonal + (1.0 - lost) * (latent[i, k] - diagonal)
            noise[i, k] = math.sqrt((1.0 + diagonal) / count * lost) * rng.standard_normal()
            mean[k, i] = mean[i, k]
            noise[k, i] = noise[i, k]


@compiled
def direct_conditional(
    noisy: Any, count: float, joint: Any, sds: Any, spectrum: Any, rng: Any, mean: Any, noise: Any
) -> None:
    """Write mean and centred noise of a draw of T given the noisy sums.

    Parameters
    ----------
    noisy : ndarray of shape (p, p)
        What the node released.
    sds : ndarray of shape (D,)
        Standard deviation of the noise on each product.
    spectrum : tuple of ndarray of shape (D,) and (D, D)
        Eigenvalues and vectors of the covariance of the products of a row, in units of `sds`.
    mean, noise : ndarray of shape (p, p)
        Overwritten; their sum is a draw.
    """
    values, vectors = spectrum
    centre, deviation = np.empty(sds.size), np.empty(sds.size)
    pack(joint, centre)
    pack(noisy, deviation)
    spread = np.zeros(sds.size)
    for i in range(sds.size):
        centre[i] *= count
        deviation[i] = (deviation[i] - centre[i]) / sds[i]
    for k in range(sds.size):
        prior = count * max(0.0, values[k])
        weight = prior / (prior + 1.0)
        shift, step = 0.0, math.sqrt(weight) * rng.standard_normal()
        for i in range(sds.size):
            shift += vectors[i, k] * deviation[i]
        shift *= weight
        for i in range(sds.size):
            centre[i] += sds[i] * vectors[i, k] * shift
            spread[i] += sds[i] * vectors[i, k] * step
    unpack(centre, mean)
    unpack(spread, noise)


@compiled
def elliptical_slice(
    sums: Any, mean: Any, noise: Any, count: float, rng: Any, out: Any, factor: Any
) -> int:
    """Move T, whose target is the normal distribution times the ratio of Wishart to normal.

    The move goes along an ellipse through T and a draw of the normal distribution, and shrinks
    towards T until the ratio is high enough [Murray, Adams and MacKay 2010]: nothing to tune,
    and no rejection.

    Parameters
    ----------
    sums : ndarray of shape (p, p)
        T, in the units of :func:`whitening`, as are the other matrices.
    mean, noise : ndarray of shape (p, p)
        Of the normal conditional distribution.
    out, factor : ndarray of shape (p, p)
        The new T, and work space.

    Returns
    -------
    int
        Evaluations of the ratio at proposed points; 0 if it gave up and stayed.
    """
    level = log_density_ratio(sums, count, factor) + math.log1p(-rng.random())
    angle = 2.0 * math.pi * rng.random()
    low, high = angle - 2.0 * math.pi, angle
    for tries in range(1, MOST_TRIES + 1):
        along, across = math.cos(angle), math.sin(angle)
        for i in range(sums.shape[0]):
            for k in range(sums.shape[0]):
                out[i, k] = mean[i, k] + along * (sums[i, k] - mean[i, k]) + across * noise[i, k]
        if log_density_ratio(out, count, factor) > level:
            return tries
        if angle < 0.0:
            low = angle
        else:
            high = angle
        angle = low + (high - low) * rng.random()
    for i in range(sums.shape[0]):
        for k in range(sums.shape[0]):
            out[i, k] = sums[i, k]
    return 0


@compiled
def add(one: Any, other: Any, out: Any) -> None:
    """Write the sum of two matrices."""
    for i in range(out.shape[0]):
        for k in range(out.shape[0]):
            out[i, k] = one[i, k] + other[i, k]


@compiled
def scaled_spectrum(joint: Any, variances: Any, sds: Any) -> Any:
    """Decompose the covariance of all products of a row, in units of the noise.

    Writes the standard deviation of the noise on each product into `sds`, shape (D,).
    """
    covariance = product_covariance(joint)
    pack(variances, sds)
    for i in range(sds.size):
        sds[i] = math.sqrt(sds[i])
    for i in range(sds.size):
        for k in range(sds.size):
            covariance[i, k] /= sds[i] * sds[k]
    return np.linalg.eigh(covariance)


@compiled
def update_augmented(
    released: Any, joint: Any, exact: bool, sums: Any, rng: Any, tallies: Any
) -> None:
    """Update the sums of every node given G, through a part of the noise that can be turned.

    Parameters
    ----------
    joint : ndarray of shape (p, p)
        G, finite.
    exact : bool
        Whether the distribution of the sums is Wishart, or normal with the same moments.
    sums : ndarray of shape (J, p, p)
        Updated in place; if `exact`, positive definite before and after.
    tallies : ndarray of int
        Counts, see ``TRIES`` and ``GAVE_UP``.
    """
    p = joint.shape[0]
    values, vectors = np.linalg.eigh(joint)
    invariant = invariant_part(released.variances)
    into, back = np.empty((p, p)), np.empty((p, p))
    current, work, out = np.empty((p, p)), np.empty((p, p)), np.empty((p, p))
    mean, noise = np.empty((p, p)), np.empty((p, p))
    for j in range(released.counts.size):
        count = released.counts[j]
        whitening(values, vectors, count, into, back)
        smooth(sums[j], released.noisy[j], released.variances, invariant, rng, out)
        congruence(into, out, work, current)
        turned_conditional(current, values, count, invariant, rng, mean, noise)
        if exact:
            congruence(into, sums[j], work, current)
            tries = elliptical_slice(current, mean, noise, count, rng, out, work)
            tallies[TRIES] += tries
            tallies[GAVE_UP] += tries == 0
            congruence(back, out, work, sums[j])
        else:
            add(mean, noise, out)
            congruence(back, out, work, sums[j])


@compiled
def update_direct(
    released: Any, joint: Any, exact: bool, sums: Any, rng: Any, tallies: Any
) -> None:
    """Update the sums of every node given G, with the covariance of all their entries.

    Arguments as for :func:`update_augmented`.
    """
    p = joint.shape[0]
    sds = np.empty(p * (p + 1) // 2)
    spectrum = scaled_spectrum(joint, released.variances, sds)
    values, vectors = np.linalg.eigh(joint)
    into, back = np.empty((p, p)), np.empty((p, p))
    current, work, out = np.empty((p, p)), np.empty((p, p)), np.empty((p, p))
    mean, noise = np.empty((p, p)), np.empty((p, p))
    white_mean, white_noise = np.empty((p, p)), np.empty((p, p))
    for j in range(released.counts.size):
        count = released.counts[j]
        direct_conditional(released.noisy[j], count, joint, sds, spectrum, rng, mean, noise)
        if exact:
            whitening(values, vectors, count, into, back)
            congruence(into, mean, work, white_mean)
            congruence(into, noise, work, white_noise)
            congruence(into, sums[j], work, current)
            tries = elliptical_slice(current, white_mean, white_noise, count, rng, out, work)
            tallies[TRIES] += tries
            tallies[GAVE_UP] += tries == 0
            congruence(back, out, work, sums[j])
        else:
            add(mean, noise, sums[j])
