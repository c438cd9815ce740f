"""Gaussian releases from batches drawn without replacement, under substitution of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmc.privacy.accountants._numerical import NumericalAccountant
from dpmc.privacy.accountants._pairs import Pair, WithoutReplacement, split

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts

UPPER_BOUND = True
REMARK = (
    "valid for Gaussian releases from batches drawn without replacement, and from all rows: "
    "the symmetric profile of one release is attained, its composition is an upper bound"
)


def _pairs(counts: Counts) -> list[tuple[Pair, int]]:
    """Pairs of Gaussian releases, sampled without replacement or not."""
    return split("subsampled", counts, WithoutReplacement)


_accountant = NumericalAccountant(_pairs)
delta = _accountant.delta
epsilon = _accountant.epsilon
