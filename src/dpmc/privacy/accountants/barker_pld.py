"""Releases of the Barker test, composed numerically."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmc.privacy import accounting
from dpmc.privacy.accountants._barker import BarkerBatch
from dpmc.privacy.accountants._composition import compose
from dpmc.privacy.accountants._pairs import Pair, WithoutReplacement, split
from dpmc.privacy.events import BarkerEvent
from dpmc.types import check_epsilon

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts

UPPER_BOUND = True
REMARK = (
    "valid for releases of the Barker test from batches drawn without replacement, and Gaussian "
    "ones beside them: the profile of one release is proved for every change of mean and variance "
    "that one row can make, each bounded by itself, and composed from above"
)
_COVERED = "releases of the Barker test and Gaussian releases, from all rows or from batches"


def delta(counts: Counts, epsilon: float) -> float:
    """Return an upper bound on delta at `epsilon`.

    Parameters
    ----------
    counts : mapping of event to int
        Releases of the Barker test, and Gaussian ones, sampled or not.
    epsilon : float
        At least 0.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    DpmcError
        If an event is of another kind.
    """
    check_epsilon(epsilon, zero=True)
    others = {event: n for event, n in counts.items() if not isinstance(event, BarkerEvent)}
    pairs = split("barker_pld", others, WithoutReplacement, _COVERED)
    tests: list[tuple[Pair, int]] = [
        (BarkerBatch(event), n) for event, n in counts.items() if isinstance(event, BarkerEvent)
    ]
    pairs += [(pair, n) for pair, n in tests if n > 0]
    return compose(pairs, epsilon) if pairs else 0.0


def epsilon(counts: Counts, delta: float) -> float:
    """Return an upper bound on epsilon at `delta`."""
    return accounting.smallest_epsilon(lambda value: _delta(counts, value), delta)


_delta = delta
