"""Symmetric dominating pairs (P, Q) of a single release.

A pair (P, Q) has the privacy loss ``l = ln dP/dQ``. It is symmetric when the loss
under P has the distribution of minus the loss under Q, so that its two tails at ``l >= 0``
say everything. Composing pairs that dominate each release in both directions
bounds the adaptive composition of the releases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.special import ndtr

from dpmc.privacy import accounting, events
from dpmc.types import Array

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts

_COVERED = "Gaussian releases, from all rows or from batches drawn without replacement"

_REACH = 14.0  # standard deviations: a tail of 8e-45 is put at infinite loss
MAX_LOSS = 700.0  # exp overflows beyond; what is above is put at infinite loss
_MAX_MEAN_LOSS = 5.0  # of one part of what is released from all rows


class Pair(Protocol):
    """A symmetric pair: a value, equal to another of the same distribution."""

    def __hash__(self) -> int: ...

    def tails(self, loss: Array) -> tuple[Array, Array]:
        """Return ``P(l > loss)`` and ``Q(l > loss)`` for losses >= 0, each of their shape."""

    def reach(self) -> float:
        """Loss beyond which there is next to nothing."""


def profile(pair: Pair, loss: Array) -> Array:
    """Divergence ``P(l > loss) - exp(loss) Q(l > loss)`` for losses >= 0."""
    upper, lower = pair.tails(loss)
    return np.maximum(upper - np.exp(loss) * lower, 0.0)


@dataclass(frozen=True)
class WithoutReplacement:
    """A Gaussian release from a batch drawn without replacement, under substitution.

    ``(1 - q) N(0, z**2) + q N(1, z**2)`` against ``N(0, z**2)`` where the loss is
    positive, and its mirror image where it is negative: neighbours have no order.
    The profile is ``q delta(ln(1 + (exp(loss) - 1) / q))`` with delta that of the
    release from the batch (Balle, Barthe and Gaboardi 2018, theorem 10), attained
    when all other rows sit at one extreme.

    Parameters
    ----------
    noise_multiplier : float
        z, noise standard deviation over substitution sensitivity.
    fraction : float
        q, batch size over rows; 1 is the Gaussian release itself.
    """

    noise_multiplier: float
    fraction: float

    def tails(self, loss: Array) -> tuple[Array, Array]:
        """See `Pair`."""
        z, q = self.noise_multiplier, self.fraction
        x = z * before_sampling(q, loss) + 1 / (2 * z)
        lower = ndtr(-x)
        return (1 - q) * lower + q * ndtr(1 / z - x), lower

    def reach(self) -> float:
        """See `Pair`."""
        z, q = self.noise_multiplier, self.fraction
        gaussian_loss = (_REACH + 1 / (2 * z)) / z
        return min(MAX_LOSS, after_sampling(q, gaussian_loss))


@dataclass(frozen=True)
class PoissonSubstitution:
    """A Gaussian release from a Poisson sample, one row of which is substituted by its opposite.

    ``(1 - q) N(0, s**2) + q N(1, s**2)`` against ``(1 - q) N(0, s**2) + q N(-1, s**2)``
    (Koskela, Jälkö and Honkela 2020, section 5).

    Parameters
    ----------
    noise_multiplier : float
        s, in units of the distance between the centre and either side.
    fraction : float
        q, the sampling probability.
    """

    noise_multiplier: float
    fraction: float

    def tails(self, loss: Array) -> tuple[Array, Array]:
        """See `Pair`."""
        s, q = self.noise_multiplier, self.fraction
        # The loss is reached at x with sinh(x / s**2 - loss / 2) = y, and
        # ln y = 1 / (2 s**2) + ln((1 - q) / q) + ln sinh(loss / 2).
        with np.errstate(divide="ignore"):
            log_y = 1 / (2 * s**2) + np.log((1 - q) / q) + np.log(np.sinh(loss / 2))
        middle = np.arcsinh(np.exp(np.minimum(log_y, 300.0)))
        scaled = loss / 2 + np.where(log_y < 300.0, middle, log_y + math.log(2))
        x = s * scaled
        centre = (1 - q) * ndtr(-x)
        return centre + q * ndtr(1 / s - x), centre + q * ndtr(-1 / s - x)

    def reach(self) -> float:
        """See `Pair`."""
        s, q = self.noise_multiplier, self.fraction
        x = _REACH * s + 1
        reach = after_sampling(q, (x - 0.5) / s**2) - after_sampling(q, (-x - 0.5) / s**2)
        return min(MAX_LOSS, reach)


def split(
    accountant: str,
    counts: Counts,
    of_batch: Callable[[float, float], Pair],
    covered: str = _COVERED,
) -> list[tuple[Pair, int]]:
    """Pairs of a composition of Gaussian releases, with how often each occurs.

    Releases from all rows add up to one N(mu, 2 mu), which is cut in parts of moderate loss.

    Parameters
    ----------
    accountant : str
        Named in the message.
    counts : mapping of DpEvent to int
    of_batch : callable ``(noise_multiplier, fraction) -> Pair``
        Pair of a release from a batch.
    covered : str
        The releases that the accountant covers, for its error message.
    """
    pairs: list[tuple[Pair, int]] = []
    precision = 0.0
    for event, count in counts.items():
        noise = events.noise_of(event)
        if noise is None:
            raise accounting.refuse(accountant, event, covered)
        if noise[1] == 1:
            precision += count / noise[0] ** 2
        elif count > 0:
            pairs.append((of_batch(*noise), count))
    if precision > 0:
        parts = math.ceil(precision / (2 * _MAX_MEAN_LOSS))
        pairs.append((WithoutReplacement(math.sqrt(parts / precision), 1.0), parts))
    return pairs


def before_sampling(fraction: float, loss: Array) -> Array:
    """Return ``ln(1 + (exp(loss) - 1) / fraction)`` for losses >= 0."""
    return np.where(
        loss < 1,
        np.log1p(np.expm1(np.minimum(loss, 1.0)) / fraction),
        loss + np.log1p((fraction - 1) * np.exp(-loss)) - math.log(fraction),
    )


def after_sampling(fraction: float, loss: float) -> float:
    """Return ``ln(1 - fraction + fraction exp(loss))``, the inverse of `before_sampling`."""
    if loss > 1:
        return loss + math.log(fraction + (1 - fraction) * math.exp(-loss))
    return math.log1p(fraction * math.expm1(loss))
