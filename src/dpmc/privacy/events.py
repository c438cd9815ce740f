"""Privacy events of releases: frozen values, most of them of dp_accounting, and their counts.

Every noise multiplier is the standard deviation of the noise over the sensitivity
under substitution of one row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from dpmc.types import DpmcError, is_integer

if TYPE_CHECKING:
    from dp_accounting import DpEvent

Event: TypeAlias = "DpEvent | BarkerEvent"
Counts = Mapping["Event", int]

# Variance of the logistic distribution: the Barker test leaves no room for more noise.
LOGISTIC_VARIANCE = math.pi**2 / 3
# Least share of the variance of batch and noise that is left for noise: a grid for so little has
# room for all of it, so that discrete noise is never refused for what a batch shows.
LEAST_NOISE = 2.0**-20
# Least noise over the sensitivity: squares beyond it, and its inverse, are no numbers.
LEAST_MULTIPLIER = 1e-150
_GAUSSIAN = re.compile(r"gaussian\(([^,()]+)\)")
_SAMPLED = re.compile(r"sampled_gaussian\(([^,()]+), batch_size=(\d+), num_rows=(\d+)\)")
_BARKER = re.compile(r"barker\(([^,()]+), clip_scale=([^,()]+), batch_size=(\d+), num_rows=(\d+)\)")


@dataclass(frozen=True)
class BarkerEvent:
    """One release of the Barker test: the noise leaves room for the variance of the batch.

    The batch sum of ratios, clipped at ``clip_scale sqrt(batch_size) / (num_rows T)`` and
    scaled up to all rows, is released with Gaussian noise of variance
    ``noise_variance - s**2``, s**2 the variance of that sum over batches as the batch
    itself shows it, between 0 and ``clip_scale**2`` [raisa2021thesis, section 3.2].

    Parameters
    ----------
    noise_variance : float
        C, of noise and batch together.
    clip_scale : float
        kappa.
    batch_size : int
        Rows b, drawn uniformly without replacement, afresh for every release.
    num_rows : int
        Rows n to draw from.
    """

    noise_variance: float
    clip_scale: float
    batch_size: int
    num_rows: int

    def __post_init__(self) -> None:
        if not 0 < self.noise_variance < LOGISTIC_VARIANCE:
            raise DpmcError(
                f"`noise_variance` must be positive and below pi^2/3 = {LOGISTIC_VARIANCE:.6g}, "
                f"the variance of the logistic distribution, got {self.noise_variance}"
            )
        most = math.sqrt(self.noise_variance * (1 - LEAST_NOISE))
        if not 0 < self.clip_scale <= most:
            raise DpmcError(
                f"`clip_scale` must be positive and at most {most:.8g}, a little below "
                f"sqrt(noise_variance), got {self.clip_scale}"
            )
        _check_batch(self.batch_size, self.num_rows)

    @property
    def fraction(self) -> float:
        """The sampling fraction b / n."""
        return self.batch_size / self.num_rows

    @property
    def least_variance(self) -> float:
        """The smallest variance of the noise, C - kappa^2."""
        return self.noise_variance - self.clip_scale**2

    @property
    def mean_change(self) -> float:
        """Largest change of the mean of a release by one row of the batch, 2 kappa / sqrt(b)."""
        return 2 * self.clip_scale / math.sqrt(self.batch_size)

    @property
    def variance_change(self) -> float:
        """Largest change of the variance by one row of the batch, 4 kappa^2 (1 - 1/b) / b.

        Of the variance of b numbers, the one at x contributes ``(1 - 1/b) (x - m)**2 / b``
        with m the mean of the others: at most 4 kappa^2, at least 0, for the square.
        """
        b = self.batch_size
        return 4 * self.clip_scale**2 * (1 - 1 / b) / b


@lru_cache(maxsize=4096)
def gaussian(noise_multiplier: float) -> DpEvent:
    """Event of one Gaussian release computed from all rows.

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

    Examples
    --------
    >>> gaussian(5.0).noise_multiplier
    5.0
    """
    from dp_accounting import GaussianDpEvent  # takes seconds: only when an event is made

    if not (math.isfinite(noise_multiplier) and noise_multiplier > 0):
        raise DpmcError(f"`noise_multiplier` must be positive and finite, got {noise_multiplier}")
    if not LEAST_MULTIPLIER <= noise_multiplier <= 1 / LEAST_MULTIPLIER:
        raise DpmcError(
            f"`noise_multiplier` must be from {LEAST_MULTIPLIER:g} to {1 / LEAST_MULTIPLIER:g}, "
            f"got {noise_multiplier}"
        )
    return GaussianDpEvent(float(noise_multiplier))


@lru_cache(maxsize=4096)
def sampled_gaussian(noise_multiplier: float, batch_size: int, num_rows: int) -> DpEvent:
    """Event of one Gaussian release computed from a batch.

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

    Examples
    --------
    >>> sampled_gaussian(5.0, batch_size=10, num_rows=1000).sample_size
    10
    """
    from dp_accounting import SampledWithoutReplacementDpEvent

    _check_batch(batch_size, num_rows)
    event = gaussian(noise_multiplier)
    return SampledWithoutReplacementDpEvent(int(num_rows), int(batch_size), event)


@lru_cache(maxsize=4096)
def barker(noise_variance: float, clip_scale: float, batch_size: int, num_rows: int) -> BarkerEvent:
    """Event of one release of the Barker test.

    Parameters
    ----------
    noise_variance, clip_scale, batch_size, num_rows
        See `BarkerEvent`.

    Raises
    ------
    DpmcError
        If a value is outside of what is allowed.

    Examples
    --------
    >>> barker(0.5, 0.1, batch_size=10, num_rows=1000) == barker(0.5, 0.1, 10, 1000)
    True
    """
    return BarkerEvent(float(noise_variance), float(clip_scale), int(batch_size), int(num_rows))


def _check_batch(batch_size: int, num_rows: int) -> None:
    if not 1 <= batch_size <= num_rows:
        raise DpmcError(f"`batch_size` must be from 1 to num_rows = {num_rows}, got {batch_size}")


def noise_of(event: Event) -> tuple[float, float] | None:
    """Noise multiplier and sampling fraction of a Gaussian event.

    Returns
    -------
    tuple of float or None
        The noise multiplier and the sampling fraction, 1 for a release from all
        rows; None for any other event.
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


def is_of_all_rows(event: Event) -> bool:
    """Whether an event is a Gaussian release from all rows, and not from a batch of them."""
    noise = noise_of(event) if not isinstance(event, BarkerEvent) else None
    return noise is not None and noise[1] == 1


def text(event: Event) -> str:
    """Event as text that `parse` reads back exactly."""
    if isinstance(event, BarkerEvent):
        return (
            f"barker({event.noise_variance!r}, clip_scale={event.clip_scale!r}, "
            f"batch_size={event.batch_size}, num_rows={event.num_rows})"
        )
    from dp_accounting import GaussianDpEvent, SampledWithoutReplacementDpEvent

    if isinstance(event, GaussianDpEvent):
        return f"gaussian({event.noise_multiplier!r})"
    if isinstance(event, SampledWithoutReplacementDpEvent) and noise_of(event):
        return (
            f"sampled_gaussian({event.event.noise_multiplier!r}, "
            f"batch_size={event.sample_size}, num_rows={event.source_dataset_size})"
        )
    return repr(event)


def parse(records: Iterable[tuple[str, int]]) -> dict[Event, int]:
    """Read the records of a stored ledger back into counts.

    Parameters
    ----------
    records : iterable of (str, int)
        Event texts as `text` writes them, with counts.

    Returns
    -------
    dict of event to int
    """
    counts: dict[Event, int] = {}
    for record in records:
        pair = isinstance(record, tuple | list) and len(record) == 2
        if not (pair and isinstance(record[0], str)):
            raise DpmcError(f"a record must be a text and a count, got {record!r}")
        line, count = record
        event = _parsed(line)
        if not is_integer(count) or not 0 <= count < 2**62:
            raise DpmcError(f"the count of {line} must be an integer of at least 0, got {count!r}")
        counts[event] = counts.get(event, 0) + int(count)
    return counts


def _parsed(line: str) -> Event:
    if found := _GAUSSIAN.fullmatch(line):
        return gaussian(float(found[1]))
    if found := _SAMPLED.fullmatch(line):
        return sampled_gaussian(float(found[1]), int(found[2]), int(found[3]))
    if found := _BARKER.fullmatch(line):
        return barker(float(found[1]), float(found[2]), int(found[3]), int(found[4]))
    raise DpmcError(
        f"an event must read gaussian(...), sampled_gaussian(...) or barker(...), got {line!r}"
    )


@dataclass(frozen=True)
class Releases:
    """Releases of an algorithm in one chain.

    Parameters
    ----------
    initial : tuple of (event, int)
        Released once, before the first iteration.
    per_iteration : tuple of (event, int)
        Released in every iteration; at least one.
    once : tuple of (event, int)
        Released once for all chains together, however many they are.

    Raises
    ------
    DpmcError
        If a count is negative or an iteration releases nothing.

    Examples
    --------
    >>> releases = Releases((), ((gaussian(5.0), 2),))
    >>> list(releases.counts(num_iterations=3, num_chains=4).values())
    [24]
    """

    initial: tuple[tuple[Event, int], ...] = ()
    per_iteration: tuple[tuple[Event, int], ...] = ()
    once: tuple[tuple[Event, int], ...] = ()

    def __post_init__(self) -> None:
        for event, count in (*self.initial, *self.per_iteration, *self.once):
            if count < 0:
                raise DpmcError(f"the count of {text(event)} must be at least 0, got {count}")
        if not any(count for _, count in self.per_iteration):
            raise DpmcError("`per_iteration` must have at least one release, got none")

    def counts(self, num_iterations: int, num_chains: int) -> dict[Event, int]:
        """Count of each event in `num_chains` chains of `num_iterations` each."""
        total: dict[Event, int] = {}
        for event, count in self.once:
            total[event] = total.get(event, 0) + count
        for event, count in self.initial:
            total[event] = total.get(event, 0) + count * num_chains
        for event, count in self.per_iteration:
            total[event] = total.get(event, 0) + count * num_iterations * num_chains
        return {event: count for event, count in total.items() if count}
