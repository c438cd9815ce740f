"""Runs of a mechanism on two data sets: one by one or in batches, here or in processes."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpmc.privacy.outcomes import Labels, Raised
from dpmc.types import DpmcError

_CHUNK = 2000  # runs of a process at once


def outcomes_of(
    mechanism: Callable[..., Any],
    pair: tuple[Any, Any],
    labels: Labels,
    workers: int,
    root: np.random.SeedSequence,
) -> list[Any]:
    """Outcome of each run, that of the second data set where the label is true.

    Parameters
    ----------
    mechanism : callable
        See :func:`dpmc.privacy.empirical.audit`.
    pair : tuple of two data sets
    labels : ndarray of bool of shape (runs,)
    workers : int
        Processes.
    root : numpy.random.SeedSequence
        Of the generators that a mechanism with a parameter ``rng`` gets.
    """
    sized, seeded = takes(mechanism, "size"), takes(mechanism, "rng")
    if workers > 1 and not seeded:
        raise DpmcError(
            f"`workers` must be 1 for a mechanism without a parameter `rng`, got {workers}: "
            "processes would repeat its random numbers"
        )
    parts = np.split(labels, range(_CHUNK, len(labels), _CHUNK))
    jobs = [
        (mechanism, pair, part, sized, child if seeded else None)
        for part, child in zip(parts, root.spawn(len(parts)), strict=True)
    ]
    if workers == 1:
        chunks = [_chunk(*job) for job in jobs]
    else:
        from concurrent.futures import ProcessPoolExecutor

        try:
            pickle.dumps((mechanism, pair))
        except Exception as error:  # whatever an object raises when it is asked
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise DpmcError(
                f"`mechanism` and data must be what `pickle` can send to processes, or `workers` 1,"
                f" got {reason}"
            ) from None
        with ProcessPoolExecutor(workers) as pool:
            chunks = list(pool.map(_chunk, *zip(*jobs, strict=True)))
    return [outcome for chunk in chunks for outcome in chunk]


def _chunk(
    mechanism: Callable[..., Any],
    pair: tuple[Any, Any],
    labels: Labels,
    sized: bool,
    seed: np.random.SeedSequence | None,
) -> list[Any]:
    """Run the mechanism once for each label."""
    given: dict[str, Any] = {} if seed is None else {"rng": np.random.default_rng(seed)}
    if not sized:
        return [_once(mechanism, pair[int(label)], given) for label in labels]
    results: list[Any] = [None] * len(labels)
    for label in (False, True):
        places = np.flatnonzero(labels == label)
        outcomes = mechanism(pair[int(label)], size=len(places), **given)
        if not hasattr(outcomes, "__len__"):
            kind = type(outcomes).__name__
            raise DpmcError(f"`mechanism` must return {len(places)} outcomes, got a {kind}")
        if len(outcomes) != len(places):
            raise DpmcError(f"`mechanism` must return {len(places)} outcomes, got {len(outcomes)}")
        for place, outcome in zip(places, outcomes, strict=True):
            results[place] = outcome
    return results


def _once(mechanism: Callable[..., Any], data: Any, given: Mapping[str, Any]) -> Any:
    try:
        return mechanism(data, **given)
    except Exception as error:  # an outcome as well: whoever runs a mechanism sees it
        return Raised(type(error).__name__, str(error))


def takes(mechanism: Callable[..., Any], name: str) -> bool:
    """Whether a mechanism has a parameter of a name, without a default."""
    try:
        parameter = inspect.signature(mechanism).parameters.get(name)
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.default is inspect.Parameter.empty
