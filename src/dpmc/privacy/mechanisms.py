"""The only place where privacy noise is drawn, and where what is drawn is recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, overload

import numpy as np

from dpmc.privacy import events
from dpmc.types import Array, DpmcError

if TYPE_CHECKING:
    from dpmc.privacy.calibration import Plan
    from dpmc.privacy.events import BarkerEvent, Counts, Event

_UNLIMITED = 2**62


class _Tally:
    """How often one event was released, and how often it may be."""

    __slots__ = ("allowed", "event", "used")

    def __init__(self, event: Event, allowed: int) -> None:
        self.event = event
        self.allowed = allowed
        self.used = 0

    def add(self, number: int) -> None:
        """Record `number` releases, or refuse all of them."""
        if self.used + number > self.allowed:
            raise DpmcError(
                f"release of {events.text(self.event)}: {self.used + number} in all, "
                f"allowed {self.allowed} by the plan"
            )
        self.used += number


class Ledger:
    """Adds Gaussian noise, and records each release before drawing it.

    Parameters
    ----------
    plan : Plan or mapping of event to int, optional
        Releases beyond its counts are refused. Without one all are recorded.

    Examples
    --------
    >>> import numpy as np
    >>> ledger = Ledger()
    >>> noisy = ledger.release(1.0, 0.1, noise_multiplier=5.0, rng=np.random.default_rng())
    >>> ledger.records()
    (('gaussian(5.0)', 1),)
    """

    def __init__(self, plan: Plan | Counts | None = None) -> None:
        counts = plan if plan is None or isinstance(plan, Mapping) else plan.counts
        self._allowed = None if counts is None else dict(counts)
        self._tallies: dict[Event, _Tally] = {}
        # Hashing an event costs more than the release: what it is made from, and the last of
        # the Barker test, lead to its tally.
        self._quick: dict[float | tuple[float, tuple[int, int]], _Tally] = {}
        self._barker: tuple[BarkerEvent | None, _Tally | None] = None, None

    @overload
    def release(
        self,
        value: float,
        sensitivity: float,
        noise_multiplier: float,
        rng: np.random.Generator,
        batch: tuple[int, int] | None = None,
    ) -> float: ...
    @overload
    def release(
        self,
        value: Array,
        sensitivity: float,
        noise_multiplier: float,
        rng: np.random.Generator,
        batch: tuple[int, int] | None = None,
    ) -> Array: ...
    def release(
        self,
        value: float | Array,
        sensitivity: float,
        noise_multiplier: float,
        rng: np.random.Generator,
        batch: tuple[int, int] | None = None,
    ) -> float | Array:
        """Return a value with Gaussian noise on it.

        Parameters
        ----------
        value : float or ndarray
            Computed from all rows, or from a batch of them.
        sensitivity : float
            Bound on the Euclidean change of `value` when one row is substituted, or as the
            relation says that a guarantee is to name; finite, >= 0.
        noise_multiplier : float
            Noise standard deviation over `sensitivity`; finite, > 0.
        rng : numpy.random.Generator
            Seeded by the operating system where privacy is meant.
        batch : (int, int), optional
            Size of the batch, drawn without replacement and afresh, and number of rows.

        Returns
        -------
        float or ndarray
            ``value + sensitivity * noise_multiplier * N(0, I)``; the value itself
            where the sensitivity is 0, recorded all the same.

        Raises
        ------
        DpmcError
            If an argument is out of range or the plan does not cover the release.
        """
        tally = self._quick.get(noise_multiplier if batch is None else (noise_multiplier, batch))
        if tally is None:
            tally = self._gaussian(noise_multiplier, batch)
        if not 0 <= sensitivity < math.inf:
            raise DpmcError(f"sensitivity: {sensitivity}, allowed a finite number >= 0")
        if tally.used >= tally.allowed:
            tally.add(1)
        tally.used += 1
        if sensitivity == 0:
            return value
        scale = sensitivity * noise_multiplier
        if isinstance(value, float):
            return value + scale * rng.standard_normal()
        return value + scale * rng.standard_normal(np.shape(value))

    def release_barker(
        self, value: float, batch_variance: float, event: BarkerEvent, rng: np.random.Generator
    ) -> float:
        """Return the ratio of a batch with the noise that its own variance leaves room for.

        Parameters
        ----------
        value : float
            Log-ratio of the batch, its row ratios clipped as `event` says.
        batch_variance : float
            s^2, variance of `value` over batches, estimated from the clipped ratios of
            this one; between 0 and ``event.clip_scale**2``.
        event : BarkerEvent
        rng : numpy.random.Generator
            Seeded by the operating system where privacy is meant.

        Returns
        -------
        float
            ``value + sqrt(event.noise_variance - batch_variance) * N(0, 1)``.

        Raises
        ------
        DpmcError
            If the variance is out of range or the plan does not cover the release.
        """
        largest = event.clip_scale**2
        if not 0 <= batch_variance <= largest * (1 + 1e-9):
            raise DpmcError(
                f"batch_variance: {batch_variance}, allowed 0 to clip_scale**2 = {largest}"
            )
        known, tally = self._barker
        if known is not event or tally is None:
            tally = self._tally(event)
            self._barker = event, tally
        if tally.used >= tally.allowed:
            tally.add(1)
        tally.used += 1
        variance = event.noise_variance - min(batch_variance, largest)
        return value + math.sqrt(variance) * float(rng.standard_normal())

    def noise_block(
        self,
        num_releases: int,
        dim: int,
        sensitivity: float | Array,
        noise_multiplier: float,
        rng: np.random.Generator,
        batch_size: int | None = None,
        num_rows: int | None = None,
    ) -> Array:
        """Return the noise of the next releases of a compiled loop, all of them recorded.

        Parameters
        ----------
        num_releases : int
            At least 0.
        dim : int
            Components of one release.
        sensitivity : float or ndarray of shape (num_releases,)
            Under substitution; 1 gives noise in units of the sensitivity, for a
            loop that knows the sensitivity of a release only when it comes to it.
        noise_multiplier : float
            Noise standard deviation over `sensitivity`.
        rng : numpy.random.Generator
        batch_size, num_rows : int, optional
            Given together: each release is computed from so many rows drawn
            without replacement, afresh, from `num_rows`.

        Returns
        -------
        ndarray of shape (num_releases, dim)

        Raises
        ------
        DpmcError
            If an argument is out of range or the plan does not cover all releases;
            then nothing is drawn or recorded.
        """
        if num_releases < 0 or dim < 1:
            raise DpmcError(f"noise_block: shape {(num_releases, dim)}, allowed (>= 0, >= 1)")
        scale = np.asarray(sensitivity, dtype=float)
        if scale.ndim > 1 or not (np.isfinite(scale).all() and (scale >= 0).all()):
            raise DpmcError(f"sensitivity: {sensitivity}, allowed finite numbers >= 0")
        if (batch_size is None) != (num_rows is None):
            raise DpmcError(
                f"batch_size, num_rows: {batch_size}, {num_rows}, allowed both or neither"
            )
        batch = None if batch_size is None or num_rows is None else (batch_size, num_rows)
        tally = self._gaussian(noise_multiplier, batch)
        tally.add(int(num_releases))
        noise = rng.standard_normal((num_releases, dim))
        noise *= (scale * noise_multiplier)[..., None] if scale.ndim else scale * noise_multiplier
        return noise

    def record(self, event: Event, num_releases: int) -> None:
        """Record the next releases of a compiled loop that draws their noise itself.

        Called before the loop runs: what is not allowed is not drawn.

        Parameters
        ----------
        event : Event
            See :mod:`dpmc.privacy.events`.
        num_releases : int
            At least 0.

        Raises
        ------
        DpmcError
            If the number is negative or the plan does not cover all releases.
        """
        if num_releases < 0:
            raise DpmcError(f"num_releases: {num_releases}, allowed an integer >= 0")
        self._tally(event).add(int(num_releases))

    @property
    def counts(self) -> dict[Event, int]:
        """How often each event was released so far."""
        return {event: tally.used for event, tally in self._tallies.items() if tally.used}

    def records(self, before: Counts | None = None) -> tuple[tuple[str, int], ...]:
        """Return the counts as text that `dpmc.privacy.events.parse` reads back, sorted.

        Parameters
        ----------
        before : mapping of event to int, optional
            Counts of an earlier time: those since are returned.
        """
        known = before or {}
        since = {event: count - known.get(event, 0) for event, count in self.counts.items()}
        return tuple(sorted((events.text(event), count) for event, count in since.items() if count))

    def _gaussian(self, noise_multiplier: float, batch: tuple[int, int] | None) -> _Tally:
        key = noise_multiplier if batch is None else (noise_multiplier, batch)
        tally = self._quick.get(key)
        if tally is None:
            if batch is None:
                tally = self._tally(events.gaussian(noise_multiplier))
            else:
                tally = self._tally(events.sampled_gaussian(noise_multiplier, *batch))
            self._quick[key] = tally
        return tally

    def _tally(self, event: Event) -> _Tally:
        tally = self._tallies.get(event)
        if tally is None:
            allowed = _UNLIMITED if self._allowed is None else self._allowed.get(event, 0)
            tally = self._tallies[event] = _Tally(event, allowed)
        return tally
