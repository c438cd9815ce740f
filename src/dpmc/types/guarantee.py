"""Privacy budgets, and the guarantees that results really have."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from dpmc.types.errors import DpmcError
from dpmc.types.numbers import check_delta, check_epsilon, check_epsilon_delta

Neighbours = Literal["replace", "add_remove"]
# Each neighbouring relation, and how neighbours differ.
NEIGHBOURS: Mapping[Neighbours, str] = {
    "replace": "substitution of one row",
    "add_remove": "addition or removal of one row",
}


# What is protected by default.
ROW = "row"
# What a guarantee names as outside of it: of a run with a seed, and of noise in floating point.
SEED = "a seed, if it is known or used again"
LOW_BITS = "low bits of continuous noise"
# The accountant whose (epsilon, delta) is a point of an exact Gaussian curve.
GAUSSIAN = "gaussian"
# How far mu is rounded up: the inverse of the curve errs by less.
_ABOVE = 1 + 1e-10


@dataclass(frozen=True)
class Budget:
    """Budget of a fit: (epsilon, delta) under a neighbouring relation.

    Parameters
    ----------
    epsilon : float
        Privacy budget, positive and finite.
    delta : float
        In the open interval (0, 1).
    accountant : str
        Name of the accountant that turns the budget into iterations.
    neighbours : {"replace"}
        Neighbouring relation: data sets of equal, public size that differ in one row, to
        which all accountants refer.

    Examples
    --------
    >>> Budget(epsilon=4, delta=1e-6, accountant="gaussian").neighbours
    'replace'
    """

    epsilon: float
    delta: float
    accountant: str
    neighbours: Literal["replace"] = "replace"

    def __post_init__(self) -> None:
        check_epsilon_delta(self.epsilon, self.delta)
        if not isinstance(self.accountant, str):
            raise DpmcError(
                f"`accountant` must be the name of an accountant, got {self.accountant!r}"
            )
        if self.neighbours != "replace":
            raise DpmcError(f"`neighbours` must be 'replace', got {self.neighbours!r}")


@dataclass(frozen=True)
class Guarantee:
    """The privacy that a result really has.

    Parameters
    ----------
    epsilon : float
        ``inf`` where there is none.
    delta : float
        The delta at which `epsilon` holds.
    neighbours : {"replace", "add_remove"}
        Neighbouring relation: one row is substituted, or one is added or removed.
    accountant : str
        Accountant that proves it; empty where there is nothing to prove.
    outside : tuple of str
        Uses of the private data that the guarantee does not cover.
    unit : str
        What is protected: ``"row"``, or what each several rows may belong to, as ``"patient"``.
    noise : str
        ``"continuous"`` or ``"discrete"``, or both joined by "and"; empty where it is not stated.

    Examples
    --------
    >>> print(Guarantee(4.0, 1e-6, accountant="gaussian"))
    (4, 1e-06)-DP, substitution of one row
    >>> Guarantee(4.0, 1e-6, unit="patient").relation
    'substitution of one patient'
    >>> Guarantee(float("inf"), 0.0).private
    False
    >>> guarantee = Guarantee(4.0, 1e-6, accountant="gaussian")
    >>> round(guarantee.mu, 4), round(guarantee.epsilon_at(1e-9), 3)
    (0.8379, 5.083)
    """

    epsilon: float
    delta: float
    neighbours: Neighbours = "replace"
    accountant: str = ""
    outside: tuple[str, ...] = ()
    unit: str = ROW
    noise: str = ""

    @property
    def private(self) -> bool:
        """Whether there is a finite epsilon."""
        return math.isfinite(self.epsilon)

    @property
    def relation(self) -> str:
        """How neighbouring data sets differ, in words."""
        return NEIGHBOURS[self.neighbours].replace(" row", f" {self.unit}")

    @property
    def mu(self) -> float | None:
        """Mu of Gaussian differential privacy, rounded up; None where no such number is known.

        All of the curve follows from it. It is that of the (epsilon, delta) that are stated, to
        which a Gaussian accountant has proved them.
        """
        from dpmc.types import gaussian_curve as curve  # takes long

        stated = self.accountant == GAUSSIAN and 0 < self.delta < 1
        if not (stated and curve.LEAST_EPSILON <= self.epsilon <= curve.MOST_EPSILON):
            return None
        return math.sqrt(2 * curve.affordable_mean_loss(self.epsilon, self.delta)) * _ABOVE

    def delta_at(self, epsilon: float) -> float:
        """Delta that holds at any epsilon.

        With a `mu` it is exact. Otherwise it is that of the least private mechanism that has these
        two numbers, and `dpmc.privacy.compose` of the fit alone tells more.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Raises
        ------
        DpmcError
            If `epsilon` is negative or not finite.
        """
        from dpmc.types.gaussian_curve import delta_of_loss

        check_epsilon(epsilon, zero=True)
        mu = self.mu
        if mu is not None:
            found = delta_of_loss(mu**2 / 2, epsilon)
        elif self.private:
            revealed = -math.expm1(min(epsilon - self.epsilon, 0.0)) / (1 + math.exp(-self.epsilon))
            found = self.delta + (1 - self.delta) * revealed
        else:
            return 1.0
        return min(found, self.delta) if epsilon >= self.epsilon else found

    def epsilon_at(self, delta: float) -> float:
        """Epsilon that holds at any delta, infinite where none is known; see `delta_at`.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Raises
        ------
        DpmcError
            If `delta` is not in (0, 1).
        """
        from dpmc.types.gaussian_curve import epsilon_of_loss

        check_delta(delta)
        mu = self.mu
        if mu is not None:
            found = epsilon_of_loss(mu**2 / 2, delta)
            return min(found, self.epsilon) if delta >= self.delta else found
        if delta < self.delta or not self.private:
            return math.inf
        kept = 1 - (delta - self.delta) / (1 - self.delta) * (1 + math.exp(-self.epsilon))
        return max(0.0, self.epsilon + math.log(kept)) if kept > 0 else 0.0

    def to_json(self, releases: Iterable[tuple[str, int]] | None = None) -> str:
        """JSON for a registry of releases, which `dpmc verify` checks without a row.

        Its ``deployment`` has the fields of the registry of differential privacy deployments that
        a guarantee decides: variant, unprotected quantities, unit and parameters of privacy.

        Parameters
        ----------
        releases : iterable of (str, int), optional
            What was released, as ``Fit.ledger``: their digest is kept.
        """
        from dpmc.types.registered import facts, made_with

        return json.dumps({**facts(self, releases), "made_with": made_with()}, indent=1)

    def __str__(self) -> str:
        if not self.private and self.delta > 0:
            return f"no finite epsilon at delta = {self.delta:.3g}: more delta is needed"
        if not self.private:
            if self.accountant == PUBLISHER:
                return "that of the releases, as their publisher states it"
            return "no privacy guarantee (epsilon = inf)"
        text = f"({self.epsilon:.4g}, {self.delta:.3g})-DP, {self.relation}"
        return text + (f", outside: {', '.join(self.outside)}" if self.outside else "")


# The accountant of what others released, who know its guarantee.
PUBLISHER = "publisher"
UNSTATED = Guarantee(math.inf, 0.0, accountant=PUBLISHER)
# The guarantee of what reads the private rows and adds no noise.
NO_GUARANTEE = Guarantee(math.inf, 0.0)
