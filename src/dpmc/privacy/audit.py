"""Audit recorded releases again, by other code than what planned them.

Profiles, discretisation and composition are those of dp_accounting; nothing is
shared with `dpmc.privacy.accountants` but the reading of events.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.privacy import events
from dpmc.types import DpmcError, Guarantee

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts

NAME = "dp_accounting"
_SPACING_SHARE = 0.02  # of the standard deviation of one loss: raises its variance by 7e-5
_MAX_SPACING = 1e-3


def audit(counts: Counts, delta: float) -> Guarantee:
    """Return the guarantee of recorded releases under substitution of one row.

    For a release from a batch drawn without replacement, dp_accounting's pairs for
    adding and for removing a row from a Poisson sample are ``N(0, z^2)`` and the
    mixture ``(1 - q) N(0, z^2) + q N(1, z^2)`` in either order. With z relative to
    the substitution sensitivity, the larger of the two divergences is at every
    epsilon the worst case of sampling without replacement under substitution, in
    both directions. That profile is composed by dp_accounting.

    Parameters
    ----------
    counts : mapping of DpEvent to int
        As `dpmc.privacy.Ledger` has them, or `dpmc.privacy.events.parse` reads
        them back from stored records.
    delta : float
        In (0, 1).

    Returns
    -------
    Guarantee
        An upper bound, infinite where delta is below what the numerics resolve.

    Raises
    ------
    DpmcError
        If an event is not a Gaussian release, from all rows or a batch.
    """
    from dp_accounting.pld import pld_pmf

    if not 0 < delta < 1:
        raise DpmcError(f"delta: {delta}, allowed a number in (0, 1)")
    releases = _releases(counts)
    if not releases:
        return Guarantee(0.0, delta, accountant=NAME)
    spacing = _spacing(releases)
    total: Any = None
    for noise_multiplier, fraction, count in releases:
        one = _loss_distribution(noise_multiplier, fraction, spacing).self_compose(count)
        total = one if total is None else pld_pmf.compose_pmfs(total, one, 1e-15)
    return Guarantee(float(total.get_epsilon_for_delta(delta)), delta, accountant=NAME)


def _releases(counts: Counts) -> list[tuple[float, float, int]]:
    """Return noise multiplier, sampling fraction and count of each event."""
    found = []
    for event, count in counts.items():
        noise = events.noise_of(event)
        if noise is None:
            raise DpmcError(
                f"audit: event {events.text(event)}, allowed Gaussian releases, from all rows or "
                "from batches drawn without replacement"
            )
        if count and noise[1] == 1:  # k releases are one with the noise divided by sqrt(k)
            found.append((noise[0] / math.sqrt(count), 1.0, 1))
        elif count:
            found.append((*noise, int(count)))
    return found


def _spacing(releases: list[tuple[float, float, int]]) -> float:
    """Return a grid spacing small against the standard deviation of the average loss."""
    number = sum(count for _, _, count in releases)
    variance = sum(
        count * math.log1p(fraction**2 * math.expm1(min(700.0, noise**-2)))
        for noise, fraction, count in releases
    )
    return min(_MAX_SPACING, _SPACING_SHARE * math.sqrt(variance / number))


def _loss_distribution(noise_multiplier: float, fraction: float, spacing: float) -> Any:
    """Return dp_accounting's pessimistic distribution of the symmetric profile of one release."""
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss

    pairs = [
        GaussianPrivacyLoss(noise_multiplier, sampling_prob=fraction, adjacency_type=adjacency)
        for adjacency in (AdjacencyType.ADD, AdjacencyType.REMOVE)
    ]
    bounds = [pair.connect_dots_bounds() for pair in pairs]
    reach = max(max(bound.epsilon_upper, -bound.epsilon_lower) for bound in bounds)
    last = math.ceil(reach / spacing)
    grid = spacing * np.arange(-last, last + 1)
    profile = np.max([pair.get_delta_for_epsilon(grid) for pair in pairs], axis=0)
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
        spacing, -last, last, np.clip(profile, 0.0, 1.0)
    )
