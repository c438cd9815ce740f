"""Releases of the Barker test by the Rényi bound of the thesis."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dpmc.privacy import accounting
from dpmc.privacy.accountants import _renyi
from dpmc.privacy.events import BarkerEvent

if TYPE_CHECKING:
    from dpmc.privacy.events import Event
    from dpmc.types import Array

# By the exact divergence of _barker.renyi: at a noise variance of 2 and kappa = 1 its t is below
# 4 / b, so that 1 - (order - 1) t > (b - 5 order) / b bounds both of its terms. A smaller kappa
# only lowers it.
UPPER_BOUND = True
REMARK = (
    "valid and very loose: raisa2021thesis, Theorem 7, for a noise variance of 2, a clip scale of "
    "at most 1 and orders below a fifth of the batch; it is false for less noise; one of its terms "
    "does not vanish for large batches, and barker_pld buys hundreds of times the iterations"
)
ORDERS = _renyi.orders(1024)
_COVERED = (
    "barker(2.0, ...) with clip_scale <= 1 and batch_size > 10: the bound is false for less noise"
)


@lru_cache(maxsize=256)
def _curve(event: Event) -> Array:
    if (
        not isinstance(event, BarkerEvent)
        or event.noise_variance != 2
        or event.clip_scale > 1
        or event.batch_size <= 10
    ):
        raise accounting.refuse("barker_rdp_published", event, _COVERED)
    b = event.batch_size
    rest = b - 5 * ORDERS
    inside = np.where(rest > 0, rest, 1.0)
    of_batch = 5 / (2 * b) + np.log(2 * b / inside) / (2 * (ORDERS - 1)) + 2 * ORDERS / inside
    return _renyi.amplified(event.fraction, np.where(rest > 0, of_batch, np.inf))


_accountant = _renyi.RenyiAccountant(ORDERS, _curve)
delta = _accountant.delta
epsilon = _accountant.epsilon
max_iterations = _accountant.max_iterations
