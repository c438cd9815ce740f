"""The joint guarantee of several fits and releases computed from the same rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpmc.privacy import accounting, calibration, events
from dpmc.privacy.audit import Bounded, composed
from dpmc.privacy.ledger import Ledger
from dpmc.types import NEIGHBOURS, SEED, DpmcError, Guarantee, Neighbours, Plan, check_delta

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts, Event

NAME = "composition"


@dataclass
class _Total:
    """Sum of the parts."""

    neighbours: Neighbours
    unit: str | None = None
    unnamed: str = ""
    counts: dict[Event, int] = field(default_factory=dict)
    bounded: list[Bounded] = field(default_factory=list)
    outside: dict[str, None] = field(default_factory=dict)
    noises: set[str] = field(default_factory=set)

    @property
    def noise(self) -> str:
        """Noise of all parts, empty where that of one is not stated."""
        return "" if "" in self.noises else " and ".join(sorted(self.noises))

    def add(self, counts: dict[Event, int], name: str) -> None:
        for event, count in counts.items():
            if self.neighbours != "replace" and not events.is_of_all_rows(event):
                raise DpmcError(
                    f"{name} must have releases from all rows alone under "
                    f"{NEIGHBOURS[self.neighbours]}, got {events.text(event)}, which is accounted "
                    f"for under {NEIGHBOURS['replace']}"
                )
            self.counts[event] = self.counts.get(event, 0) + count


def compose(
    parts: Iterable[Any],
    delta: float,
    neighbours: Neighbours = "replace",
    unit: str | None = None,
) -> Guarantee:
    """Guarantee of several fits and releases together.

    All may have been computed from the same rows. The parts and their budgets are to be fixed
    beforehand, or chosen from earlier outputs under budgets that were: what is released within
    a part, and the parameters of a part, may depend on earlier outputs; the privacy of a part
    may not, unless a `Ledger` with a `GaussianBudget` spans all of them.

    Parameters
    ----------
    parts : iterable
        Of each part what says most about it: a `dpmc.Fit` or a `Ledger`, or the records of one,
        whose releases are composed by the tightest accountant; a release with a field
        `guarantee`, or a `Guarantee`. A Gaussian guarantee is composed as the Gaussian release
        that it is the exact curve of. Of any other only its epsilon and delta are used: it
        enters as the least private mechanism that has them. A ledger with a plan or a budget
        counts with all of it, and a fit with all that it was to release.
    delta : float
        At which epsilon is wanted, in (0, 1).
    neighbours : {"replace", "add_remove"}
        What the noise multipliers of ledgers and records are relative to; all that name a
        relation have to name this one.
    unit : str, optional
        What all parts protect, as ``Guarantee.unit``; by default what they name. It has to be given
        beside ledgers and records, which name none, unless it is the row.

    Returns
    -------
    Guarantee
        An upper bound. Its epsilon is infinite where the parts have a larger delta already: the
        sum of theirs is one at which it is finite.

    Raises
    ------
    DpmcError
        If a part has no guarantee, another relation or another unit, or is none of these; or if two
        parts have a seed, which may be the same: with the same noise their difference has none.

    Examples
    --------
    >>> from dpmc.types import Guarantee
    >>> parts = [Guarantee(1.0, 1e-7, accountant="pld"), Guarantee(0.5, 1e-7, accountant="pld")]
    >>> 1 < compose(parts, delta=1e-6).epsilon <= 1.5
    True
    """
    check_delta(delta)
    if isinstance(parts, str) or not isinstance(parts, Iterable):
        raise DpmcError(f"`parts` must be a list of parts, got a {type(parts).__name__}")
    if neighbours not in NEIGHBOURS:
        raise DpmcError(f"`neighbours` must be one of {', '.join(NEIGHBOURS)}, got {neighbours!r}")
    if unit is not None and (not isinstance(unit, str) or not unit):
        raise DpmcError(f"`unit` must name what is protected, such as 'row', got {unit!r}")
    return together(_with_one_seed(parts), delta, neighbours, unit)


def together(
    parts: Iterable[Any],
    delta: float,
    neighbours: Neighbours = "replace",
    unit: str | None = None,
) -> Guarantee:
    """Joint guarantee, as of `compose`, of parts whose noise is known to be independent."""
    total = _Total(neighbours, unit)
    for index, part in enumerate(parts):
        _take(part, f"part {index}", total)
    found = total.unit or "row"
    if unit is None and found != "row" and total.unnamed:
        raise DpmcError(
            f"`unit` must be given, since {total.unnamed} does not say what it protects and others "
            f"protect a {found}"
        )
    outside = tuple(total.outside)
    counts = {event: count for event, count in total.counts.items() if count}
    if not total.bounded:
        name, epsilon = _releases(counts, delta)
        return Guarantee(epsilon, delta, neighbours, name, outside, found, total.noise)
    epsilon = composed(counts, delta, total.bounded).epsilon
    # Where little delta is left, numerical composition loses more than the sum of epsilons.
    left = delta - math.fsum(one.delta for one in total.bounded)
    if left > 0 or (left == 0 and not counts):
        others = _releases(counts, left)[1] if counts else 0.0
        summed = math.fsum(one.epsilon for one in total.bounded) + others
        epsilon = min(epsilon, summed * (1 + 1e-15))
    return Guarantee(epsilon, delta, neighbours, NAME, outside, found, total.noise)


def _with_one_seed(parts: Iterable[Any]) -> Iterator[Any]:
    """Parts, refusing a second one with a seed."""
    first = None
    for index, part in enumerate(parts):
        guarantee = part if isinstance(part, Guarantee) else getattr(part, "guarantee", None)
        if SEED in getattr(guarantee, "outside", ()):
            if first is not None:
                raise DpmcError(
                    f"part {index} must have no seed, as part {first} has one: with the same noise "
                    "they do not add up"
                )
            first = index
        yield part


def _releases(counts: Counts, delta: float) -> tuple[str, float]:
    """Tightest accountant of recorded releases and its epsilon."""
    if not counts:
        return NAME, 0.0
    name = calibration.best_accountant(counts)
    return name, float(accounting.load(name).epsilon(counts, delta))


def _take(part: Any, name: str, total: _Total) -> None:
    """Add a part to the total."""
    if isinstance(part, Ledger | tuple | list):
        total.unnamed = total.unnamed or name
    if isinstance(part, Ledger):
        total.noises.add(part.noise)
        _check_relation(part.neighbours or total.neighbours, name, total)
        total.add(part.committed, name)
        return
    if isinstance(part, tuple | list):
        total.noises.add("")
        total.add(events.parse(part), name)
        return
    guarantee = part if isinstance(part, Guarantee) else getattr(part, "guarantee", None)
    if not isinstance(guarantee, Guarantee):
        raise DpmcError(
            f"{name} must be a Fit, a Ledger or its records, a release or a Guarantee, got a "
            f"{type(part).__name__}"
        )
    if not guarantee.private:
        raise DpmcError(f"{name} must be private, got no privacy guarantee")
    _check_relation(guarantee.neighbours, name, total)
    if total.unit is not None and guarantee.unit != total.unit:
        raise DpmcError(
            f"{name} must protect a {total.unit}, as parts before it do or `unit` says, got a "
            f"{guarantee.unit}"
        )
    total.unit = guarantee.unit
    total.outside |= dict.fromkeys(guarantee.outside)
    total.noises |= set(guarantee.noise.split(" and "))
    counts = _fixed(part, guarantee)
    if counts:
        total.add(dict(counts), name)
    elif guarantee.epsilon != 0 or guarantee.delta != 0:
        _take_guarantee(guarantee, name, total)


def _check_relation(neighbours: Neighbours, name: str, total: _Total) -> None:
    """Refuse a part under another relation than all parts."""
    if neighbours != total.neighbours:
        raise DpmcError(
            f"{name} must be private under {NEIGHBOURS[total.neighbours]}, as all parts, got "
            f"{NEIGHBOURS[neighbours]}"
        )


def _fixed(part: Any, guarantee: Guarantee) -> Counts:
    """Releases that a fit was to make, none where they are not known beforehand.

    What happened to be released is not enough: chains that end early, or a trajectory that leaves
    the finite numbers, release less for what earlier releases said.
    """
    plan = getattr(part, "plan", None)
    if not isinstance(plan, Plan):
        plan = Plan()  # a ledger has a plan of another kind
    if guarantee.accountant == "gaussian" or plan.search is not None:
        return {}  # the first is exact, and of the second the noise was chosen on the way
    if plan.releases:
        return events.parse(plan.releases.items())
    complete = getattr(part, "status", "complete") == "complete"
    return events.parse(getattr(part, "ledger", ())) if complete else {}


def _take_guarantee(guarantee: Guarantee, name: str, total: _Total) -> None:
    """Add what only a guarantee is known of."""
    from dpmc.privacy.budgets import GaussianBudget

    exact = guarantee.accountant == "gaussian" and guarantee.epsilon > 0
    if exact and 0 < guarantee.delta < 1:
        total.add(GaussianBudget.of(guarantee.epsilon, guarantee.delta).worst(), name)
    elif 0 <= guarantee.delta < 1 and 0 <= guarantee.epsilon < math.inf:
        total.bounded.append(Bounded(guarantee.epsilon, guarantee.delta))
    else:
        raise DpmcError(
            f"`delta` must be in [0, 1) and `epsilon` finite and at least 0, got {guarantee.delta} "
            f"and {guarantee.epsilon}"
        )
