"""The points of a grid: budgets and parameters, each named by what it sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def points(
    method: Mapping[str, Any], epsilons: Sequence[float]
) -> Iterator[tuple[str, float | None, dict[str, Any]]]:
    """Yield the points of the grid of a method: name, epsilon or None, parameters.

    Parameters
    ----------
    method : mapping
        Its ``grid``, if it has one, maps parameters to lists of values. With an
        ``accountant`` it runs at every epsilon.
    epsilons : sequence of float
    """
    grid = method.get("grid", {})
    budgets = list(epsilons) if "accountant" in method else [None]
    for epsilon, *values in itertools.product(budgets, *grid.values()):
        extra = dict(zip(grid, values, strict=True))
        parts = [] if epsilon is None else [f"eps={_text(epsilon)}"]
        parts += [f"{key.removeprefix('ratio_')}={_text(value)}" for key, value in extra.items()]
        yield ",".join(parts) or "single", epsilon, extra


def combinations(grid: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every combination of the values of a grid, with its name."""
    for values in itertools.product(*grid.values()):
        chosen = dict(zip(grid, values, strict=True))
        parts = [f"{SHORT.get(key, key)}={_text(value)}" for key, value in chosen.items()]
        yield ",".join(parts) or "single", chosen


# Names of points are names of folders.
SHORT = {"epsilon": "eps", "num_nodes": "J"}


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).replace(" ", "")
