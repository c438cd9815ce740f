"""Numerical composition of symmetric pairs: never below the truth, and close to it.

The privacy loss of each release is put on a grid so that the masses of both
distributions are kept in every cell ("connect the dots", Doroshenko et al. 2022),
which can only raise delta. The distribution of a sum of losses is then had from one
Fourier transform per kind of release. Before the transform the distribution is tilted,
``p(l) exp(t l)`` with the t that centres the sum on epsilon: rounding and
wrapping around then cost a share of delta, not an amount that may exceed it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import fft

from dpmc.privacy.accountants._pairs import Pair, profile
from dpmc.types import Array

GRID_TOLERANCE = 4e-5  # share by which the grid may raise the variance of the loss
HALF_WIDTH = 8.0  # of the grid of the sum, in tilted standard deviations
MAX_SIZE = 2**23  # points; a coarser grid is only more pessimistic
TAIL_SHARE = 1e-7  # of delta that may lie above the grid of the sum before it is widened
WRAP_SHARE = 1e-4  # of delta that may be wrapped around from there, where the tilt magnifies it
NEGLIGIBLE = 1e-18  # delta that nobody asks for
LOG_NEGLIGIBLE = -60.0


@dataclass(frozen=True)
class Losses:
    """The loss of one release on a grid.

    Parameters
    ----------
    spacing : float
    masses : ndarray of shape (2 m + 1,)
        Mass of P at the losses ``-m .. m`` times `spacing`.
    infinite : float
        Mass of P at infinite loss.
    """

    spacing: float
    masses: Array
    infinite: float

    @classmethod
    def of(cls, pair: Pair, spacing: float) -> Losses:
        """Put a pair on a grid, keeping the masses of P and Q of every cell.

        In a cell from a to b with masses A and B, what goes to b is
        ``(A - exp(a) B) / (1 - exp(a - b))`` and the rest goes to a.
        """
        m = max(1, math.ceil(pair.reach() / spacing))
        grid = spacing * np.arange(m + 1, dtype=np.float64)
        upper, lower = pair.tails(grid)
        of_p, of_q = upper[:-1] - upper[1:], lower[:-1] - lower[1:]
        up = (of_p - np.exp(grid[:-1]) * of_q) / -math.expm1(-spacing)
        up = np.clip(up, 0.0, of_p)
        mirrored = np.clip((of_q - np.exp(-grid[1:]) * of_p) / -math.expm1(-spacing), 0.0, of_q)
        masses = np.zeros(2 * m + 1)
        masses[m + 1 :] += up
        masses[m:-1] += of_p - up
        masses[m - 1 :: -1] += of_q - mirrored
        masses[m:0:-1] += mirrored
        infinite = float(profile(pair, grid[-1:])[0])
        masses[-1] += upper[-1] - infinite
        masses[0] += lower[-1]
        masses[m] = 0.0  # what is left sits at loss 0: the total is one to the last bit
        masses[m] = 1.0 - infinite - float(masses.sum())
        return cls(spacing, masses, infinite)

    @property
    def grid(self) -> Array:
        """The losses, of shape (2 m + 1,)."""
        m = len(self.masses) // 2
        return self.spacing * np.arange(-m, m + 1, dtype=np.float64)

    def tilted(self, tilt: float) -> tuple[Array, float]:
        """Masses times ``exp(tilt * loss)``, scaled to sum 1, and the log of their sum."""
        exponent = tilt * self.grid
        exponent -= exponent[np.flatnonzero(self.masses)[-1]]
        weights = self.masses * np.exp(np.minimum(exponent, 0.0))
        total = float(weights.sum())
        return weights / total, math.log(total) - float(exponent[len(exponent) // 2])


@lru_cache(maxsize=4)
def _losses(pair: Pair, spacing: float) -> Losses:
    """Loss on a grid, kept for the next count or epsilon of a search."""
    return Losses.of(pair, spacing)


@dataclass(frozen=True)
class _Sketch:
    """Losses and masses of a pair on a geometric scale: for choosing a grid, not for proofs."""

    losses: Array
    masses: Array

    @classmethod
    def of(cls, pair: Pair) -> _Sketch:
        edges = pair.reach() * np.concatenate([[0.0], np.geomspace(1e-7, 1.0, 2000)])
        middle = (edges[1:] + edges[:-1]) / 2
        upper, lower = pair.tails(edges)
        of_p, of_q = upper[:-1] - upper[1:], lower[:-1] - lower[1:]
        rest = max(0.0, 1.0 - float(of_p.sum() + of_q.sum()))
        losses = np.concatenate([-middle[::-1], [0.0], middle])
        return cls(losses, np.concatenate([of_q[::-1], [rest], of_p]))

    def mean(self, tilt: float) -> float:
        """Mean of the tilted loss."""
        return float(self._weights(tilt) @ self.losses)

    def variance(self, tilt: float) -> float:
        """Variance of the tilted loss."""
        weights = self._weights(tilt)
        return float(weights @ (self.losses - float(weights @ self.losses)) ** 2)

    def _weights(self, tilt: float) -> Array:
        exponent = tilt * self.losses
        weights: Array = self.masses * np.exp(exponent - exponent.max())
        weights /= weights.sum()
        return weights


def compose(pairs: Sequence[tuple[Pair, int]], epsilon: float) -> float:
    """Upper bound on delta at `epsilon` of a composition.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Each with how often it occurs, at least once.
    epsilon : float
        At least 0.

    Returns
    -------
    float
        In [0, 1]. Iteration counts derived from it are too small by about 1e-4 of
        themselves, up to some 1e8 releases.
    """
    sketches = [(_Sketch.of(pair), count) for pair, count in pairs]
    longest = max(pair.reach() for pair, _ in pairs)
    spacing = max(_spacing(sketches), 4 * longest / MAX_SIZE)
    tilt, deviation = _centre(sketches, epsilon)
    half = HALF_WIDTH * deviation + 4 * spacing
    while True:
        size = 2 * fft.next_fast_len(math.ceil(min(half / spacing, MAX_SIZE / 2)), real=True)
        step = max(spacing, 2 * half / size)
        losses = [(_losses(pair, step), count) for pair, count in pairs]
        if any(loss.infinite >= 1 for loss, _ in losses):
            return 1.0
        body = _tilted_delta(losses, tilt, epsilon, size)
        top = epsilon + step * (size // 2)
        tail = _mass_above(losses, (tilt, _centre(sketches, top)[0]), top)
        wrapped = tail * math.exp(min(700.0, tilt * (top - epsilon)))
        enough = (
            tail <= TAIL_SHARE * body + NEGLIGIBLE and wrapped <= WRAP_SHARE * body + NEGLIGIBLE
        )
        if enough or half > 64 * (deviation + longest):
            break
        half *= 4
    finite = sum(count * math.log1p(-loss.infinite) for loss, count in losses)
    return min(1.0, body + tail - math.expm1(finite))


def _spacing(sketches: Sequence[tuple[_Sketch, int]]) -> float:
    """Spacing at which the grid adds `GRID_TOLERANCE` of the variance of the sum.

    A grid raises the variance of one loss by spacing**2 / 6 on average.
    """
    total = sum(count for _, count in sketches)
    variance = sum(count * sketch.variance(0.0) for sketch, count in sketches)
    return math.sqrt(6 * GRID_TOLERANCE * variance / total)


def _centre(sketches: Sequence[tuple[_Sketch, int]], epsilon: float) -> tuple[float, float]:
    """Tilt that centres the sum on `epsilon`, and the standard deviation then."""

    def mean(tilt: float) -> float:
        return sum(count * sketch.mean(tilt) for sketch, count in sketches)

    longest = max(float(sketch.losses[-1]) for sketch, _ in sketches)
    low, high = 1e-6, 1.0
    while mean(high) < epsilon and high * longest < 600:
        low, high = high, 2 * high
    for _ in range(30):
        middle = (low + high) / 2
        if mean(middle) < epsilon:
            low = middle
        else:
            high = middle
    return low, math.sqrt(sum(count * sketch.variance(low) for sketch, count in sketches))


def _tilted_delta(
    losses: Sequence[tuple[Losses, int]], tilt: float, epsilon: float, size: int
) -> float:
    """Delta of the finite losses, on a periodic grid of `size` (even) points.

    The sum over losses x in (epsilon, epsilon + half the period] of
    ``p(x) (1 - exp(epsilon - x))`` is taken in the frequency domain, where the
    weights are two geometric series and few frequencies matter.
    """
    log_scale, spectra = -tilt * epsilon, list[npt.NDArray[np.complex128]]()
    large = np.ones(size // 2 + 1, dtype=bool)
    for loss, count in losses:
        weights, log_total = loss.tilted(tilt)
        log_scale += count * log_total
        m = len(weights) // 2
        folded = np.bincount(np.arange(-m, m + 1) % size, weights, minlength=size)
        spectrum = fft.rfft(folded)
        # No factor exceeds 1 by more than rounding: one alone shows that a product is negligible.
        large &= spectrum.real**2 + spectrum.imag**2 > math.exp(2 * (LOG_NEGLIGIBLE - 1) / count)
        spectra.append(spectrum)
    kept = np.flatnonzero(large)
    log_spectrum = np.zeros(len(kept), dtype=np.complex128)
    for spectrum, (_, count) in zip(spectra, losses, strict=True):
        log_spectrum += count * np.log(spectrum[kept])
    enough = log_spectrum.real > LOG_NEGLIGIBLE
    kept, log_spectrum = kept[enough], log_spectrum[enough]
    spacing = losses[0][0].spacing
    first = math.floor(epsilon / spacing) + 1
    turn = np.exp(2j * math.pi * ((kept * first) % size) / size)
    ahead = first * spacing - epsilon
    weight = _series(tilt, ahead, spacing, kept, size) - _series(
        tilt + 1, ahead, spacing, kept, size
    )
    terms = (np.exp(log_spectrum) * turn * weight).real
    terms[(kept > 0) & (kept < size // 2)] *= 2
    number = sum(count for _, count in losses)
    rounding = 1e-13 + 1e-15 * number
    return math.exp(min(log_scale, 700.0)) * (max(0.0, float(terms.sum()) / size) + rounding)


def _series(
    rate: float, ahead: float, spacing: float, frequencies: npt.NDArray[np.intp], size: int
) -> npt.NDArray[np.complex128]:
    """Transform of ``exp(-rate x)``, x from `ahead` over half a period."""
    half = size // 2
    one = -np.expm1(-rate * spacing + 2j * math.pi * frequencies / size)
    sign = np.where(frequencies % 2, -1.0, 1.0)
    series: npt.NDArray[np.complex128] = (
        math.exp(-rate * ahead) * (1 - sign * math.exp(-rate * spacing * half)) / one
    )
    return series


def _mass_above(losses: Sequence[tuple[Losses, int]], rates: Sequence[float], top: float) -> float:
    """Chernoff's bound on the probability that the sum of the losses exceeds `top`."""
    logs = [sum(n * loss.tilted(rate)[1] for loss, n in losses) - rate * top for rate in rates]
    return math.exp(min(0.0, *logs))
