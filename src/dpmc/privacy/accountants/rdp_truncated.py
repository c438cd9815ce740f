"""The rule of the public code of the thesis for batches, which is no upper bound."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from dpmc.privacy.accountants import _renyi

if TYPE_CHECKING:
    from dpmc.privacy.events import Event
    from dpmc.types import Array

UPPER_BOUND = False
REMARK = (
    "no upper bound: the public code of the thesis (oraisa/masters-thesis) stops the sum of "
    "raisa2021thesis, Theorem 8, one term too early, at order - 1; the result can lie below the "
    "divergence of neighbours that exist; for Gaussian releases, at the orders 2 to 199"
)
ORDERS = _renyi.orders(199)


@lru_cache(maxsize=256)
def _curve(event: Event) -> Array:
    return _renyi.gaussian_curve("rdp_truncated", event, ORDERS, drop_last=True)


_accountant = _renyi.RenyiAccountant(ORDERS, _curve)
delta = _accountant.delta
epsilon = _accountant.epsilon
max_iterations = _accountant.max_iterations
