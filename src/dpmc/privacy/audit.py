"""Audit recorded releases again, by other code than what planned them.

Discretisation and composition are those of dp_accounting, and so are the profiles of
Gaussian releases; nothing is shared with `dpmc.privacy.accountants` but the reading of
events.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dpmc.privacy import events
from dpmc.privacy.events import BarkerEvent
from dpmc.types import Array, DpmcError, Guarantee

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts

NAME = "dp_accounting"
_SPACING_SHARE = 0.02  # of the standard deviation of one loss: raises its variance by 7e-5
_MAX_SPACING = 1e-3
_MAX_POINTS = 2**18  # of the grid on either side: a coarser one is only more pessimistic
_CELLS = 1600, 1024  # of the variance of the Barker test: per change over shift, and at most
_KNOTS = 2000  # of the profile of one batch
_REACH = 11.0  # standard deviations: a tail of 2e-28 is put at infinite loss
_MAX_LOSS = 600.0  # what is beyond is put at infinite loss
# Kinds of Gaussian releases from all rows that are composed one by one. More of them, as a ledger
# with a budget may have, are put together as the one release that they come to.
_MAX_KINDS = 8


def audit(counts: Counts, delta: float) -> Guarantee:
    """Guarantee of recorded releases under substitution of one row.

    For a release from a batch drawn without replacement, dp_accounting's pairs for
    adding and for removing a row from a Poisson sample are ``N(0, z^2)`` and the
    mixture ``(1 - q) N(0, z^2) + q N(1, z^2)`` in either order. With z relative to
    the substitution sensitivity, the larger of the two divergences is at every
    epsilon the worst case of sampling without replacement under substitution, in
    both directions. That profile is composed by dp_accounting. So is that of a release
    of the Barker test, which is bounded over cells of the change of variance.

    Parameters
    ----------
    counts : mapping of event to int
        As `dpmc.privacy.Ledger` has them, or `dpmc.privacy.events.parse` reads
        them back from stored records.
    delta : float
        In (0, 1).

    Returns
    -------
    Guarantee
        An upper bound, infinite where delta is below what the numerics resolve.
    """
    return composed(counts, delta)


def composed(counts: Counts, delta: float, bounded: Sequence[Bounded] = ()) -> Guarantee:
    """Guarantee of recorded releases, and of others with known bounds.

    Parameters
    ----------
    counts, delta
        See `audit`.
    bounded : sequence of Bounded
    """
    from dp_accounting.pld import pld_pmf

    if not 0 < delta < 1:
        raise DpmcError(f"`delta` must be in (0, 1), got {delta}")
    releases = [*_releases(_together(counts)), *((one, 1) for one in bounded)]
    if not releases:
        return Guarantee(0.0, delta, accountant=NAME)
    spacing = _spacing(releases)
    total: Any = None
    for release, count in releases:
        one = _loss_distribution(release, spacing).self_compose(count)
        total = one if total is None else pld_pmf.compose_pmfs(total, one, 1e-15)
    return Guarantee(float(total.get_epsilon_for_delta(delta)), delta, accountant=NAME)


class _Release(Protocol):
    """A release, as far as the audit needs to know it."""

    def variance(self) -> float:
        """Variance of its privacy loss, roughly."""

    def reach(self) -> float:
        """Loss beyond which there is next to nothing, on either side."""

    def profile(self, loss: Array) -> Array:
        """Upper bound on the divergence at losses on both sides of 0."""


@dataclass(frozen=True)
class Bounded:
    """A release of which only (epsilon, delta) is known, at its least private.

    That is randomised response of a bit, which reveals the bit itself with probability delta
    [Kairouz, Oh and Viswanath 2015]: no other release with these numbers has a larger divergence
    anywhere.

    Parameters
    ----------
    epsilon : float
        Finite, >= 0.
    delta : float
        In [0, 1).
    """

    epsilon: float
    delta: float

    def variance(self) -> float:
        """Variance of its privacy loss, roughly."""
        return self.epsilon**2

    def reach(self) -> float:
        """Largest finite loss."""
        return self.epsilon

    def profile(self, loss: Array) -> Array:
        """Divergence at losses on both sides of 0."""
        far = np.minimum(loss - self.epsilon, 0.0)  # e^loss - e^epsilon, over e^epsilon
        inside = -np.expm1(far) / (1 + math.exp(-self.epsilon))
        kept = np.where(loss < -self.epsilon, -np.expm1(np.minimum(loss, 0.0)), inside)
        return np.asarray(self.delta + (1 - self.delta) * kept, dtype=np.float64)


@dataclass(frozen=True)
class _Gaussian:
    """A Gaussian release; the sampling fraction is 1 where it is from all rows."""

    noise_multiplier: float
    fraction: float

    def _pairs(self) -> list[Any]:
        from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss

        return [
            GaussianPrivacyLoss(
                self.noise_multiplier, sampling_prob=self.fraction, adjacency_type=adjacency
            )
            for adjacency in (AdjacencyType.ADD, AdjacencyType.REMOVE)
        ]

    def variance(self) -> float:
        return math.log1p(self.fraction**2 * math.expm1(min(700.0, self.noise_multiplier**-2)))

    def reach(self) -> float:
        bounds = [pair.connect_dots_bounds() for pair in self._pairs()]
        return float(max(max(bound.epsilon_upper, -bound.epsilon_lower) for bound in bounds))

    def profile(self, loss: Array) -> Array:
        divergences = [pair.get_delta_for_epsilon(loss) for pair in self._pairs()]
        return np.asarray(np.max(divergences, axis=0), dtype=np.float64)


@dataclass(frozen=True)
class _Barker:
    """A release of the Barker test, in units of its smallest noise variance.

    One row of the batch moves the mean by `shift` at most. Of the two variances the
    smaller is 1 at worst, and the other is at most ``1 + spread``.
    """

    shift: float
    spread: float
    fraction: float

    @classmethod
    def of(cls, event: BarkerEvent) -> _Barker:
        b, largest = event.batch_size, event.clip_scale**2
        floor = event.noise_variance - largest
        return cls(
            math.sqrt(4 * largest / (b * floor)),
            4 * largest * (b - 1) / (b**2 * floor),
            b / event.num_rows,
        )

    def variance(self) -> float:
        return math.log1p(self.fraction**2 * math.expm1(min(700.0, self.shift**2)))

    def reach(self) -> float:
        x = self.shift + _REACH * math.sqrt(1 + self.spread)
        loss = (x**2 - _REACH**2) / 2
        if loss > _MAX_LOSS:
            return _MAX_LOSS
        return math.log1p(self.fraction * math.expm1(loss))

    def profile(self, loss: Array) -> Array:
        size = np.abs(loss)
        with np.errstate(over="ignore"):
            gamma = 1 + np.expm1(size) / self.fraction
        amplified = self.fraction * np.interp(gamma, *self._of_batch())
        # Neighbours have no order: the profile below 0 is that above it, mirrored.
        return np.where(loss >= 0, amplified, -np.expm1(-size) + np.exp(-size) * amplified)

    def _of_batch(self) -> tuple[Array, Array]:
        """Values of gamma from 1 and an upper bound on the divergence of one batch there.

        For any change of variance within a cell, one density is at most c times, or at
        least 1 / c times, that at an end of the cell, with c^2 the ratio of its ends;
        the divergence is then at most c times that of the end at ``gamma / c``.
        """
        cells = min(1 + int(_CELLS[0] * self.spread / self.shift), _CELLS[1])
        edges = 1 + np.linspace(0.0, self.spread, cells + 1)
        knots, _ = _divergence(self.shift, float(edges[-1]), 1.0)
        knots = np.append(1.0, knots[knots > 1])
        bound = np.zeros_like(knots)
        for low, high in pairwise(edges):
            c = math.sqrt(high / low)
            for of_p, of_q in ((high, 1.0), (1.0, low)):
                bound = np.maximum(
                    bound, c * np.interp(knots / c, *_divergence(self.shift, of_p, of_q))
                )
        return knots, np.minimum(bound, 1.0)


def _divergence(shift: float, of_p: float, of_q: float) -> tuple[Array, Array]:
    """Values of gamma and the divergence there of N(shift, of_p) from N(0, of_q).

    Between them the divergence is below its chord: it is convex in gamma. The ratio of
    the densities is the same at x and at its mirror image about the centre.
    """
    from scipy.stats import norm

    sd_p, sd_q = math.sqrt(of_p), math.sqrt(of_q)
    x = np.linspace(0.0, shift + _REACH * sd_p, _KNOTS)
    centre = math.inf if of_p == of_q else shift * of_q / (of_q - of_p)
    x = x[x < centre] if of_p < of_q else x
    log_gamma = norm.logpdf(x, shift, sd_p) - norm.logpdf(x, 0, sd_q)
    x, log_gamma = x[log_gamma < _MAX_LOSS], log_gamma[log_gamma < _MAX_LOSS]
    inside, outside = norm.sf(x, shift, sd_p), norm.sf(x, 0, sd_q)
    mirrored = 2 * centre - x
    if of_p < of_q:
        inside, outside = (
            inside - norm.sf(mirrored, shift, sd_p),
            outside - norm.sf(mirrored, 0, sd_q),
        )
    elif of_p > of_q:
        inside, outside = (
            inside + norm.cdf(mirrored, shift, sd_p),
            outside + norm.cdf(mirrored, 0, sd_q),
        )
    gamma = np.exp(log_gamma)
    values = np.maximum(inside - gamma * outside, 0.0)
    return np.append(0.0, gamma), np.append(1.0, values)


def _releases(counts: Counts) -> list[tuple[_Release, int]]:
    """Each kind of release with its count."""
    releases: list[tuple[_Release, int]] = []
    for event, count in counts.items():
        if isinstance(event, BarkerEvent):
            releases += [(_Barker.of(event), int(count))] if count else []
            continue
        noise = events.noise_of(event)
        if noise is None:
            raise DpmcError(
                "the audit covers Gaussian releases, from all rows or from batches drawn without "
                f"replacement, and those of the Barker test only, got {events.text(event)}"
            )
        if count and noise[1] == 1:  # k releases are one with the noise divided by sqrt(k)
            releases.append((_Gaussian(noise[0] / math.sqrt(count), 1.0), 1))
        elif count:
            releases.append((_Gaussian(*noise), int(count)))
    return releases


def _together(counts: Counts) -> Counts:
    """Counts with many kinds of Gaussian releases from all rows put together as one."""
    whole = {
        event: noise[0]
        for event, count in counts.items()
        if count and events.is_of_all_rows(event) and (noise := events.noise_of(event))
    }
    if len(whole) <= _MAX_KINDS:
        return counts
    cost = math.fsum(counts[event] / multiplier**2 for event, multiplier in whole.items())
    rest = {event: count for event, count in counts.items() if event not in whole}
    return {events.gaussian(1 / math.sqrt(cost * (1 + 1e-12))): 1, **rest}


def _spacing(releases: Sequence[tuple[_Release, int]]) -> float:
    """Grid spacing small against the standard deviation of the average loss."""
    number = sum(count for _, count in releases)
    variance = sum(count * release.variance() for release, count in releases)
    fine = min(_MAX_SPACING, _SPACING_SHARE * math.sqrt((variance or 1.0) / number))
    return max(fine, max(release.reach() for release, _ in releases) / _MAX_POINTS)


def _loss_distribution(release: _Release, spacing: float) -> Any:
    """Dp_accounting's pessimistic distribution of the symmetric profile of one release."""
    from dp_accounting.pld import pld_pmf

    last = max(1, math.ceil(release.reach() / spacing))
    losses = spacing * np.arange(-last, last + 1, dtype=np.float64)
    profile = np.clip(release.profile(losses), 0.0, 1.0)
    falling = np.maximum.accumulate(profile[::-1])[::-1]  # but for rounding it does
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(spacing, -last, last, falling)
