"""The privacy loss of steps on one row each: dots connected, composed by dp_accounting.

A second opinion on the accountant ``subsampled``, which shares no line with it: here the
profile is differenced twice where that one bins two tails, and the sum is taken without a
tilt. It is refused where it does not settle; ``subsampled`` needs fewer points and does not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr

from dpmc.types import Array, DpmcError
from dpmc.types.roots import smallest_epsilon

MAX_POINTS = 2**21  # at positive losses
TOLERANCE = 0.005  # by which halving the grid may move epsilon
_MAX_HALVINGS = 4
_POINTS_PER_DEVIATION = 4
_LARGEST_LOSS = 600.0  # whose exponential is finite
_CUT_SHARE = 1e-4  # of delta: what is put at infinite loss in all steps together


def profile(noise_multiplier: float, fraction: float, loss: Array) -> Array:
    """Hockey-stick divergence of one step at losses >= 0.

    Parameters
    ----------
    noise_multiplier : float
        Noise standard deviation over the sensitivity of the released vector.
    fraction : float
        1 / N for one row drawn uniformly out of N.
    loss : ndarray of shape (m,)

    Returns
    -------
    ndarray of shape (m,)
        ``q delta(ln(1 + (exp(loss) - 1) / q))`` with delta of the Gaussian release itself
        [Balle, Barthe and Gaboardi 2018, theorem 10]. It bounds both directions, since
        neighbours have no order.
    """
    z = noise_multiplier
    base = np.log1p(np.expm1(loss) / fraction)
    lower = np.exp(base + log_ndtr(-0.5 / z - base * z))
    return np.asarray(fraction * np.maximum(ndtr(0.5 / z - base * z) - lower, 0.0))


def masses(noise_multiplier: float, fraction: float, gap: float, num_points: int) -> Array:
    """Loss distribution of one step on a grid: never below the truth in any profile.

    The masses at positive losses connect the dots of the profile [Doroshenko et al. 2022,
    algorithm 1]. Those at negative losses follow from symmetry, ``p(-x) = exp(-x) p(x)``,
    and the rest sits at 0: differences of the profile at negative losses would lose all
    digits, and what is rounded there is multiplied by the number of steps.

    Parameters
    ----------
    noise_multiplier, fraction : float
        See `profile`.
    gap : float
        Of the grid.
    num_points : int
        m, at positive losses; at least 2.

    Returns
    -------
    ndarray of shape (2 m + 2,)
        At the losses ``-m gap, ..., m gap`` and, last, at infinity.
    """
    loss = gap * np.arange(num_points + 1, dtype=np.float64)
    delta = np.minimum.accumulate(profile(noise_multiplier, fraction, loss))
    steps = np.diff(delta)
    above = np.empty(num_points)
    above[:-1] = (steps[1:] - math.exp(gap) * steps[:-1]) / math.expm1(gap)
    above[-1] = steps[-1] / math.expm1(-gap)
    above = np.maximum(above, 0.0)
    below = above * np.exp(-loss[1:])
    infinite = float(delta[-1])
    zero = 1.0 - infinite - float(above.sum()) - float(below.sum())
    return np.concatenate([below[::-1], [zero], above, [infinite]])


def delta(
    noise_multiplier: float, num_rows: int, num_steps: int, epsilon: float, cut: float
) -> float:
    """Delta at `epsilon` on the second grid that `epsilon` tries, without its check.

    Parameters
    ----------
    noise_multiplier : float
    num_rows, num_steps : int
        Rows N, and how often one of them is drawn uniformly, each time afresh.
    epsilon : float
        At least 0.
    cut : float
        A delta of interest: a small share of it is put at infinite loss.
    """
    gap = _first_gap(noise_multiplier, num_rows) / 2
    return _at(_composed(noise_multiplier, num_rows, num_steps, cut, gap), epsilon)


def epsilon(noise_multiplier: float, num_rows: int, num_steps: int, delta: float) -> float:
    """Epsilon at `delta`, on a grid that halving moves by at most `TOLERANCE`.

    Parameters
    ----------
    noise_multiplier, num_rows, num_steps
        See `delta`.
    delta : float
        In (0, 1).
    """
    gap = _first_gap(noise_multiplier, num_rows)
    coarse = math.inf
    for _ in range(1 + _MAX_HALVINGS):
        composed = _composed(noise_multiplier, num_rows, num_steps, delta, gap)
        fine = smallest_epsilon(lambda value: _at(composed, value), delta)  # noqa: B023
        if abs(fine - coarse) <= TOLERANCE * fine:
            return fine
        coarse, gap = fine, gap / 2
    raise DpmcError(
        f"accountant connect_dots: halving the grid must move epsilon by at most {TOLERANCE:.1%}, "
        f"got more with {num_steps} steps; the accountant subsampled needs fewer points"
    )


def _first_gap(noise_multiplier: float, num_rows: int) -> float:
    """Share of the standard deviation of the loss of one step.

    A grid raises the variance by gap**2 / 6.
    """
    deviation = math.sqrt(math.expm1(min(noise_multiplier**-2, 600.0))) / num_rows
    return min(deviation, 1.0) / _POINTS_PER_DEVIATION


def _composed(
    noise_multiplier: float, num_rows: int, num_steps: int, delta: float, gap: float
) -> Any:
    from dp_accounting.pld.pld_pmf import DensePLDPmf

    losses = np.geomspace(gap, _LARGEST_LOSS, 4000)
    beyond = profile(noise_multiplier, 1 / num_rows, losses) * num_steps > _CUT_SHARE * delta
    if beyond[-1]:
        raise DpmcError(
            f"accountant connect_dots: `noise_multiplier` must keep the loss of a step below "
            f"{_LARGEST_LOSS:g}, got {noise_multiplier:g}"
        )
    num_points = max(2, math.ceil(float(losses[np.argmin(beyond)]) / gap))
    if num_points > MAX_POINTS:
        raise DpmcError(
            f"accountant connect_dots: the grid must have at most {MAX_POINTS} points, got "
            f"{num_points} at num_rows {num_rows}; the accountant subsampled needs fewer"
        )
    *finite, infinite = masses(noise_multiplier, 1 / num_rows, gap, num_points)
    one = DensePLDPmf(gap, -num_points, np.array(finite), float(infinite), True)
    return one.self_compose(num_steps)


def _at(composed: Any, epsilon: float) -> float:
    return max(0.0, float(composed.get_delta_for_epsilon(epsilon)))
