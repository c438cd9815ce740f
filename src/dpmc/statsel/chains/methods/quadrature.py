"""The posterior by quadrature: no chain, but what every chain has to agree with."""

from __future__ import annotations

from dataclasses import dataclass

SHAPES = ("mean", "order", "records")
VARIANTS = {"as_published": None, "corrected": None}


@dataclass(frozen=True)
class Params:
    """Quadrature has no settings of its own."""
