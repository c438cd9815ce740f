"""Rényi differential privacy, by dp_accounting, under substitution of one row."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dpmc.privacy import accounting, events
from dpmc.types import Array, check_delta, check_epsilon

if TYPE_CHECKING:
    from dp_accounting import DpEvent

    from dpmc.privacy.events import Counts

UPPER_BOUND = True
REMARK = (
    "valid but loose; batches drawn without replacement by theorem 27 of Wang, Balle and "
    "Kasiviswanathan (2019), whose sum runs to the order itself"
)
ORDERS = (
    *(1 + x / 10 for x in range(1, 100)),
    *range(11, 64),
    *(64, 72, 80, 96, 112, 128, 160, 192, 224, 256, 384, 512, 768, 1024, 1536, 2048),
)
_SAMPLED_ORDERS = tuple(order for order in ORDERS if order <= 256)


@lru_cache(maxsize=256)
def _curve(event: DpEvent) -> Array:
    """Rényi divergence of one event at `ORDERS`, infinite where it is not computed."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    noise = events.noise_of(event)
    if noise is None:
        raise accounting.refuse(
            "rdp", event, "Gaussian releases, from all rows or from batches without replacement"
        )
    orders = ORDERS if noise[1] == 1 else _SAMPLED_ORDERS  # the sampled bound is slow at high ones
    accountant = RdpAccountant(orders, NeighboringRelation.REPLACE_ONE)
    accountant.compose(event)
    curve = np.full(len(ORDERS), math.inf)
    curve[: len(orders)] = accountant._rdp
    return curve


def _composed(counts: Counts) -> Array:
    total = np.zeros(len(ORDERS))
    for event, count in counts.items():
        curve = _curve(event)
        if count:  # infinite orders times zero
            total += count * curve
    return total


def delta(counts: Counts, epsilon: float) -> float:
    """Smallest delta over `ORDERS`."""
    from dp_accounting.rdp.rdp_privacy_accountant import compute_delta

    check_epsilon(epsilon, zero=True)
    return float(compute_delta(ORDERS, _composed(counts), epsilon)[0])


def epsilon(counts: Counts, delta: float) -> float:
    """Smallest epsilon over `ORDERS`."""
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

    check_delta(delta)
    return float(compute_epsilon(ORDERS, _composed(counts), delta)[0])
