"""Laplace noise of scale D / epsilon on every record [alparslan2023thesis, section 4.5]."""

from __future__ import annotations

from dpmc.statsel.mechanisms import laplace
from dpmc.statsel.types import Mechanism
from dpmc.types import NoParams

Params = NoParams


def build(params: NoParams) -> Mechanism:
    """Return the mechanism."""
    return laplace.build(laplace.Params(per_record=True))
