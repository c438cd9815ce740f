"""Gaussian noise of sd D / epsilon on every record [alparslan2023thesis, section 4.5]."""

from __future__ import annotations

from dpmc.statsel.mechanisms import gaussian
from dpmc.statsel.types import Mechanism
from dpmc.types import NoParams

Params = NoParams


def build(params: NoParams) -> Mechanism:
    """Return the mechanism."""
    return gaussian.build(gaussian.Params(per_record=True))
