"""What is given: releases of sums over records, and how many records there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.releases.mechanisms import RANDOMISED_RESPONSE, Mechanism
from dpmc.releases.records import Records
from dpmc.types import Array, DpmcError


@dataclass(frozen=True, eq=False)
class Release:
    """A release of others: a sum of a statistic over all records, with noise.

    Parameters
    ----------
    value : float or array_like of shape (q,)
        As it was published.
    statistic : callable ``(*columns) -> number or sequence of q numbers``, or None
        What is summed, of the columns of one record: arithmetic and functions of NumPy that work on
        arrays entry by entry, as ``lambda x, y: (x * x, x * y)`` and ``numpy.clip``. None counts
        records.
    mechanism : Mechanism
        A function of ``dpmc.mechanisms``, such as ``laplace``, makes one.

    Raises
    ------
    DpmcError
        If an argument is refused.

    Examples
    --------
    >>> from dpmc import mechanisms
    >>> Release(41.7, lambda income: np.clip(income, 0, 5), mechanisms.laplace(2.5)).size
    1
    """

    value: Any
    statistic: Callable[..., Any] | None
    mechanism: Mechanism

    def __post_init__(self) -> None:
        values = np.atleast_1d(checks.real_numbers(self.value))
        if values.ndim != 1 or not values.size or not np.isfinite(values).all():
            raise DpmcError(
                "`value` must be a finite number or a list of them, got "
                f"{' '.join(repr(self.value).split())}"
            )
        if self.statistic is not None and not callable(self.statistic):
            raise DpmcError(f"`statistic` must be a function of a record, got {self.statistic!r}")
        wanted = "one of dpmc.mechanisms"
        checks.instance("mechanism", self.mechanism, Mechanism, wanted)
        if self.mechanism.scale.size not in (1, values.size):
            raise DpmcError(
                f"`scale` must have 1 or {values.size} entries, got {self.mechanism.scale.size}"
            )
        self._check_values(values, self.mechanism)
        object.__setattr__(self, "value", values)

    @property
    def size(self) -> int:
        """How many numbers were published."""
        return int(self.value.size)

    def _check_values(self, values: Array, mechanism: Mechanism) -> None:
        low, high = mechanism.clamp
        if (values < low).any() or (values > high).any():
            raise DpmcError(f"`value` must be inside of the clamp {low, high}, got {self.value!r}")
        grid = 1.0 if mechanism.on_integers else mechanism.rounded
        inner = values[(values > low) & (values < high)]
        if grid is not None and (np.abs(inner / grid - np.round(inner / grid)) > 1e-6).any():
            raise DpmcError(f"`value` must be a multiple of {grid:g}, got {self.value!r}")


@dataclass(frozen=True, eq=False)
class Problem:
    """Releases, the distribution of a record, and the number of records.

    Parameters
    ----------
    records : Records
        Its statistic has the entries of all releases, one after the other.
    releases : tuple of Release
    num_records : int or None
        None if there is a `count` of them.
    count : Release, optional
        The noisy number of records; all numbers are equally likely before.
    """

    records: Records
    releases: tuple[Release, ...]
    num_records: int | None
    count: Release | None = None

    @property
    def dim(self) -> int:
        """Coordinates of a state: theta, and the logarithm of a number of records with noise."""
        return self.records.model.dim + (self.num_records is None)

    @property
    def about(self) -> float:
        """Number of records, or about how many."""
        if self.count is None:
            return float(self.num_records or 0)
        return max(1.0, float(self.count.value[0]))

    @property
    def values(self) -> Array:
        """All published values, shape (q,)."""
        return np.concatenate([one.value for one in self.releases])

    def each(self) -> list[tuple[slice, Release, Mechanism]]:
        """Releases, their mechanisms and their entries among all."""
        found, first = [], 0
        for one in self.releases:
            found.append((slice(first, first + one.size), one, one.mechanism))
            first += one.size
        return found

    def log_release(self, totals: Array) -> Array:
        """Log-density of all releases given sums, shape (..., q)."""
        parts = [
            mechanism.log_density(one.value, totals[..., place]).sum(axis=-1)
            for place, one, mechanism in self.each()
        ]
        return np.asarray(np.sum(parts, axis=0))

    def log_count(self, number: Array) -> Array:
        """Log-density of the released number of records, given the number, shape (m,)."""
        if self.count is None:
            return np.zeros(len(number))
        density = self.count.mechanism.log_density(self.count.value, number[:, None])[:, 0]
        return np.where(number >= 1, density, -np.inf)

    def split(self, x: Array) -> tuple[Array, Array]:
        """Theta, shape (m, d), and numbers of records, shape (m,), of states."""
        if self.num_records is not None:
            return x, np.full(len(x), float(self.num_records))
        with np.errstate(over="ignore"):
            return x[:, :-1], np.asarray(np.round(np.exp(x[:, -1])), dtype=float)

    def log_prior(self, x: Array) -> Array:
        """Log-density of states by the prior, and by the released number of records."""
        theta, number = self.split(x)
        density = self.records.log_prior(theta)
        if self.num_records is None:
            density = density + self.log_count(number) + x[:, -1]
        return density

    def start(self, num_chains: int, rng: np.random.Generator) -> Array:
        """States to begin with, shape (m, dim)."""
        x = rng.standard_normal((num_chains, self.dim))
        if self.count is not None:
            sd = np.sqrt(self.count.mechanism.variance().ravel()[0])
            x[:, -1] = np.log(np.maximum(1.0, self.about + sd * x[:, -1]))
        return x

    @property
    def randomised(self) -> bool:
        """Whether records answered by randomised response."""
        return any(mechanism.name == RANDOMISED_RESPONSE for _, _, mechanism in self.each())
