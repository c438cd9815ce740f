"""Releases computed from all rows, whose privacy loss adds up in one number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmc.privacy import accounting, events

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts


def mean_loss(counts: Counts) -> float:
    """Mu, where the privacy loss of the whole composition is N(mu, 2 mu).

    Parameters
    ----------
    counts : mapping of DpEvent to int
        Gaussian events only.

    Returns
    -------
    float
        The sum of ``count / (2 noise_multiplier**2)`` (raisa2021dphmc, theorem 2.4).
    """
    total = 0.0
    for event, count in counts.items():
        noise = events.noise_of(event)
        if noise is None or noise[1] < 1:
            raise accounting.refuse("gaussian", event, "Gaussian releases computed from all rows")
        total += count / (2 * noise[0] ** 2)
    return total
