"""Normal statistic with Laplace noise: density and Fisher information.

Y = U + V, U ~ N(m, s^2), V ~ Lap(b) [alparslan2023thesis, section 4.2.2, equation 4.6], where
everything is closed but one integral. With x = (y - m) / s, k = s / b, Mills' ratio
M(t) = (1 - Phi(t)) / phi(t), and M1 = M(k - x), M2 = M(k + x):

- ``p(y) = phi(x) (M1 + M2) / (2 b)``;
- ``d log p / d m = (k / s) (M1 - M2) / (M1 + M2)``;
- ``d log p / d s^2 = (k^2 - 2 k / (M1 + M2)) / (2 s^2)``.

The first of these scores is odd about m and the second even, so that the information on
(m, s^2) is diagonal, and it depends on k alone but for the scale of y.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmc.numerics.compiled import kept
from dpmc.numerics.small_matrices import compiled
from dpmc.types import Array

_LOG_SQRT_2_PI = 0.5 * math.log(2 * math.pi)
_SQRT_2_PI = math.sqrt(2 * math.pi)
_SQRT_HALF_PI = math.sqrt(math.pi / 2)
_SQRT_HALF = math.sqrt(0.5)
# At and above this Mills' ratio is its asymptotic series, of which eight terms reach 1e-15.
_FAR = 20.0
_SERIES = 8
# The trapezoidal rule of an analytic function: at this spacing its error is below rounding.
_NODES = 80
# Distance from the mean past which the rule stops,
_CENTRE = 10.0
# and noise scales beyond that.
_TAIL = 40.0
# Past this ratio, rounding of k^2 - 2 k / (M1 + M2) costs more than the next term in 1 / k.
_SMOOTH = 2e3


@compiled
def mills(t: float) -> float:
    """Return ``(1 - Phi(t)) / phi(t)`` of t >= 0, to about 1e-14, relative."""
    if t < _FAR:
        return _SQRT_HALF_PI * math.exp(0.5 * t * t) * math.erfc(t * _SQRT_HALF)
    square, term, total = t * t, 1.0, 1.0
    for j in range(1, _SERIES):
        term *= -(2 * j - 1) / square
        total += term
    return total / t


@compiled
def _parts(x: float, k: float) -> tuple[float, float, float]:
    """Parts of density and scores at a distance x >= 0 from the mean.

    Returns
    -------
    log_sum : float
        ``log(phi(x) (M1 + M2))``.
    share : float
        ``(M1 - M2) / (M1 + M2)``.
    inverse : float
        ``1 / (M1 + M2)``.
    """
    if x <= k:
        near, far = mills(k - x), mills(k + x)
        total = near + far
        return -0.5 * x * x - _LOG_SQRT_2_PI + math.log(total), (near - far) / total, 1.0 / total
    # M1 overflows: both are divided by sqrt(2 pi) exp((x - k)^2 / 2).
    density = math.exp(-0.5 * (x - k) * (x - k)) / _SQRT_2_PI
    near = 0.5 * math.erfc((k - x) * _SQRT_HALF)
    far = density * mills(k + x)
    total = near + far
    return k * (0.5 * k - x) + math.log(total), (near - far) / total, density / total


@compiled
def log_density(y: float, mean: float, sd: float, scale: float) -> float:
    """Log p(y).

    Parameters
    ----------
    y, mean : float
        Release, and mean of the statistic.
    sd : float
        s > 0, that of the statistic.
    scale : float
        b > 0, of the Laplace noise.
    """
    log_sum, _, _ = _parts(abs(y - mean) / sd, sd / scale)
    return log_sum - math.log(2.0 * scale)


@compiled
def unit_information(k: float) -> tuple[float, float]:
    """Information on the mean, times s^2, and on the variance, times s^4.

    `k`: s / b > 0; infinity without noise.

    `of_mean`, `of_variance`: at most 1 and 1 / 2, which they are without noise.
    """
    if k > _SMOOTH:
        return 1.0 - 2.0 / (k * k), 0.5 - 2.0 / (k * k)
    # Trapezoidal rule after x = sinh(t): even in x, so that half of the line is enough.
    end = math.asinh(_CENTRE + _TAIL / k)
    step = end / _NODES
    of_mean, of_variance = 0.0, 0.0
    for j in range(_NODES + 1):
        x = math.sinh(j * step)
        log_sum, share, inverse = _parts(x, k)
        weight = math.exp(log_sum) * math.sqrt(1.0 + x * x) * (0.5 if j == 0 else 1.0)
        rest = k - 2.0 * inverse
        of_mean += weight * share * share
        of_variance += weight * rest * rest
    return k**3 * step * of_mean, 0.25 * k**3 * step * of_variance


@kept
def fill_information(variance: Any, d_mean: Any, d_variance: Any, scale: Any, out: Any) -> None:
    """Write :func:`information` of each entry of arrays of shape (m,) into `out`."""
    for j in range(out.size):
        v = variance[j]
        k = math.inf if scale[j] == 0.0 else math.sqrt(v) / scale[j]
        of_mean, of_variance = unit_information(k)
        out[j] = d_mean[j] ** 2 * of_mean / v + (d_variance[j] / v) ** 2 * of_variance


def information(
    variance: Array | float, d_mean: Array | float, d_variance: Array | float, scale: Array | float
) -> Array:
    """Fisher information on a scalar parameter of mean and variance.

    ``F = I_m d_mean^2 + I_v d_variance^2``, where the diagonal information (I_m, I_v) on
    mean and variance is integrated to about 1e-12, relative.

    Of the shape that the arguments broadcast to.

    Parameters
    ----------
    variance : float or ndarray
        s^2 > 0 of the statistic.
    d_mean, d_variance : float or ndarray
        Derivatives of m and s^2 with respect to the parameter.
    scale : float or ndarray
        b of the noise; 0 where there is none.
    """
    arrays = np.broadcast_arrays(variance, d_mean, d_variance, scale)
    flat = [np.ascontiguousarray(array, np.float64).ravel() for array in arrays]
    out = np.empty(flat[0].size)
    fill_information(*flat, out)
    return out.reshape(arrays[0].shape)
