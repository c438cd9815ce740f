"""Privacy budgets, and the guarantees that results really have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dpmc.types.errors import DpmcError
from dpmc.types.numbers import check_epsilon_delta

Neighbours = Literal["replace", "add_remove"]
# Each neighbouring relation, and how neighbours differ.
NEIGHBOURS: Mapping[Neighbours, str] = {
    "replace": "substitution of one row",
    "add_remove": "addition or removal of one row",
}


# What a guarantee names as outside of it: of a run with a seed, and of noise in floating point.
SEED = "a seed, if it is known or used again"
LOW_BITS = "low bits of continuous noise"


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

    Examples
    --------
    >>> print(Guarantee(4.0, 1e-6, accountant="gaussian"))
    (4, 1e-06)-DP, substitution of one row
    >>> Guarantee(4.0, 1e-6, unit="patient").relation
    'substitution of one patient'
    >>> Guarantee(float("inf"), 0.0).private
    False
    """

    epsilon: float
    delta: float
    neighbours: Neighbours = "replace"
    accountant: str = ""
    outside: tuple[str, ...] = ()
    unit: str = "row"

    @property
    def private(self) -> bool:
        """Whether there is a finite epsilon."""
        return math.isfinite(self.epsilon)

    @property
    def relation(self) -> str:
        """How neighbouring data sets differ, in words."""
        return NEIGHBOURS[self.neighbours].replace(" row", f" {self.unit}")

    def __str__(self) -> str:
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
