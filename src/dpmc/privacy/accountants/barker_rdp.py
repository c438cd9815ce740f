"""Releases of the Barker test by the exact Rényi divergence of one batch."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from dpmc.privacy.accountants import _renyi
from dpmc.privacy.accountants._barker import renyi
from dpmc.privacy.events import BarkerEvent

if TYPE_CHECKING:
    from dpmc.privacy.events import Event
    from dpmc.types import Array

UPPER_BOUND = True
REMARK = (
    "valid but loose: the divergence of a release from one batch is the largest for every change "
    "of mean and variance that one row can make, its amplification by sampling and the conversion "
    "are not tight; Gaussian releases may be composed with those of the Barker test"
)
ORDERS = _renyi.orders(1024)
_COVERED = "releases of the Barker test and Gaussian releases, from all rows or from batches"


@lru_cache(maxsize=256)
def _curve(event: Event) -> Array:
    if isinstance(event, BarkerEvent):
        return _renyi.amplified(event.fraction, renyi(event, ORDERS))
    return _renyi.gaussian_curve("barker_rdp", event, ORDERS, covered=_COVERED)


_accountant = _renyi.RenyiAccountant(ORDERS, _curve, improved=True)
delta = _accountant.delta
epsilon = _accountant.epsilon
max_iterations = _accountant.max_iterations
