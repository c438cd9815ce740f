"""What a release costs: the frozen event values of dp_accounting, and how often each occurs.

Every noise multiplier is the standard deviation of the noise over the sensitivity
under substitution of one row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from dpmc.types import DpmcError

if TYPE_CHECKING:
    from dp_accounting import DpEvent

Counts = Mapping["DpEvent", int]

_GAUSSIAN = re.compile(r"gaussian\(([^,()]+)\)")
_SAMPLED = re.compile(r"sampled_gaussian\(([^,()]+), batch_size=(\d+), num_rows=(\d+)\)")


@lru_cache(maxsize=4096)
def gaussian(noise_multiplier: float) -> DpEvent:
    """Return the event of one Gaussian release computed from all rows.

    Parameters
    ----------
    noise_multiplier : float
        Noise standard deviation over substitution sensitivity, finite and > 0.

    Returns
    -------
    dp_accounting.GaussianDpEvent

    Raises
    ------
    DpmcError
        If `noise_multiplier` is not finite and positive.
    """
    from dp_accounting import GaussianDpEvent  # takes seconds: only when an event is made

    if not (math.isfinite(noise_multiplier) and noise_multiplier > 0):
        raise DpmcError(f"noise_multiplier: {noise_multiplier}, allowed a finite number > 0")
    return GaussianDpEvent(float(noise_multiplier))


@lru_cache(maxsize=4096)
def sampled_gaussian(noise_multiplier: float, batch_size: int, num_rows: int) -> DpEvent:
    """Return the event of one Gaussian release computed from a batch.

    Parameters
    ----------
    noise_multiplier : float
        Noise standard deviation over the substitution sensitivity of the batch
        quantity (twice a clip bound, not the bound itself), finite and > 0.
    batch_size : int
        Rows drawn uniformly without replacement, afresh for every release.
    num_rows : int
        Rows to draw from, at least `batch_size`.

    Returns
    -------
    dp_accounting.SampledWithoutReplacementDpEvent

    Raises
    ------
    DpmcError
        If a value is outside of what is allowed.
    """
    from dp_accounting import SampledWithoutReplacementDpEvent

    if not 1 <= batch_size <= num_rows:
        raise DpmcError(f"batch_size: {batch_size}, allowed 1 to num_rows = {num_rows}")
    event = gaussian(noise_multiplier)
    return SampledWithoutReplacementDpEvent(int(num_rows), int(batch_size), event)


def noise_of(event: DpEvent) -> tuple[float, float] | None:
    """Return what the accountants of this package read of an event.

    Returns
    -------
    tuple of float or None
        The noise multiplier and the sampling fraction, 1 for a release from all
        rows; None for any event that is not one of this module's.
    """
    from dp_accounting import GaussianDpEvent, SampledWithoutReplacementDpEvent

    fraction = 1.0
    if isinstance(event, SampledWithoutReplacementDpEvent):
        fraction = event.sample_size / event.source_dataset_size
        event = event.event
    if not isinstance(event, GaussianDpEvent) or not 0 < fraction <= 1:
        return None
    if not (math.isfinite(event.noise_multiplier) and event.noise_multiplier > 0):
        return None
    return float(event.noise_multiplier), fraction


def text(event: DpEvent) -> str:
    """Return an event as text that `parse` reads back exactly."""
    from dp_accounting import GaussianDpEvent, SampledWithoutReplacementDpEvent

    if isinstance(event, GaussianDpEvent):
        return f"gaussian({event.noise_multiplier!r})"
    if isinstance(event, SampledWithoutReplacementDpEvent) and noise_of(event):
        return (
            f"sampled_gaussian({event.event.noise_multiplier!r}, "
            f"batch_size={event.sample_size}, num_rows={event.source_dataset_size})"
        )
    return repr(event)


def parse(records: Iterable[tuple[str, int]]) -> dict[DpEvent, int]:
    """Read the records of a stored ledger back into counts.

    Parameters
    ----------
    records : iterable of (str, int)
        Event texts as `text` writes them, with counts.

    Returns
    -------
    dict of DpEvent to int

    Raises
    ------
    DpmcError
        If a text names no known event, or a count is negative.
    """
    counts: dict[DpEvent, int] = {}
    for line, count in records:
        if found := _GAUSSIAN.fullmatch(line):
            event = gaussian(float(found[1]))
        elif found := _SAMPLED.fullmatch(line):
            event = sampled_gaussian(float(found[1]), int(found[2]), int(found[3]))
        else:
            raise DpmcError(f"event: {line!r}, allowed gaussian(...) or sampled_gaussian(...)")
        if count < 0:
            raise DpmcError(f"count of {line}: {count}, allowed an integer >= 0")
        counts[event] = counts.get(event, 0) + int(count)
    return counts


@dataclass(frozen=True)
class Releases:
    """What an algorithm releases in one chain.

    Parameters
    ----------
    initial : tuple of (DpEvent, int)
        Released once, before the first iteration.
    per_iteration : tuple of (DpEvent, int)
        Released in every iteration; at least one.

    Raises
    ------
    DpmcError
        If a count is negative or an iteration releases nothing.
    """

    initial: tuple[tuple[DpEvent, int], ...] = ()
    per_iteration: tuple[tuple[DpEvent, int], ...] = ()

    def __post_init__(self) -> None:
        for event, count in (*self.initial, *self.per_iteration):
            if count < 0:
                raise DpmcError(f"count of {text(event)}: {count}, allowed an integer >= 0")
        if not any(count for _, count in self.per_iteration):
            raise DpmcError("per_iteration: releases nothing, allowed at least one release")

    def counts(self, num_iterations: int, num_chains: int) -> dict[DpEvent, int]:
        """Return how often each event occurs in `num_chains` chains of `num_iterations` each."""
        total: dict[DpEvent, int] = {}
        for event, count in self.initial:
            total[event] = total.get(event, 0) + count * num_chains
        for event, count in self.per_iteration:
            total[event] = total.get(event, 0) + count * num_iterations * num_chains
        return {event: count for event, count in total.items() if count}
