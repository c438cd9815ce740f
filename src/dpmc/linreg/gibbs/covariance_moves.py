"""Moves of the sums of all nodes together with the covariance G of a row.

Given G the sums T_j follow it to within 1 / sqrt(n), and G follows the sums: where noise
hides them, updating one given the other is a walk of such small steps. Transforming rows by
w -> K w takes T_j to K T_j K' and G to K G K', and leaves the distribution of T_j given G as it
is: what changes is the prior of G and the density of the noise, which need not be close to before.

K is I + t c r' with r'c = 0, or I + (exp(t) - 1) c r' with r'c = 1: a group with parameter t,
so that t may be drawn with respect to its Haar measure [Liu and Sabatti 2000], here by slice
sampling [Neal 2003]. The density of the noise is a polynomial of degree four in t or in
exp(t) - 1; once its coefficients are known, trying a t costs nothing per node.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmc.linreg.gibbs.latent_sums import ReleasedSums
from dpmc.numerics.compile_cache import kept
from dpmc.numerics.small_matrices import cholesky, compiled, gram, multiply, spectrum
from dpmc.numerics.small_matrices import solve_lower_matrix as solve_lower
from dpmc.types import Array

# First width of a bracket, and how often it may grow or shrink.
WIDTH = 1.0
MOST_STEPS = 50


class Line(NamedTuple):
    """One family of K, at a state of the chain.

    Parameters
    ----------
    precision : ndarray of shape (p, p)
        H, the inverse of G.
    image : ndarray of shape (p,)
        H c.
    c, r : ndarray of shape (p,)
        Vectors of the move K.
    scales : bool
        Whether r'c = 1 and K = I + (exp(t) - 1) c r'.
    polynomial : ndarray of shape (5,)
        From :func:`noise_polynomial`.
    """

    precision: Array
    image: Array
    c: Array
    r: Array
    scales: bool
    polynomial: Array


def directions(released: ReleasedSums) -> tuple[Array, Array]:
    """Return the vectors c and r of moves: a basis, and its dual, in rows, shape (p, p) each.

    Eigenvectors of the sum of all that was released, scaled by the roots of their
    eigenvalues, which are raised to the noise. They depend on no state of a chain.
    """
    values, vectors = spectrum(released.noisy.sum(axis=0))
    least = math.sqrt(released.variances.max() * len(released.counts))
    lengths = np.sqrt(np.maximum(values, least))
    return np.ascontiguousarray((vectors * lengths).T), np.ascontiguousarray((vectors / lengths).T)


@compiled
def inverse(matrix: Any, work: Any, out: Any) -> bool:
    """Write the inverse of a positive definite matrix; return False if it is not that."""
    if not cholesky(matrix, work):
        return False
    root = np.zeros(matrix.shape)
    for i in range(matrix.shape[0]):
        root[i, i] = 1.0
    solve_lower(work, root)
    gram(root, out)
    return True


@compiled
def noise_polynomial(
    noisy: Any, weights: Any, sums: Any, c: Any, r: Any, turned: Any, out: Any
) -> None:
    """Write how the log-density of all noise changes with s, where K = I + s c r'.

    Parameters
    ----------
    noisy : ndarray of shape (J, p, p)
        What was released.
    weights : ndarray of shape (p, p)
        One over the variance of the noise on each entry.
    sums : ndarray of shape (J, p, p)
        Current T_j.
    c, r : ndarray of shape (p,)
        Vectors of the move K.
    turned : ndarray of shape (J, p)
        Overwritten with T_j r.
    out : ndarray of shape (5,)
        Overwritten with the coefficients of 1, s, ..., s^4, and with 0 for the first.
    """
    p = c.size
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    for j in range(sums.shape[0]):
        # T_j r, and r'T_j r: with K = I + s c r', K T_j K' is
        # T_j + s (c (T_j r)' + (T_j r) c') + s^2 (r'T_j r) c c'.
        square = 0.0
        for i in range(p):
            value = 0.0
            for k in range(p):
                value += sums[j, i, k] * r[k]
            turned[j, i] = value
            square += value * r[i]
        for i in range(p):
            for k in range(i, p):
                # The entry of the noise becomes residual - s first - s^2 second, and its
                # log-density -weight / 2 times the square of that.
                residual = noisy[j, i, k] - sums[j, i, k]
                first = c[i] * turned[j, k] + turned[j, i] * c[k]
                second = square * c[i] * c[k]
                one += weights[i, k] * residual * first
                two += weights[i, k] * (residual * second - 0.5 * first * first)
                three -= weights[i, k] * first * second
                four -= 0.5 * weights[i, k] * second * second
    out[0], out[1], out[2], out[3], out[4] = 0.0, one, two, three, four


@compiled
def turned_precision(precision: Any, image: Any, c: Any, r: Any, s: float, out: Any) -> None:
    """Write (I - s r c') H (I - s c r') with `image` = H c: the inverse of K G K'."""
    p = c.size
    length = 0.0
    for i in range(p):
        length += c[i] * image[i]
    for i in range(p):
        row = s * (s * length * r[i] - image[i])
        for k in range(p):
            out[i, k] = precision[i, k] + row * r[k] - s * r[i] * image[k]


@compiled
def log_prior(precision: Any, log_size: float, beliefs: Any) -> float:
    """Return the log-density of the prior with respect to G, up to a constant.

    Parameters
    ----------
    precision : ndarray of shape (p, p)
        H, the inverse of G.
    log_size : float
        log |G|, up to a constant.
    beliefs : Beliefs
        Prior as the conditionals read it.

    Returns
    -------
    float
        -inf where H has lost its positive diagonal to rounding.
    """
    d = precision.shape[0] - 1
    last = precision[d, d]
    if not last > 0.0:
        return -math.inf
    # theta = -h / H_pp, and the inverse of Sx is H_xx - h h' / H_pp, with h = H_xp.
    trace, linear, scale_form, form = 0.0, 0.0, 0.0, 0.0
    for i in range(d):
        linear += precision[i, d] * beliefs.shift[i]
        for k in range(d):
            product = precision[i, d] * precision[k, d]
            trace += beliefs.scale[i, k] * precision[i, k]
            scale_form += beliefs.scale[i, k] * product
            form += beliefs.precision[i, k] * product
    trace -= scale_form / last
    distance = beliefs.square + (2.0 * linear + form / last) / last
    # |Sx| = |G| / sigma_y^2, and dG = |Sx| d(Sx, theta, sigma_y^2).
    log_features = log_size + math.log(last)
    value = -0.5 * trace - (0.5 * (beliefs.dof + d + 1) + 1.0) * log_features
    value += (beliefs.shape + 1.0) * math.log(last) - beliefs.rate * last
    if beliefs.conjugate:
        return float(value + 0.5 * d * math.log(last) - 0.5 * distance * last)
    return float(value - 0.5 * distance)


@compiled
def log_density(t: float, line: Any, beliefs: Any, out: Any) -> float:
    """Return the log-density of t, up to a constant; writes the inverse of K G K' to `out`."""
    s = math.expm1(t) if line.scales else t
    back = -math.expm1(-t) if line.scales else t
    turned_precision(line.precision, line.image, line.c, line.r, back, out)
    a = line.polynomial
    noise = s * (a[1] + s * (a[2] + s * (a[3] + s * a[4])))
    # |K| = exp(t) where it scales: (p + 1) log |K| is the Jacobian of G -> K G K'.
    log_size = t if line.scales else 0.0
    prior = log_prior(out, 2.0 * log_size, beliefs)
    return float(prior + (line.c.size + 1) * log_size + noise)


@compiled
def draw_parameter(line: Any, beliefs: Any, rng: Any, out: Any) -> float:
    """Draw t by slice sampling from 0, stepping out; `out` is left at the inverse of K G K'."""
    # The level of the slice: the log-density at the current point less an exponential variable.
    level = log_density(0.0, line, beliefs, out) + math.log1p(-rng.random())
    # A bracket placed at random around 0, whose ends step out until they are off the slice.
    low = -WIDTH * rng.random()
    high = low + WIDTH
    for _ in range(MOST_STEPS):
        if not log_density(low, line, beliefs, out) > level:
            break
        low -= WIDTH
    for _ in range(MOST_STEPS):
        if not log_density(high, line, beliefs, out) > level:
            break
        high += WIDTH
    # Points of the bracket, which shrinks towards 0 after each that is off the slice.
    for _ in range(MOST_STEPS):
        t = low + (high - low) * rng.random()
        if log_density(t, line, beliefs, out) > level:
            return float(t)
        if t < 0.0:
            low = t
        else:
            high = t
    # No point was accepted: stay, with `out` at the current state.
    log_density(0.0, line, beliefs, out)
    return 0.0


@compiled
def turn_sums(sums: Any, c: Any, r: Any, turned: Any, s: float) -> None:
    """Replace T_j by K T_j K' with K = I + s c r'; `turned` holds T_j r."""
    p = c.size
    for j in range(sums.shape[0]):
        square = 0.0
        for i in range(p):
            square += turned[j, i] * r[i]
        for i in range(p):
            for k in range(p):
                first = c[i] * turned[j, k] + turned[j, i] * c[k]
                sums[j, i, k] += s * (first + s * square * c[i] * c[k])


@kept
def move_jointly(
    released: Any, beliefs: Any, axes: Any, num_moves: int, joint: Any, sums: Any, rng: Any
) -> float:
    """Transform all sums and G by random members of the family of K.

    Parameters
    ----------
    released : ReleasedSums
        Noisy sums of all nodes.
    beliefs : Beliefs
        Prior as the conditionals read it.
    axes : tuple of ndarray of shape (p, p)
        From :func:`directions`.
    num_moves : int
        How many K are drawn, each with its own c and r.
    joint : ndarray of shape (p, p)
        G.
    sums : ndarray of shape (J, p, p)
        Updated in place.
    rng : numpy.random.Generator
        Source of the random numbers.

    Returns
    -------
    float
        The sigma_y^2 of the new G; NaN, and nothing done, where G has no inverse.
    """
    p = joint.shape[0]
    precision, other = np.empty((p, p)), np.empty((p, p))
    turned, polynomial, image = np.empty((sums.shape[0], p)), np.empty(5), np.empty(p)
    if not inverse(joint, other, precision):
        return math.nan
    weights = np.empty((p, p))
    for i in range(p):
        for k in range(p):
            weights[i, k] = 1.0 / released.variances[i, k]
    for _ in range(num_moves):
        first, second = int(p * rng.random()), int(p * rng.random())
        c, r = axes[0][first], axes[1][second]
        noise_polynomial(released.noisy, weights, sums, c, r, turned, polynomial)
        multiply(precision, c, image)
        line = Line(precision, image, c, r, first == second, polynomial)
        t = draw_parameter(line, beliefs, rng, other)
        turn_sums(sums, c, r, turned, math.expm1(t) if line.scales else t)
        precision, other = other, precision
    return float(1.0 / precision[p - 1, p - 1])
