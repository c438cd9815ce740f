"""Gaussian and Laplace noise on a grid that floating point cannot betray.

A number with noise is returned as ``g round((value + noise) / g)``, with g a power of two far
below the noise and the sum of real numbers inside: what leaves is an integer times g, and each
integer has positive probability whatever the value. Rounding comes after the mechanism of real
numbers and reads no data. So whatever is proved of that mechanism, by any accountant, holds as it
stands, composed and amplified; there is no approximation to account for, as there would be with
the discrete Gaussian of [Canonne, Kamath and Steinke 2020].

The rounded sum is drawn exactly, by inversion. A uniform number is known by its first 63 bits at
first, its noise by a quantile in float64 with a bound on the error. Where all numbers within the
bound round to the same integer, that is the one. Otherwise, once in about 1e6 draws, more bits
are drawn and the quantile is evaluated to many digits until the integer is certain.

What is relied on: the quantile functions of SciPy and NumPy err by less than 2**-47 times one
plus the quantile (4e-16 is what they do), and mpmath by less than 2**-40 of a bit interval.
Not covered: how long a draw takes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpmc.privacy.clipped import check_value
from dpmc.types import Array, DpmcError, check_epsilon, is_real

# The grid is at most the standard deviation of the noise over 2**GRID_BITS.
GRID_BITS = 24
# Rounding of a floating-point sum, relative to its sensitivity.
SLACK = 1e-9
# Integers of the value are clamped here: with noise on them they stay below 2**53.
_LARGEST = 2.0**52
_FINEST = 2**36  # grid steps in a standard deviation, at most: tails stay below _LARGEST
# Bits of a random word, and those of them that are of the uniform number: one is the sign.
_WORD = 64
_BITS = 63
# Error of a quantile in float64, relative to one plus the quantile.
_ERROR = 2.0**-46
# Bits by which mpmath works more precisely than the uniform number is known.
_GUARD = 64
# Bit generators whose `random_raw` has 64 bits.
_WIDE = frozenset({"ChaCha", "PCG64", "PCG64DXSM", "Philox", "SFC64"})


class _Tail(NamedTuple):
    """The size of the noise in units of its scale, as a function of a uniform number.

    Parameters
    ----------
    quantile : callable
        Decreasing; in float64, for numbers and arrays.
    exact : callable
        The same to the working precision of mpmath.
    """

    quantile: Callable[[Any], Any]
    exact: Callable[[Any], Any]


def _normal(uniform: Any) -> Any:
    return -ndtri(0.5 * uniform)


def _exact_normal(uniform: Any) -> Any:
    import mpmath

    return mpmath.sqrt(2) * mpmath.erfinv(1 - uniform)


def _exponential(uniform: Any) -> Any:
    return -np.log(uniform)


def _exact_exponential(uniform: Any) -> Any:
    import mpmath

    return -mpmath.log(uniform)


_GAUSSIAN = _Tail(_normal, _exact_normal)
_LAPLACE = _Tail(_exponential, _exact_exponential)


@overload
def add_gaussian(
    value: float,
    sensitivity: float,
    noise_multiplier: float,
    grid: float | None = None,
    rng: np.random.Generator | None = None,
) -> float: ...
@overload
def add_gaussian(
    value: Array,
    sensitivity: float,
    noise_multiplier: float,
    grid: float | None = None,
    rng: np.random.Generator | None = None,
) -> Array: ...
def add_gaussian(
    value: float | Array,
    sensitivity: float,
    noise_multiplier: float,
    grid: float | None = None,
    rng: np.random.Generator | None = None,
) -> float | Array:
    """Value with Gaussian noise, rounded to a grid.

    Parameters
    ----------
    value : float or ndarray of float64
        NaN counts as 0. What is beyond 2**52 grid steps is clamped there.
    sensitivity : float
        Bound on the Euclidean change of `value` in real numbers; finite, >= 0. Enlarged by
        `SLACK` for the rounding of floating-point sums.
    noise_multiplier : float
        Noise standard deviation over `sensitivity`; finite, > 0.
    grid : float, optional
        A power of two; by default `grid_of` of the noise standard deviation. To be given, from
        public numbers, where `sensitivity` or `noise_multiplier` is private.
    rng : numpy.random.Generator, optional
        By default random bits come from the operating system.

    Returns
    -------
    float or ndarray
        Integers times the grid: ``value + sensitivity * noise_multiplier * N(0, I)`` in real
        numbers, rounded. The value itself, unrounded, where the sensitivity is 0.

    Raises
    ------
    DpmcError
        If an argument is out of range.

    Examples
    --------
    >>> noisy = add_gaussian(1.0, sensitivity=0.1, noise_multiplier=5.0, grid=2.0**-10)
    >>> (noisy * 2**10).is_integer()
    True
    """
    if not (is_real(noise_multiplier) and 0 < noise_multiplier < math.inf):
        raise DpmcError(f"`noise_multiplier` must be positive and finite, got {noise_multiplier!r}")
    return _add(value, _GAUSSIAN, sensitivity, noise_multiplier, grid, rng)


@overload
def add_laplace(
    value: float,
    sensitivity: float,
    epsilon: float,
    grid: float | None = None,
    rng: np.random.Generator | None = None,
) -> float: ...
@overload
def add_laplace(
    value: Array,
    sensitivity: float,
    epsilon: float,
    grid: float | None = None,
    rng: np.random.Generator | None = None,
) -> Array: ...
def add_laplace(
    value: float | Array,
    sensitivity: float,
    epsilon: float,
    grid: float | None = None,
    rng: np.random.Generator | None = None,
) -> float | Array:
    """Value with Laplace noise of scale ``sensitivity / epsilon``, rounded to a grid.

    Parameters
    ----------
    value, grid, rng
        See `add_gaussian`.
    sensitivity : float
        Bound on the change of `value` in the sum of absolute values, in real numbers; finite,
        >= 0. Enlarged by `SLACK`.
    epsilon : float
        Finite, > 0: the pure epsilon that the release has.

    Returns
    -------
    float or ndarray

    Raises
    ------
    DpmcError
        If an argument is out of range.

    Examples
    --------
    >>> noisy = add_laplace(1.0, sensitivity=0.1, epsilon=1.0, grid=2.0**-10)
    >>> (noisy * 2**10).is_integer()
    True
    """
    check_epsilon(epsilon)
    return _add(value, _LAPLACE, sensitivity, 1 / epsilon, grid, rng)


def gaussian_noise(
    shape: tuple[int, ...], noise_std: float, grid: float, rng: np.random.Generator | None = None
) -> Array:
    """Independent Gaussian noise rounded to a grid, for values that lie on it.

    A value that is rounded before noise comes to it moves by up to half a step more in each
    component: the sensitivity that `noise_std` is relative to has to be that of the rounded
    value, see `on_grid`.
    """
    scale = _scale(noise_std, grid)
    drawn = _rounded(np.zeros(shape), scale, _GAUSSIAN, rng)
    return np.asarray(drawn * grid + 0.0)


def on_grid(sensitivity: float, grid: float, dim: int) -> float:
    """Bound on the Euclidean change of a vector that was rounded to a grid."""
    return sensitivity * (1 + SLACK) + grid * math.sqrt(dim)


def grid_of(noise_std: float) -> float:
    """Grid for noise: the largest power of two up to `noise_std` / 2**24."""
    if not 0 < noise_std < math.inf:
        raise DpmcError(f"`noise_std` must be positive and finite, got {noise_std}")
    return math.ldexp(1.0, max(math.frexp(noise_std)[1] - 1 - GRID_BITS, -1074))


def acceptance_error(noise_std: float, tempering: float = 1.0, grid: float | None = None) -> float:
    """Bound on what the grid does to the probability of an acceptance.

    With the same noise of real numbers N, a log-ratio with noise and the rounded one differ by
    the rounding, at most half a step g, and by the enlargement of the noise by `SLACK`, both
    times the exponent T of the likelihood. As ``min(1, exp(x))`` changes by no more than x does,
    and so does the distribution function of an acceptance by Barker's rule, the probabilities
    differ by at most ``T (g / 2 + SLACK noise_std E|N|)``, at every state and proposal. So does
    the probability of the next state, in total variation. The penalty needs no change.

    Parameters
    ----------
    noise_std : float
        Standard deviation of the noise, before tempering.
    tempering : float
        Exponent T of the likelihood.
    grid : float, optional
        By default `grid_of` the noise.
    """
    step = grid_of(noise_std) if grid is None else grid
    return tempering * (step / 2 + SLACK * noise_std * math.sqrt(2 / math.pi))


def _add(
    value: float | Array,
    tail: _Tail,
    sensitivity: float,
    multiplier: float,
    grid: float | None,
    rng: np.random.Generator | None,
) -> float | Array:
    if not (is_real(sensitivity) and 0 <= sensitivity < math.inf):
        raise DpmcError(f"`sensitivity` must be finite and at least 0, got {sensitivity!r}")
    check_value(value)
    if sensitivity == 0:
        return value
    noise_scale = math.nextafter(sensitivity * (1 + SLACK) * multiplier, math.inf)
    step = grid_of(noise_scale) if grid is None else grid
    scale = _scale(noise_scale, step)
    exponent = math.frexp(step)[1] - 1
    if isinstance(value, float):
        number = _in_steps(value, exponent)
        near = round(number)
        return (near + _rounded_one(number - near, scale, tail, rng)) * step + 0.0
    numbers = np.where(np.isnan(value), 0.0, value)
    with np.errstate(over="ignore"):
        numbers = np.clip(np.ldexp(numbers, -exponent), -_LARGEST, _LARGEST)
    nearest = np.rint(numbers)
    rounded = _rounded(numbers - nearest, scale, tail, rng)
    return np.asarray((nearest + rounded) * step + 0.0)


def _in_steps(value: float, exponent: int) -> float:
    """Number in grid steps, clamped."""
    if math.isnan(value):
        return 0.0
    try:
        return min(max(math.ldexp(value, -exponent), -_LARGEST), _LARGEST)
    except OverflowError:
        return math.copysign(_LARGEST, value)


def _scale(noise_scale: float, grid: float) -> float:
    """Scale of noise in grid steps: exact, since the grid is a power of two."""
    if not (0 < grid < math.inf and math.frexp(grid)[0] == 0.5):
        raise DpmcError(f"`grid` must be a power of two, got {grid}")
    if not 0 < noise_scale < math.inf or noise_scale / grid > _FINEST:
        raise DpmcError(
            f"`grid` must be at least {noise_scale / _FINEST:.3g}, with noise of a positive and "
            f"finite scale, got {grid} and scale {noise_scale}"
        )
    return noise_scale / grid


def _words(size: int, rng: np.random.Generator | None) -> npt.NDArray[np.uint64]:
    """Words of 64 random bits."""
    if rng is None:
        return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)
    if type(rng.bit_generator).__name__ in _WIDE:
        return np.asarray(rng.bit_generator.random_raw(size), dtype=np.uint64)
    return rng.integers(0, 2**_WORD, size, dtype=np.uint64)


def _word(rng: np.random.Generator | None) -> int:
    """Return 64 random bits."""
    if rng is not None and type(rng.bit_generator).__name__ in _WIDE:
        return int(rng.bit_generator.random_raw())
    return int(_words(1, rng)[0])


def _rounded_one(
    offset: float, scale: float, tail: _Tail, rng: np.random.Generator | None
) -> float:
    """Return ``round(offset + scale * noise)`` for one number."""
    word = _word(rng)
    first = word >> 1
    size = float(tail.quantile((first + 0.5) * 2.0**-_BITS))
    noisy = offset + (scale * size if word & 1 else -scale * size)
    nearest = round(noisy)
    # A uniform number that is known up to one unit in `first` moves either quantile by less
    # than 1.3 / first.
    error = _ERROR * (1 + scale * (1 + size)) + 2 * scale / max(first, 1)
    if abs(noisy - nearest) + error < 0.5:
        return float(nearest)
    return float(_refined(offset, scale, word, tail, rng))


def _rounded(offset: Array, scale: float, tail: _Tail, rng: np.random.Generator | None) -> Array:
    """Return ``round(offset + scale * noise)``, independent noise for each number."""
    words = _words(offset.size, rng).reshape(offset.shape)
    first = words >> np.uint64(1)
    known = first.astype(np.float64)
    size = tail.quantile((known + 0.5) * 2.0**-_BITS)
    noisy = offset + np.where(words & np.uint64(1), scale, -scale) * size
    nearest = np.rint(noisy)
    # As for one number.
    error = _ERROR * (1 + scale * (1 + size)) + 2 * scale / np.maximum(known, 1.0)
    for index in zip(*np.nonzero(~(np.abs(noisy - nearest) + error < 0.5)), strict=True):
        word = int(words[index])
        nearest[index] = _refined(float(offset[index]), scale, word, tail, rng)
    return np.asarray(nearest)


def _refined(
    offset: float, scale: float, word: int, tail: _Tail, rng: np.random.Generator | None
) -> int:
    """Rounded sum for a uniform number whose first bits are those of a word.

    The number lies between ``bits / 2**length`` and one unit further. It is given more bits
    until both ends lead to the same integer, with room for the rounding of mpmath.
    """
    import mpmath

    sign = 1 if word & 1 else -1
    bits, length = word >> 1, _BITS
    while True:
        bits, length = (bits << _WORD) | _word(rng), length + _WORD
        with mpmath.workprec(2 * length + _GUARD):
            unit = mpmath.mpf(2) ** -length
            if bits == 0:
                continue
            ends = [offset + sign * scale * tail.exact(unit * end) for end in (bits, bits + 1)]
            margin = unit * scale * 2.0**-40 + mpmath.mpf(2) ** -length
            low, high = mpmath.nint(min(ends) - margin), mpmath.nint(max(ends) + margin)
            if low == high:
                return int(low)
