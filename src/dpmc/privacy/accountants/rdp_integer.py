"""Rényi differential privacy at integer orders, as the thesis accounts for batches."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from dpmc.privacy.accountants import _renyi

if TYPE_CHECKING:
    from dpmc.privacy.events import Event
    from dpmc.types import Array

UPPER_BOUND = True
REMARK = (
    "valid but loose: the sum of raisa2021thesis, Theorem 8, to its last term, for Gaussian "
    "releases from batches drawn without replacement, and from all rows, at the orders 2 to 256"
)
ORDERS = _renyi.orders(256)


@lru_cache(maxsize=256)
def _curve(event: Event) -> Array:
    return _renyi.gaussian_curve("rdp_integer", event, ORDERS)


_accountant = _renyi.RenyiAccountant(ORDERS, _curve)
delta = _accountant.delta
epsilon = _accountant.epsilon
max_iterations = _accountant.max_iterations
