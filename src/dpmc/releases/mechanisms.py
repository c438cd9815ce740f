"""Mechanisms of releases: how likely a published value is, given the sum that it is of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from dpmc import checks
from dpmc.types import Array, DpmcError

GAUSSIAN, LAPLACE = "gaussian", "laplace"
DISCRETE_GAUSSIAN, GEOMETRIC = "discrete_gaussian", "geometric"
RANDOMISED_RESPONSE = "randomised_response"
LATTICE = DISCRETE_GAUSSIAN, GEOMETRIC
# Deviations of a discrete Gaussian whose probabilities are added up; what is further out counts for
# nothing beside them.
REACH = 12
# Squares beyond it, and of its inverse, are no numbers.
MOST_SCALE = 1e150
# Scale from which a discrete Gaussian is a rounded normal: probabilities differ by 1e-9 of them.
WIDE = 1e4


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A mechanism: noise added to a sum, then rounding, then a clamp.

    Parameters
    ----------
    name : str
    scale : ndarray of shape () or (q,)
        Sigma of a Gaussian, b of a Laplace distribution or of its discrete kind; the probability of
        an honest answer for randomised response.
    clamp : (float, float)
        Interval that the noisy value was moved into; infinite ends are none.
    rounded : float, optional
        Grid that it was rounded to before.

    Examples
    --------
    >>> one = laplace(2.0)
    >>> bool(np.isclose(one.log_density(np.array([1.0]), np.array([0.0]))[0], -0.5 - np.log(4)))
    True
    """

    name: str
    scale: Array
    clamp: tuple[float, float] = (-np.inf, np.inf)
    rounded: float | None = None

    @property
    def on_integers(self) -> bool:
        """Whether integers are released, of integer sums."""
        return self.name in LATTICE

    def variance(self) -> Array:
        """Variance of the noise, shape () or (q,)."""
        if self.name == GAUSSIAN:
            return np.asarray(self.scale**2)
        if self.name == LAPLACE:
            return 2 * self.scale**2
        if self.name == GEOMETRIC:
            ratio = np.exp(-1 / self.scale)
            return np.asarray(2 * ratio / (1 - ratio) ** 2)
        each = [_sum_of_squares(float(sigma)) for sigma in self.scale.ravel()]
        return np.array(each).reshape(self.scale.shape)

    def reach(self) -> Array:
        """Distance at which noise is less likely than at 0 by a factor of 1e-10."""
        far = np.log(1e10)
        square = self.name in (GAUSSIAN, DISCRETE_GAUSSIAN)
        return np.asarray(self.scale * (np.sqrt(2 * far) if square else far))

    def ends(self, value: Array) -> tuple[Array, Array]:
        """Ends of the interval that the noisy value was in, both inclusive; equal for a point."""
        low, high = value.copy(), value.copy()
        if self.rounded is not None:
            low, high = low - self.rounded / 2, high + self.rounded / 2
        at_low, at_high = value <= self.clamp[0], value >= self.clamp[1]
        if self.rounded is not None:  # an end need not be on the grid
            steps = np.array(self.clamp) / self.rounded
            near = np.rint(steps)  # 0.3 / 0.1 is less than 3
            steps = np.where(np.isclose(steps, near, rtol=1e-9, atol=1e-9), near, steps)
            high = np.where(at_low, (np.floor(steps[0]) + 0.5) * self.rounded, high)
            low = np.where(at_high, (np.ceil(steps[1]) - 0.5) * self.rounded, low)
        return np.where(at_low, -np.inf, low), np.where(at_high, np.inf, high)

    def log_density(self, value: Array, total: Array) -> Array:
        """Log-density, or log-probability, of published values.

        Parameters
        ----------
        value : ndarray of shape (q,)
        total : ndarray of shape (..., q)
            Sums before noise.

        Returns
        -------
        ndarray of shape (..., q)
        """
        low, high = (end - total for end in self.ends(value))
        with np.errstate(all="ignore"):
            point = self._log_density(high)
            if self.on_integers:  # at integers from the sum
                point = np.where(np.abs(high - np.round(high)) < 1e-6, point, -np.inf)
            # On the side of the small tail, where differences of probabilities have all digits.
            flip = low > -high
            a, b = np.where(flip, -high, low), np.where(flip, -low, high)
            upper = self._log_cdf(b)
            inside = upper + np.log1p(-np.exp(self._log_cdf(a) - upper))
            inside = np.where(np.isneginf(a), upper, inside)
            result = np.where(low == high, point, np.where(np.isneginf(a) & np.isinf(b), 0, inside))
        return np.asarray(result)

    def _log_density(self, x: Array) -> Array:
        scale = self.scale
        if self.name == GAUSSIAN:
            return np.asarray(-0.5 * (x / scale) ** 2 - np.log(scale * np.sqrt(2 * np.pi)))
        if self.name == LAPLACE:
            return np.asarray(-np.abs(x) / scale - np.log(2 * scale))
        if self.name == GEOMETRIC:
            return np.asarray(np.log(np.tanh(0.5 / scale)) - np.abs(x) / scale)
        norm = [_log_sum_of_weights(float(sigma)) for sigma in scale.ravel()]
        return np.asarray(-0.5 * (x / scale) ** 2 - np.array(norm).reshape(scale.shape))

    def _log_cdf(self, x: Array) -> Array:
        """Logarithm of the probability of noise of at most x, inclusive."""
        scale = self.scale
        if self.name == GAUSSIAN:
            return np.asarray(special.log_ndtr(x / scale))
        if self.name == LAPLACE:
            return np.where(x < 0, x / scale - np.log(2), np.log1p(-0.5 * np.exp(-x / scale)))
        k = np.floor(x + 1e-6)
        if self.name == GEOMETRIC:
            ratio = np.exp(-1 / scale)
            rest = np.log1p(-np.exp(-(k + 1) / scale) / (1 + ratio))
            return np.where(k < 0, k / scale - np.log1p(ratio), rest)
        columns = np.broadcast_arrays(k, np.broadcast_to(scale, k.shape))
        out = np.empty(k.shape)
        for sigma in np.unique(scale):
            here = columns[1] == sigma
            if sigma > WIDE:
                out[here] = special.log_ndtr((columns[0][here] + 0.5) / sigma)
                continue
            grid, weights = _weights(float(sigma))
            table = np.log(np.cumsum(weights) / weights.sum())
            near = np.clip(columns[0][here], grid[0], grid[-1])
            far = 0.5 * (grid[0] ** 2 - np.minimum(columns[0][here], grid[0]) ** 2) / sigma**2
            out[here] = table[(near - grid[0]).astype(np.int64)] + far
        return out


def _weights(sigma: float) -> tuple[Array, Array]:
    reach = int(REACH * sigma) + REACH
    grid = np.arange(-reach, reach + 1.0)
    return grid, np.exp(-0.5 * (grid / sigma) ** 2)


def _log_sum_of_weights(sigma: float) -> float:
    if sigma > WIDE:
        return float(np.log(sigma * np.sqrt(2 * np.pi)))
    return float(np.log(_weights(sigma)[1].sum()))


def _sum_of_squares(sigma: float) -> float:
    if sigma > WIDE:
        return sigma**2
    grid, weights = _weights(sigma)
    return float(grid**2 @ weights / weights.sum())


def gaussian(
    scale: Any, *, clamp: tuple[float, float] | None = None, rounded: float | None = None
) -> Mechanism:
    """Gaussian noise.

    Parameters
    ----------
    scale : float or array_like of shape (q,)
        Standard deviation.
    clamp : (float, float), optional
        Interval that the noisy value was moved into, such as ``(0, math.inf)`` for counts.
    rounded : float, optional
        Grid that it was rounded to before the clamp: 0.1 is one decimal.

    Raises
    ------
    DpmcError
        If an argument is refused.
    """
    return _mechanism(GAUSSIAN, scale, clamp, rounded)


def laplace(
    scale: Any, *, clamp: tuple[float, float] | None = None, rounded: float | None = None
) -> Mechanism:
    """Laplace noise with density ``exp(-abs(x) / scale) / (2 scale)``; else as `gaussian`."""
    return _mechanism(LAPLACE, scale, clamp, rounded)


def discrete_gaussian(scale: Any, *, clamp: tuple[float, float] | None = None) -> Mechanism:
    """Discrete Gaussian noise: integers weighed by ``exp(-k**2 / (2 scale**2))``, of integer sums.

    Else as `gaussian`.
    """
    return _mechanism(DISCRETE_GAUSSIAN, scale, clamp, None)


def geometric(scale: Any, *, clamp: tuple[float, float] | None = None) -> Mechanism:
    """Two-sided geometric noise: integers weighed by ``exp(-abs(k) / scale)``, of integer sums.

    Also called discrete Laplace noise. Else as `gaussian`.
    """
    return _mechanism(GEOMETRIC, scale, clamp, None)


def randomised_response(truth: float) -> Mechanism:
    """Randomised response: each record answers honestly, or with any other category.

    The value is the number of answers in each category, and the statistic says in which category a
    record is: 0 or 1 for two of them, else as many numbers as there are categories.

    Parameters
    ----------
    truth : float
        Probability of the honest answer; the others are equally likely.

    Raises
    ------
    DpmcError
        If it is no probability.
    """
    checks.positive("truth", truth)
    if truth > 1:
        raise DpmcError(f"`truth` must be a probability, got {truth!r}")
    return Mechanism(RANDOMISED_RESPONSE, np.array(float(truth)))


def _mechanism(
    name: str, scale: Any, clamp: tuple[float, float] | None, rounded: float | None
) -> Mechanism:
    checks.positive_scales("scale", scale)
    if not (np.min(scale) >= 1 / MOST_SCALE and np.max(scale) <= MOST_SCALE):
        raise DpmcError(f"`scale` must be from 1e-150 to 1e+150, got {scale!r}")
    checks.positive("rounded", rounded, optional=True)
    ends = checks.real_numbers((-np.inf, np.inf) if clamp is None else clamp)
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise DpmcError(f"`clamp` must be two numbers, the lower first, got {clamp!r}")
    return Mechanism(
        name, np.asarray(scale, dtype=float), (float(ends[0]), float(ends[1])), rounded
    )
