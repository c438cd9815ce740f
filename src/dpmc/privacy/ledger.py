"""Ledgers: Gaussian noise on values that carry their sensitivity, recorded before it is drawn."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

import numpy as np

from dpmc import checks
from dpmc.privacy import events
from dpmc.privacy.budgets import UNLIMITED, GaussianBudget, Meter, Tally, is_paid
from dpmc.privacy.clipped import BarkerRatio, Clip, Clipped, V, check_value, number
from dpmc.types import NEIGHBOURS, Array, DpmcError, Neighbours, is_integer

if TYPE_CHECKING:
    from dpmc.privacy.calibration import Plan
    from dpmc.privacy.events import BarkerEvent, Counts, Event

Noise = Literal["continuous", "discrete"]
NOISES: tuple[Noise, ...] = get_args(Noise)
# Least scale of noise: below, floating point has no digits for it.
LEAST_SCALE = 1e-290


def noise_of(noise: Noise | None, published: bool) -> Noise:
    """Noise that was asked for, by default discrete unless a result is `published`.

    Parameters
    ----------
    noise : {"continuous", "discrete"} or None
        As a user gave it.
    published : bool
        Whether a seed makes the result repeatable, as published experiments are; they have
        continuous noise.
    """
    if noise is None:
        return "continuous" if published else "discrete"
    if noise not in NOISES:
        raise DpmcError(f"`noise` must be 'continuous' or 'discrete', got {noise!r}")
    return noise


class Ledger:
    """Record of releases, kept before the noise of each is drawn, by what draws it.

    A ledger is neither copied nor pickled: both it and its copy would spend what is left. Pass
    it on as it is, and between processes its `records`. Threads may share one.

    Parameters
    ----------
    plan : Plan, mapping of event to int, or GaussianBudget, optional
        Releases beyond its counts are refused, and with a budget Gaussian releases of any
        multiplier beyond its mu. Without one all are recorded.
    noise : {"continuous", "discrete"}
        ``"discrete"`` rounds values with noise to a grid, see `dpmc.privacy.discrete`: no
        digit of them says more than the noise allows.
    neighbours : {"replace", "add_remove"}
        Relation that a `GaussianBudget` is for; other plans are for substituted rows.

    Raises
    ------
    DpmcError
        If `noise` or `neighbours` is unknown, or a plan is for substituted rows alone.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmc.privacy import asserted
    >>> ledger = Ledger()
    >>> mean = asserted(1.0, sensitivity=0.1)
    >>> noisy = ledger.release(mean, noise_multiplier=5.0, rng=np.random.default_rng())
    >>> ledger.records()
    (('gaussian(5.0)', 1),)
    """

    def __init__(
        self,
        plan: Plan | Counts | GaussianBudget | None = None,
        noise: Noise = "continuous",
        neighbours: Neighbours = "replace",
    ) -> None:
        self.noise = noise_of(noise, published=True)
        _check_plan(plan, neighbours)
        self.budget = plan if isinstance(plan, GaussianBudget) else None
        if self.budget is None and is_paid():
            raise DpmcError("`plan` must be a GaussianBudget in a part of a session, got another")
        self._meter = None if self.budget is None else Meter(self.budget)
        self._allowed: dict[Event, int] | None = None
        if isinstance(plan, Mapping):
            self._allowed = dict(plan)
        elif plan is not None and not isinstance(plan, GaussianBudget):
            self._allowed = dict(plan.counts)
        # Relation of the releases: that of a plan or a budget, else the first says.
        self.neighbours: Neighbours | None = None if plan is None else neighbours
        self._discrete: Any = None
        if noise == "discrete":
            from dpmc.privacy import discrete  # takes long: only where it is needed

            self._discrete = discrete
        self._tallies: dict[Event, Tally] = {}
        # Between what is asked for and what is counted no other thread may come.
        self._lock = threading.Lock()
        # Hashing an event costs more than the release: what it is made from, and the last of
        # the Barker test, lead to its tally.
        self._quick: dict[float | tuple[float, tuple[int, int]], Tally] = {}
        self._barker: tuple[BarkerEvent | None, Tally | None] = None, None

    def release(
        self,
        clipped: Clipped[V],
        noise_multiplier: float,
        rng: np.random.Generator,
        batch: tuple[int, int] | None = None,
    ) -> V:
        """Value with Gaussian noise on it.

        Parameters
        ----------
        clipped : Clipped
            Computed from all rows, or from a batch of them, with its sensitivity: of a sum of
            `dpmc.rows`, or of `dpmc.privacy.asserted` where a user answers for it.
        noise_multiplier : float
            Noise standard deviation over the sensitivity; finite, > 0.
        rng : numpy.random.Generator
            Seeded by the operating system where privacy is meant.
        batch : (int, int), optional
            Size of the batch, drawn without replacement and afresh, and number of rows.

        Returns
        -------
        float or ndarray
            ``value + sensitivity * noise_multiplier * N(0, I)``, rounded to the grid of
            `dpmc.privacy.discrete` with discrete noise; the value itself where the
            sensitivity is 0, recorded all the same. A value that is not finite counts as 0, and
            so does one whose noise would vanish in floating point: no noise would hide it.

        Raises
        ------
        DpmcError
            If the value carries no sensitivity, or one under another relation than those
            before, an argument is out of range, or the plan does not cover the release.
        """
        if type(clipped) is not Clipped:
            raise DpmcError(
                "`clipped` must be a value that carries its sensitivity, as "
                f"dpmc.privacy.asserted(value, sensitivity) is one, got {type(clipped).__name__}"
            )
        value: Any = clipped.value
        sensitivity = clipped.sensitivity
        if type(noise_multiplier) is not float:
            noise_multiplier = number("noise_multiplier", noise_multiplier)
        tally = self._quick.get(noise_multiplier if batch is None else (noise_multiplier, batch))
        if tally is None:
            tally = self._gaussian(noise_multiplier, batch)
        if not 0 <= sensitivity < inf:
            raise DpmcError(f"`sensitivity` must be finite and at least 0, got {sensitivity}")
        one = isinstance(value, float)
        if not one:
            check_value(value)
        with self._lock:
            if clipped.neighbours is not self.neighbours:
                self._relate(clipped.neighbours)
            if tally.used >= tally.allowed:
                tally.ask(1)
            tally.used += 1
        if not one or not isfinite(value):
            value = finite(value)
        scale = sensitivity * noise_multiplier
        noisy: V
        if sensitivity == 0:
            noisy = value
        elif scale < LEAST_SCALE:
            noisy = value * 0 + 0.0  # without the sign of the value
        elif self._discrete is not None:
            noisy = self._discrete.add_gaussian(value, sensitivity, noise_multiplier, rng=rng)
        elif one:
            noisy = value + scale * rng.standard_normal()
        else:
            noisy = value + scale * rng.standard_normal(value.shape)
        return noisy

    def release_barker(self, ratio: BarkerRatio, rng: np.random.Generator) -> float:
        """Ratio of a batch with the noise that its own variance leaves room for.

        Parameters
        ----------
        ratio : BarkerRatio
            Its row ratios clipped as its event says.
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
        value, batch_variance, event = ratio
        largest = event.clip_scale**2
        if not 0 <= batch_variance <= largest * (1 + 1e-9):
            raise DpmcError(
                f"`batch_variance` must be from 0 to clip_scale**2 = {largest}, got another"
            )
        known, tally = self._barker
        if known is not event or tally is None:
            tally = self._tally(event)
            self._barker = event, tally
        with self._lock:
            if tally.used >= tally.allowed:
                tally.ask(1)
            tally.used += 1
        variance = event.noise_variance - min(batch_variance, largest)
        if self._discrete is not None:
            # The variance of the batch is private: the grid is that of the least noise.
            grid = self._discrete.grid_of(math.sqrt(event.least_variance))
            return float(self._discrete.add_gaussian(value, math.sqrt(variance), 1.0, grid, rng))
        return finite(value) + math.sqrt(variance) * float(rng.standard_normal())

    def noise_block(
        self,
        num_releases: int,
        dim: int,
        clip: Clip,
        noise_multiplier: float,
        rng: np.random.Generator,
        batch_size: int | None = None,
        num_rows: int | None = None,
        grid: float = 0.0,
    ) -> Array:
        """Noise of the next releases of a compiled loop, all of them recorded.

        Parameters
        ----------
        num_releases : int
            At least 0.
        dim : int
            Components of one release.
        clip : Clip
            What the loop clips rows to, and multiplies them by: it reads both from here.
        noise_multiplier : float
            Noise standard deviation over the sensitivity.
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
        sensitivity = clip.sensitivity
        if not 0 <= sensitivity < math.inf:
            raise DpmcError(f"`sensitivity` must be finite and at least 0, got {sensitivity}")
        noise_multiplier = number("noise_multiplier", noise_multiplier)
        if (batch_size is None) != (num_rows is None):
            raise DpmcError(
                f"`batch_size` and `num_rows` must both be None or neither, got {batch_size} and "
                f"{num_rows}"
            )
        batch = None if batch_size is None or num_rows is None else (batch_size, num_rows)
        tally = self._gaussian(noise_multiplier, batch)
        if grid != self.grid(clip, noise_multiplier):
            raise _refusal(self.noise)
        with self._lock:
            self._relate("replace")
            tally.add(int(num_releases))
        if grid:
            std = self._discrete.on_grid(sensitivity, grid, dim) * noise_multiplier
            drawn: Array = self._discrete.gaussian_noise((num_releases, dim), std, grid, rng)
            return drawn
        noise = rng.standard_normal((num_releases, dim))
        noise *= sensitivity * noise_multiplier
        return noise

    def grid(self, clip: Clip, noise_multiplier: float) -> float:
        """Grid that a compiled loop rounds its sums to before noise is added, 0 for none."""
        if self._discrete is None:
            return 0.0
        return float(self._discrete.grid_of(clip.sensitivity * noise_multiplier))

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
        if not is_integer(num_releases) or num_releases < 0:
            raise DpmcError(
                f"`num_releases` must be an integer of at least 0, got {num_releases!r}"
            )
        if self._discrete is not None and noise != "discrete":
            raise _refusal(self.noise)
        tally = self._tally(event)
        with self._lock:
            tally.add(int(num_releases))

    @property
    def counts(self) -> dict[Event, int]:
        """Count of each event released so far."""
        return {event: tally.used for event, tally in self._tallies.items() if tally.used}

    def records(self, before: Counts | None = None) -> tuple[tuple[str, int], ...]:
        """Counts as text that `dpmc.privacy.events.parse` reads back, sorted.

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
        """Events that a joint guarantee has to count: all that the plan or budget allows.

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
        """Rest of the mu^2 of a `GaussianBudget`, rounded down."""
        return self._metered().remaining

    def least_multiplier(self) -> float:
        """Smallest multiplier that a `GaussianBudget` allows one more release.

        Infinite where nothing is left.
        """
        return self._metered().least_multiplier()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise DpmcError(
            "a Ledger must be passed on as it is, or its `records` be: what is left of its budget "
            "would be spent once more by a copy or a pickle of it"
        )

    def _relate(self, neighbours: Neighbours) -> None:
        """Note what relation the first release is under, or refuse a release under another."""
        if self.neighbours not in (None, neighbours):
            raise DpmcError(
                f"`neighbours` must be {self.neighbours!r} as of all that the ledger covers, got "
                f"{neighbours!r}"
            )
        self.neighbours = neighbours

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
        with self._lock:
            tally = self._tallies.get(event)
            if tally is None:
                allowed = UNLIMITED if self._allowed is None else self._allowed.get(event, 0)
                tally = self._tallies[event] = Tally(event, allowed, self._meter)
        return tally


def _check_plan(plan: object, neighbours: Neighbours) -> None:
    if not (plan is None or isinstance(plan, GaussianBudget | Mapping) or hasattr(plan, "counts")):
        raise DpmcError(
            "`plan` must be a Plan, a mapping of events to their numbers or a GaussianBudget, got "
            f"{type(plan).__name__}"
        )
    if neighbours != "replace" and not isinstance(plan, GaussianBudget):
        raise DpmcError(
            f"`neighbours` must be 'replace' without a GaussianBudget, got {neighbours!r}"
        )
    checks.one_of("neighbours", neighbours, tuple(NEIGHBOURS))


def finite(value: V) -> V:
    """Value with 0 for what is not finite, which no noise would hide."""
    if isinstance(value, float):
        return value if math.isfinite(value) else 0.0
    fine = np.isfinite(value)
    return value if fine.all() else np.where(fine, value, 0.0)


def _refusal(noise: str) -> DpmcError:
    return DpmcError(f"`noise` must be 'continuous' for this method, got {noise!r}")
