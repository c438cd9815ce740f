"""Releases of the Barker test, composed numerically."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmc.privacy.accountants._barker import BarkerBatch
from dpmc.privacy.accountants._numerical import NumericalAccountant
from dpmc.privacy.accountants._pairs import Pair, WithoutReplacement, split
from dpmc.privacy.events import BarkerEvent

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts

UPPER_BOUND = True
REMARK = (
    "valid for releases of the Barker test from batches drawn without replacement, and Gaussian "
    "ones in addition to them: the profile of one release is proved for every change of mean and "
    "variance that one row can make, each bounded by itself, and composed from above"
)
_COVERED = "releases of the Barker test and Gaussian releases, from all rows or from batches"


def _pairs(counts: Counts) -> list[tuple[Pair, int]]:
    """Pairs of releases of the Barker test and of Gaussian ones, sampled or not."""
    others = {event: n for event, n in counts.items() if not isinstance(event, BarkerEvent)}
    pairs = split("barker_pld", others, WithoutReplacement, _COVERED)
    tests: list[tuple[Pair, int]] = [
        (BarkerBatch(event), n) for event, n in counts.items() if isinstance(event, BarkerEvent)
    ]
    return pairs + [(pair, n) for pair, n in tests if n > 0]


_accountant = NumericalAccountant(_pairs)
delta = _accountant.delta
epsilon = _accountant.epsilon
