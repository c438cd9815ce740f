"""What carries a sensitivity, without it."""

from __future__ import annotations

from typing import Any

from dpmc.privacy.clipped import Clipped
from dpmc.privacy.nodes import NodeValues


def values(found: Any) -> Any:
    """Return the values of a `Clipped`, or of a dict, a tuple or nodes of them."""
    if isinstance(found, Clipped):
        return found.value
    if isinstance(found, NodeValues):
        return values(found.values)
    if isinstance(found, dict):
        return {key: values(one) for key, one in found.items()}
    return tuple(map(values, found))


def less(clipped: Clipped, factor: float = 0.5) -> Clipped:
    """Return a value that carries less than its sensitivity: a fault."""
    return clipped._replace(sensitivity=clipped.sensitivity * factor)
