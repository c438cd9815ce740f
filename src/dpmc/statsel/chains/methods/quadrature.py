"""The posterior by quadrature: no chain, but what every chain has to agree with."""

from __future__ import annotations

from dpmc.types import NoParams

SHAPES = ("mean", "order", "records")
VARIANTS = {"as_published": None, "corrected": None}


Params = NoParams
