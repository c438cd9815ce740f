"""The only place where privacy noise is drawn, and where what is drawn is recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np

from dpmc.privacy import events
from dpmc.privacy.budgets import UNLIMITED, GaussianBudget, Meter, Tally
from dpmc.types import Array, DpmcError

if TYPE_CHECKING:
    from dpmc.privacy.calibration import Plan
    from dpmc.privacy.events import BarkerEvent, Counts, Event

Noise = Literal["continuous", "discrete"]
NOISES: tuple[Noise, ...] = get_args(Noise)


def noise_of(noise: Noise | None, published: bool) -> Noise:
    """Return the noise that was asked for, by default discrete unless a result is `published`.

    Parameters
    ----------
    noise : {"continuous", "discrete"} or None
        As a user gave it.
    published : bool
        Whether a seed makes the result repeatable, as published experiments are; they have
        continuous noise.

    Raises
    ------
    DpmcError
        If there is no such noise.
    """
    if noise is None:
        return "continuous" if published else "discrete"
    if noise not in NOISES:
        raise DpmcError(f"`noise` must be 'continuous' or 'discrete', got {noise!r}")
    return noise


class Ledger:
    """Adds Gaussian noise, and records each release before drawing it.

    Parameters
    ----------
    plan : Plan, mapping of event to int, or GaussianBudget, optional
        Releases beyond its counts are refused, and with a budget Gaussian releases of any
        multiplier beyond its mu. Without one all are recorded.
    noise : {"continuous", "discrete"}
        ``"discrete"`` rounds values with noise to a grid, see `dpmc.privacy.discrete`: no
        digit of them says more than the noise allows.

    Raises
    ------
    DpmcError
        If `noise` is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> ledger = Ledger()
    >>> noisy = ledger.release(1.0, 0.1, noise_multiplier=5.0, rng=np.random.default_rng())
    >>> ledger.records()
    (('gaussian(5.0)', 1),)
    """

    def __init__(
        self, plan: Plan | Counts | GaussianBudget | None = None, noise: Noise = "continuous"
    ) -> None:
        self.noise = noise_of(noise, published=True)
        self.budget = plan if isinstance(plan, GaussianBudget) else None
        self._meter = None if self.budget is None else Meter(self.budget)
        self._allowed: dict[Event, int] | None = None
        if isinstance(plan, Mapping):
            self._allowed = dict(plan)
        elif plan is not None and not isinstance(plan, GaussianBudget):
            self._allowed = dict(plan.counts)
        self._discrete: Any = None
        if noise == "discrete":
            from dpmc.privacy import discrete  # takes long: only where it is needed

            self._discrete = discrete
        self._tallies: dict[Event, Tally] = {}
        # Hashing an event costs more than the release: what it is made from, and the last of
        # the Barker test, lead to its tally.
        self._quick: dict[float | tuple[float, tuple[int, int]], Tally] = {}
        self._barker: tuple[BarkerEvent | None, Tally | None] = None, None

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
            ``value + sensitivity * noise_multiplier * N(0, I)``, rounded to the grid of
            `dpmc.privacy.discrete` with discrete noise; the value itself where the
            sensitivity is 0, recorded all the same. A value that is not finite counts as 0: no
            noise would hide it.

        Raises
        ------
        DpmcError
            If an argument is out of range or the plan does not cover the release.
        """
        tally = self._quick.get(noise_multiplier if batch is None else (noise_multiplier, batch))
        if tally is None:
            tally = self._gaussian(noise_multiplier, batch)
        if not 0 <= sensitivity < math.inf:
            raise DpmcError(f"`sensitivity` must be finite and at least 0, got {sensitivity}")
        if tally.used >= tally.allowed:
            tally.ask(1)
        tally.used += 1
        value = _finite(value)
        if sensitivity == 0:
            return value
        if self._discrete is not None:
            noisy: float | Array = self._discrete.add_gaussian(
                value, sensitivity, noise_multiplier, rng=rng
            )
            return noisy
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
            ``value + sqrt(event.noise_variance - batch_variance) * N(0, 1)``, with 0 for a value
            that is not finite.

        Raises
        ------
        DpmcError
            If the variance is out of range or the plan does not cover the release.
        """
        largest = event.clip_scale**2
        if not 0 <= batch_variance <= largest * (1 + 1e-9):
            raise DpmcError(
                f"`batch_variance` must be from 0 to clip_scale**2 = {largest}, got "
                f"{batch_variance}"
            )
        known, tally = self._barker
        if known is not event or tally is None:
            tally = self._tally(event)
            self._barker = event, tally
        if tally.used >= tally.allowed:
            tally.ask(1)
        tally.used += 1
        variance = event.noise_variance - min(batch_variance, largest)
        if self._discrete is not None:
            # The variance of the batch is private: the grid is that of the least noise.
            grid = self._discrete.grid_of(math.sqrt(event.least_variance))
            return float(self._discrete.add_gaussian(value, math.sqrt(variance), 1.0, grid, rng))
        return _finite(value) + math.sqrt(variance) * float(rng.standard_normal())

    def noise_block(
        self,
        num_releases: int,
        dim: int,
        sensitivity: float | Array,
        noise_multiplier: float,
        rng: np.random.Generator,
        batch_size: int | None = None,
        num_rows: int | None = None,
        grid: float = 0.0,
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
        grid : float
            What `grid` returns for these releases, by a loop that rounds its sums to integers
            times it before noise is added, unless it is 0.

        Returns
        -------
        ndarray of shape (num_releases, dim)
            With discrete noise integers times the grid, relative to the sensitivity of the
            rounded sums.

        Raises
        ------
        DpmcError
            If an argument is out of range or the plan does not cover all releases;
            then nothing is drawn or recorded.
        """
        if num_releases < 0 or dim < 1:
            raise DpmcError(
                f"`num_releases` and `dim` must be at least 0 and 1, got {num_releases} and {dim}"
            )
        scale = np.asarray(sensitivity, dtype=float)
        if scale.ndim > 1 or not (np.isfinite(scale).all() and (scale >= 0).all()):
            raise DpmcError(f"`sensitivity` must be finite and at least 0, got {sensitivity}")
        if (batch_size is None) != (num_rows is None):
            raise DpmcError(
                f"`batch_size` and `num_rows` must both be None or neither, got {batch_size} and "
                f"{num_rows}"
            )
        batch = None if batch_size is None or num_rows is None else (batch_size, num_rows)
        tally = self._gaussian(noise_multiplier, batch)
        if grid != self.grid(sensitivity, noise_multiplier):
            raise _refusal(self.noise)
        tally.add(int(num_releases))
        if grid:
            std = self._discrete.on_grid(sensitivity, grid, dim) * noise_multiplier
            drawn: Array = self._discrete.gaussian_noise((num_releases, dim), std, grid, rng)
            return drawn
        noise = rng.standard_normal((num_releases, dim))
        noise *= (scale * noise_multiplier)[..., None] if scale.ndim else scale * noise_multiplier
        return noise

    def grid(self, sensitivity: float | Array, noise_multiplier: float) -> float:
        """Return what a compiled loop rounds its sums to before noise is added, 0 for nothing.

        Raises
        ------
        DpmcError
            If releases with discrete noise have different sensitivities.
        """
        if self._discrete is None:
            return 0.0
        if np.ndim(sensitivity):
            raise _refusal(self.noise)
        return float(self._discrete.grid_of(float(sensitivity) * noise_multiplier))

    def record(self, event: Event, num_releases: int, noise: Noise = "continuous") -> None:
        """Record the next releases of a caller that draws their noise itself.

        Called before it does: what is not allowed is not drawn.

        Parameters
        ----------
        event : Event
            See :mod:`dpmc.privacy.events`.
        num_releases : int
            At least 0.
        noise : {"continuous", "discrete"}
            What the caller draws.

        Raises
        ------
        DpmcError
            If the number is negative, the plan does not cover all releases, or the noise of the
            ledger is to be discrete and that of the caller is not.
        """
        if num_releases < 0:
            raise DpmcError(f"`num_releases` must be at least 0, got {num_releases}")
        if self._discrete is not None and noise != "discrete":
            raise _refusal(self.noise)
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

    @property
    def committed(self) -> dict[Event, int]:
        """What a joint guarantee has to count: all that the plan or budget allows.

        Without either, what was released so far, which is enough only where that did not
        depend on earlier outputs.
        """
        if self.budget is not None:
            return self.budget.worst()
        return self.counts if self._allowed is None else dict(self._allowed)

    @property
    def spent(self) -> float:
        """Sum of 1 / z^2 over the releases under a `GaussianBudget`, rounded up."""
        return self._metered().spent

    @property
    def remaining(self) -> float:
        """What is left of the mu^2 of a `GaussianBudget`, rounded down."""
        return self._metered().remaining

    def least_multiplier(self) -> float:
        """Return the smallest multiplier that a `GaussianBudget` allows one more release.

        Infinite where nothing is left.
        """
        return self._metered().least_multiplier()

    def _metered(self) -> Meter:
        if self._meter is None:
            raise DpmcError("`plan` of the ledger must be a GaussianBudget")
        return self._meter

    def _gaussian(self, noise_multiplier: float, batch: tuple[int, int] | None) -> Tally:
        key = noise_multiplier if batch is None else (noise_multiplier, batch)
        tally = self._quick.get(key)
        if tally is None:
            if batch is None:
                tally = self._tally(events.gaussian(noise_multiplier))
            else:
                tally = self._tally(events.sampled_gaussian(noise_multiplier, *batch))
            self._quick[key] = tally
        return tally

    def _tally(self, event: Event) -> Tally:
        tally = self._tallies.get(event)
        if tally is None:
            allowed = UNLIMITED if self._allowed is None else self._allowed.get(event, 0)
            tally = self._tallies[event] = Tally(event, allowed, self._meter)
        return tally


@overload
def _finite(value: float) -> float: ...
@overload
def _finite(value: Array) -> Array: ...
def _finite(value: float | Array) -> float | Array:
    """Return a value with 0 for what is not finite, which no noise would hide."""
    if isinstance(value, float):
        return value if math.isfinite(value) else 0.0
    finite = np.isfinite(value)
    return value if finite.all() else np.where(finite, value, 0.0)


def _refusal(noise: str) -> DpmcError:
    return DpmcError(f"`noise` must be 'continuous' for this method, got {noise!r}")
