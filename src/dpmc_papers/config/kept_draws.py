"""Draws of the chains of a study: a study measures them, and keeps them only if somebody asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dpmc.types import Array
from dpmc_papers.config import grids
from dpmc_papers.config.setups import StudyPoint

Kept = dict[tuple[str, int], Array]
_asked: ContextVar[Kept | None] = ContextVar("_asked", default=None)


@contextmanager
def kept() -> Iterator[Kept]:
    """Keep what is offered inside.

    Yields
    ------
    dict of (str, int) to ndarray of shape (k, chains, d)
        Draws by the name of their point and their replicate.
    """
    found: Kept = {}
    token = _asked.set(found)
    try:
        yield found
    finally:
        _asked.reset(token)


def offer(point: StudyPoint, replicate: int, draws: Array) -> None:
    """Hand over the draws of a replicate, of shape (k, chains, d), in case somebody asked."""
    found = _asked.get()
    if found is not None:
        found[grids.name(point.point), replicate] = draws.copy()
