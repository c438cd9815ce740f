"""Remarks of a regression: what is wrong with it, by name, and what would help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

@dataclass(frozen=True)
class Judged:
    found: Any
    units: Any
    cost: Any
    names: Sequence[str]
    intercept: bool
    kind: int
    given: bool
    num_rows: float
    robust: bool


def remarks(judged: Judged) -> Iterator[str]:
    yield from ()
