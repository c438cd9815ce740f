"""The values that the parts of the library exchange: frozen, and checked when they are made."""

from __future__ import annotations

from dpmc.types.dataset import Dataset, refuse_not_finite
from dpmc.types.entries import InvalidRows, number, numbers
from dpmc.types.errors import UNAVAILABLE, DpmcError, MemoryLimitError, UnavailableError
from dpmc.types.frames import (
    arrow_entries,
    as_numbers,
    collected,
    is_frame,
    is_lazy,
    is_name,
    is_unnamed,
    labels,
)
from dpmc.types.guarantee import (
    LOW_BITS,
    NEIGHBOURS,
    NO_GUARANTEE,
    ROW,
    SEED,
    UNSTATED,
    Budget,
    Guarantee,
    Neighbours,
)
from dpmc.types.model import Model, NoParams
from dpmc.types.numbers import (
    Array,
    check_delta,
    check_epsilon,
    check_epsilon_delta,
    is_integer,
    is_real,
)
from dpmc.types.plan import Plan
from dpmc.types.results import (
    CLIP_COUNTS,
    CLIP_FRACTIONS_OUTSIDE,
    CLIPS_OUTSIDE,
    PUBLIC_INFO,
    Diagnostic,
    swapped,
)

__all__ = [
    "CLIPS_OUTSIDE",
    "CLIP_COUNTS",
    "CLIP_FRACTIONS_OUTSIDE",
    "LOW_BITS",
    "NEIGHBOURS",
    "NO_GUARANTEE",
    "PUBLIC_INFO",
    "ROW",
    "SEED",
    "UNAVAILABLE",
    "UNSTATED",
    "Array",
    "Budget",
    "Dataset",
    "Diagnostic",
    "DpmcError",
    "Guarantee",
    "InvalidRows",
    "MemoryLimitError",
    "Model",
    "Neighbours",
    "NoParams",
    "Plan",
    "UnavailableError",
    "arrow_entries",
    "as_numbers",
    "check_delta",
    "check_epsilon",
    "check_epsilon_delta",
    "collected",
    "is_frame",
    "is_integer",
    "is_lazy",
    "is_name",
    "is_real",
    "is_unnamed",
    "labels",
    "number",
    "numbers",
    "refuse_not_finite",
    "swapped",
]
