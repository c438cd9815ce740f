"""Gaussian releases from batches drawn without replacement, under substitution of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmc.privacy import accounting
from dpmc.privacy.accountants._composition import compose
from dpmc.privacy.accountants._pairs import WithoutReplacement, split
from dpmc.types import check_epsilon

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts

UPPER_BOUND = True
REMARK = (
    "valid for Gaussian releases from batches drawn without replacement, and from all rows: "
    "the symmetric profile of one release is attained, its composition is an upper bound"
)


def delta(counts: Counts, epsilon: float) -> float:
    """Return an upper bound on delta at `epsilon`.

    Parameters
    ----------
    counts : mapping of DpEvent to int
        Gaussian events, sampled without replacement or not.
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
    pairs = split("subsampled", counts, WithoutReplacement)
    return compose(pairs, epsilon) if pairs else 0.0


def epsilon(counts: Counts, delta: float) -> float:
    """Return an upper bound on epsilon at `delta`."""
    return accounting.smallest_epsilon(lambda value: _delta(counts, value), delta)


_delta = delta
