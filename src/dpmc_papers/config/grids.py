"""The points of a grid: budgets and parameters, each named by what it sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpmc_papers.config.settings import Method

# Names of points are names of folders.
SHORT = {"epsilon": "eps", "num_nodes": "J"}


def combinations(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Points of a grid: one value of each key; for an empty grid one empty point."""
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def each_value(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Points of a grid that have every value of every key, far fewer than all points."""
    first = {key: values[0] for key, values in grid.items()}
    yield first
    for key, values in grid.items():
        yield from ({**first, key: value} for value in values[1:])


def points(
    method: Method, budgets: Sequence[float | None]
) -> Iterator[tuple[str, float | None, dict[str, Any]]]:
    """Points of the grid of a method: name, epsilon or None, parameters.

    Parameters
    ----------
    method : Method
        Its ``grid``, if it has one, maps parameters to lists of values.
    budgets : sequence of (float or None)
        The values of epsilon; None for no budget.
    """
    for epsilon in budgets:
        for extra in combinations(method.grid or {}):
            parts = [] if epsilon is None else [f"eps={_text(epsilon)}"]
            parts += [f"{key.removeprefix('ratio_')}={_text(v)}" for key, v in extra.items()]
            yield ",".join(parts) or "single", epsilon, extra


def together(
    grid: Mapping[str, Sequence[Any]], inner: Sequence[str]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Groups of points: those that differ in the keys `inner` alone.

    Each comes with the name of what its points share.
    """
    outer = {key: values for key, values in grid.items() if key not in inner}
    within = {key: values for key, values in grid.items() if key in inner}
    for shared in combinations(outer):
        yield name(shared) if shared else "all", [{**shared, **p} for p in combinations(within)]


def name(chosen: Mapping[str, Any]) -> str:
    """Name of one combination of values."""
    parts = [f"{SHORT.get(key, key)}={_text(value)}" for key, value in chosen.items()]
    return ",".join(parts) or "single"


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).replace(" ", "")


def algorithm(label: str) -> str:
    """Algorithm that a label of a configuration names: all up to its first hyphen."""
    return label.partition("-")[0]
