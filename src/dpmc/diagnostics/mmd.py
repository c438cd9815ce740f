"""MMD, error of the mean and tails of a sample against an exact posterior sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.checks import shaped
from dpmc.numerics.compiled import njit
from dpmc.types import Array, DpmcError

# Share of an exponent that the polynomial is taken at.
REDUCED = 1.0 / 64.0
# Least exponent: exponentials below count as this one's, 4e-18.
CUT = -40.0
# Coefficients of the polynomial, from z^2 on.
C = (1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040)


@njit(fastmath=True)
def add_block(  # pragma: no cover
    gram: Any,
    rows: Any,
    columns: Any,
    row_weights: Any,
    column_weights: Any,
    scales: Any,
    factor: Any,
    sums: Any,
) -> None:
    """Add ``factor * sum_ij w_i w_j exp(-s |x_i - y_j|^2)`` to `sums`, one entry per scale s.

    ``exp(z) = exp(z / 64)**64`` by a Taylor polynomial of degree 7 turns into vector
    instructions, which a call of ``exp`` does not; for z <= 0 it is off by less than 3e-14.
    """
    for k in range(scales.size):
        scale = scales[k] * REDUCED
        total = 0.0
        for i in range(rows.size):
            products, square = gram[i], rows[i]
            inner = 0.0
            for j in range(columns.size):
                # Rounding can leave a negative distance between equal points.
                z = scale * (2.0 * products[j] - square - columns[j])
                z = max(min(z, 0.0), CUT * REDUCED)
                p = C[5] * z + C[4]
                p = p * z + C[3]
                p = p * z + C[2]
                p = p * z + C[1]
                p = p * z + C[0]
                p = p * z + 1.0
                p = p * z + 1.0
                p = p * p
                p = p * p
                p = p * p
                p = p * p
                p = p * p
                p = p * p
                inner += column_weights[j] * p
            total += row_weights[i] * inner
        sums[k] += factor * total


# The squared width h of the kernel in the public code of the thesis.
SQUARED_WIDTH = 0.1


# Rows and columns of a block of distances: it stays in the second-level cache.
ROWS = 64
COLUMNS = 512
PAIRS = 500
TAIL = 0.05


def _kernel_sums(x: Array, wx: Array, y: Array, wy: Array, scales: Array, within: bool) -> Array:
    """Return ``sum_ij wx_i wy_j exp(-s |x_i - y_j|^2)`` for every scale s.

    With `within`, `x` and `y` are one sample and every unordered pair is visited once.
    """
    sums = np.zeros(scales.size)
    x_squares, y_squares = np.sum(x * x, axis=1), np.sum(y * y, axis=1)
    columns = np.ascontiguousarray(y.T)
    for j in range(0, len(y), COLUMNS):
        right = slice(j, j + COLUMNS)
        stop = min(j + COLUMNS, len(x)) if within else len(x)
        for i in range(0, stop, ROWS):
            left = slice(i, i + ROWS)
            factor = 2.0 if within and i < j else 1.0
            gram = x[left] @ columns[:, right]
            add_block(
                gram, x_squares[left], y_squares[right], wx[left], wy[right], scales, factor, sums
            )
    return sums


def collapse(draws: Array) -> tuple[Array, Array]:
    """Distinct states and how often each one repeats.

    A rejected proposal repeats the state of its chain, so a union of chains holds
    far fewer points than draws; weights keep every sum over draws exact.

    Parameters
    ----------
    draws : ndarray of shape (k, chains, d)

    Returns
    -------
    points : ndarray of shape (m, d)
        Chain after chain, in order; m <= k * chains.
    weights : ndarray of shape (m,)
        Positive integers, as floats, that sum to k * chains.
    """
    num, chains, dim = draws.shape
    by_chain = draws.transpose(1, 0, 2)
    new = np.ones((chains, num), dtype=bool)
    new[:, 1:] = np.any(by_chain[:, 1:] != by_chain[:, :-1], axis=2)
    starts = np.flatnonzero(new)
    weights = np.diff(np.append(starts, num * chains)).astype(np.float64)
    return np.ascontiguousarray(by_chain.reshape(-1, dim)[starts]), weights


def squared_mmd(x: Array, y: Array, widths: Array, x_weights: Array | None = None) -> Array:
    """Unbiased estimate U of the squared discrepancy, one per kernel width.

    ``U = mean_{i != j} k(x_i, x_j) + mean_{i != j} k(y_i, y_j) - 2 mean_ij k(x_i, y_j)`` with
    ``k(x, y) = exp(-|x - y|^2 / (2 width^2))``. U can be negative. The memory taken
    beyond the samples is independent of their sizes.

    Parameters
    ----------
    x : ndarray of shape (N, d)
    y : ndarray of shape (M, d)
    widths : ndarray of shape (s,)
        Positive kernel widths.
    x_weights : ndarray of shape (N,), optional
        How often each row of `x` occurs; once by default.

    Returns
    -------
    ndarray of shape (s,)

    References
    ----------
    Gretton et al. 2012, Lemma 6. The kernel of the thesis lacks the minus sign.
    """
    weights = np.ones(len(x)) if x_weights is None else np.asarray(x_weights, dtype=np.float64)
    ones = np.ones(len(y))
    num_x, num_y = float(np.sum(weights)), float(len(y))
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise DpmcError(f"samples must have shapes (N, d) and (M, d), got {x.shape} and {y.shape}")
    if min(num_x, num_y) < 2:
        raise DpmcError(f"samples must have at least 2 points each, got {num_x:g} and {num_y:g}")
    widths = np.asarray(widths, dtype=np.float64)
    if not np.all(widths > 0):
        raise DpmcError(f"kernel widths must be positive, got {widths.min()}")
    # Centring keeps |x|^2 + |y|^2 - 2 x.y from cancelling.
    centre = np.mean(y, axis=0)
    x, y = np.ascontiguousarray(x - centre), np.ascontiguousarray(y - centre)
    scales = 0.5 / widths**2
    # The diagonal adds one for each draw, repeated draws count as pairs at distance zero.
    within_x = (_kernel_sums(x, weights, x, weights, scales, True) - num_x) / (num_x * (num_x - 1))
    within_y = (_kernel_sums(y, ones, y, ones, scales, True) - num_y) / (num_y * (num_y - 1))
    cross = _kernel_sums(x, weights, y, ones, scales, False) / (num_x * num_y)
    result: Array = within_x + within_y - 2.0 * cross
    return result


def cross_width(
    x: Array, y: Array, rng: np.random.Generator, x_weights: Array | None = None
) -> float:
    """Median of 500 distances between random points of `x` and of `y`.

    Both samples are drawn from with replacement. The width depends on the run, so
    the discrepancy of a poor run is compressed.

    Parameters
    ----------
    x : ndarray of shape (N, d)
    y : ndarray of shape (M, d)
    rng : numpy.random.Generator
    x_weights : ndarray of shape (N,), optional
        How often each row of `x` occurs.

    Returns
    -------
    float

    References
    ----------
    Räisä, Koskela and Honkela 2021, section 4, "Evaluation".
    """
    if x_weights is None:
        rows = rng.integers(len(x), size=PAIRS)
    else:
        ends = np.cumsum(x_weights)
        rows = np.searchsorted(ends, rng.integers(int(ends[-1]), size=PAIRS), side="right")
    columns = rng.integers(len(y), size=PAIRS)
    return float(np.median(np.linalg.norm(x[rows] - y[columns], axis=1)))


def within_width(y: Array, most: int = 2000) -> float:
    """Median distance between two points of `y`, free of any run.

    Parameters
    ----------
    y : ndarray of shape (M, d)
    most : int
        A larger sample is thinned to about this many evenly spaced points.

    Returns
    -------
    float
    """
    from scipy.spatial.distance import pdist

    step = -(-len(y) // most)
    return float(np.median(pdist(y[::step])))


@dataclass(frozen=True)
class Reference:
    """An exact posterior sample and what every comparison with it needs.

    Parameters
    ----------
    draws : ndarray of shape (M, d)
    width : float
        Median distance within the sample: the width of ``mmd_fixed``.
    whitener : ndarray of shape (d, d)
        ``draws @ whitener`` has covariance I.
    white : ndarray of shape (M, d)
        The whitened sample.
    white_width : float
        Median distance within `white`.
    component : int
        The most skewed component, the one with the long tail.
    sign : float
        1 if that tail points upwards, -1 if downwards.
    threshold : float
        ``sign * draws[:, component]`` exceeds it in a twentieth of the sample.
    """

    draws: Array
    width: float
    whitener: Array
    white: Array
    white_width: float
    component: int
    sign: float
    threshold: float

    @classmethod
    def of(cls, draws: Array) -> Reference:
        """Prepare the sample `draws` of shape (M, d)."""
        draws = np.asarray(draws, dtype=np.float64)
        if draws.ndim != 2 or len(draws) <= draws.shape[1] or not np.all(np.isfinite(draws)):
            raise DpmcError(
                f"`reference` must be finite, of shape (M, d) with M > d, got shape {draws.shape}"
            )
        covariance = np.atleast_2d(np.cov(draws, rowvar=False))
        try:
            whitener = np.linalg.inv(np.linalg.cholesky(covariance)).T
        except np.linalg.LinAlgError:
            raise DpmcError(
                "`reference` must have a positive definite covariance, got a singular one"
            ) from None
        white = draws @ whitener
        centred = draws - draws.mean(axis=0)
        skewness = np.mean(centred**3, axis=0) / np.mean(centred**2, axis=0) ** 1.5
        component = int(np.argmax(np.abs(skewness)))
        sign = math.copysign(1.0, skewness[component])
        threshold = float(np.quantile(sign * draws[:, component], 1 - TAIL))
        width, white_width = within_width(draws), within_width(white)
        return cls(draws, width, whitener, white, white_width, component, sign, threshold)


def discrepancies(
    points: Array, weights: Array, reference: Reference, rng: np.random.Generator
) -> dict[str, float]:
    """Every metric that compares a weighted sample with the reference.

    Parameters
    ----------
    points : ndarray of shape (m, d)
    weights : ndarray of shape (m,)
        How often each point occurs.
    reference : Reference
    rng : numpy.random.Generator
        Chooses the pairs whose median distance is the kernel width of ``mmd``.

    Returns
    -------
    dict of str to float
        ``mmd_u`` (unbiased estimate of the squared discrepancy, negative at times),
        ``mmd = sqrt(|mmd_u|)``, ``mmd_fixed`` (width of the reference alone),
        ``mmd_white`` (after whitening by the covariance of the reference, fixed
        width), ``mean_error`` (Euclidean distance of the two means), ``mean_norm`` (of
        the mean of the sample to the origin), ``tail_fraction`` (share of draws in the
        long tail, where the reference has 0.05) and ``variance_ratio`` (of that
        component, to the reference). All NaN if a point is not finite.
    """
    names = ("mmd_u", "mmd", "mmd_fixed", "mmd_white", "mean_error", "mean_norm", "tail_fraction")
    if not np.all(np.isfinite(points)):
        return dict.fromkeys((*names, "variance_ratio"), math.nan)
    width = cross_width(points, reference.draws, rng, weights)
    widths = np.array([width, reference.width])
    u, fixed = squared_mmd(points, reference.draws, widths, weights)
    white_widths = np.array([reference.white_width])
    white = squared_mmd(points @ reference.whitener, reference.white, white_widths, weights)[0]
    mean = np.average(points, axis=0, weights=weights)
    component = points[:, reference.component]
    spread = np.average((component - mean[reference.component]) ** 2, weights=weights)
    in_tail = reference.sign * component > reference.threshold
    return {
        "mmd_u": float(u),
        "mmd": math.sqrt(abs(u)),
        "mmd_fixed": math.sqrt(abs(fixed)),
        "mmd_white": math.sqrt(abs(white)),
        "mean_error": float(np.linalg.norm(mean - reference.draws.mean(axis=0))),
        "mean_norm": float(np.linalg.norm(mean)),
        "tail_fraction": float(np.average(in_tail, weights=weights)),
        "variance_ratio": float(spread / np.var(reference.draws[:, reference.component])),
    }


def gaussian_mmd(x: Array, y: Array, squared_width: float = SQUARED_WIDTH) -> float:
    """Unbiased squared discrepancy with the kernel of the public code.

    The kernel is the density of N(x, h I) at y. Pairs of a sample with itself leave out the
    diagonal, all cross pairs are used, so that samples may differ in size.

    Parameters
    ----------
    x : ndarray of shape (N, d)
    y : ndarray of shape (M, d)
    squared_width : float
        h, positive, in the squared units of x.

    Returns
    -------
    float
        Can be negative.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(200, 2)), rng.normal(size=(200, 2))
    >>> gaussian_mmd(x, y) < gaussian_mmd(x, y + 1)
    True
    """
    checks.positive("squared_width", squared_width)
    x, y = _samples(x, y)
    scale = float((2 * math.pi * squared_width) ** (-x.shape[1] / 2))
    return scale * float(squared_mmd(x, y, np.array([math.sqrt(squared_width)]))[0])


def rank_one_mmd(x: Array, y: Array) -> float:
    """Unbiased squared discrepancy with the kernel printed in the thesis.

    That kernel, exp(-(|x|^2 + |y|^2) / 2) / (2 pi), is a product f(x) f(y): the discrepancy
    is the squared difference of the means of f, and is zero for many pairs of distributions, for
    example N(0, 1) and N(0.831, 0.01). It is no measure of distance, and is here to show it.

    Parameters
    ----------
    x : ndarray of shape (N, d)
    y : ndarray of shape (M, d)

    Returns
    -------
    float
        Can be negative.

    References
    ----------
    [alparslan2023thesis, chapter 7], before section 7.1.
    """
    x, y = _samples(x, y)
    f, g = (np.exp(-0.5 * np.sum(sample**2, axis=1)) for sample in (x, y))

    def within(values: Array) -> float:
        n = len(values)
        return float((values.sum() ** 2 - np.sum(values**2)) / (n * (n - 1)))

    cross = float(np.mean(f)) * float(np.mean(g))
    return (within(f) + within(g) - 2 * cross) / (2 * math.pi)


def posterior_mmd(draws: Array, reference: Array) -> dict[str, float]:
    """Every discrepancy of a private from the non-private posterior.

    Parameters
    ----------
    draws : ndarray of shape (N, d)
        Nearly independent draws of the private posterior; the thesis takes every 50th.
    reference : ndarray of shape (M, d)
        Draws of the non-private posterior.

    Returns
    -------
    dict of str to float
        ``mmd_squared`` (kernel of the public code), ``mmd_squared_printed`` (kernel of the
        text, see :func:`rank_one_mmd`) and ``mmd_squared_median`` (Gaussian kernel of height
        1 whose width is the median distance within the reference, so that one scale serves
        all private posteriors).
    """
    draws, reference = _samples(draws, reference)
    width = within_width(reference)
    if not width > 0:
        raise DpmcError("`reference` must hold distinct points, got a median distance of 0")
    return {
        "mmd_squared": gaussian_mmd(draws, reference),
        "mmd_squared_printed": rank_one_mmd(draws, reference),
        "mmd_squared_median": float(squared_mmd(draws, reference, np.array([width]))[0]),
    }


def _samples(x: Array, y: Array) -> tuple[Array, Array]:
    x = shaped("samples", x, (-1, -1), "(N, d)")
    y = shaped("samples", y, (-1, x.shape[1]), f"(M, {x.shape[1]})")
    if min(len(x), len(y)) < 2:
        raise DpmcError(f"samples must have at least 2 points each, got {len(x)} and {len(y)}")
    return x, y
