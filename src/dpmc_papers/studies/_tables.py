"""Columns that the tables of all studies share: the point of the grid, and the guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dpmc import registry
from dpmc.progress import Progress
from dpmc.types import NO_GUARANTEE, UNAVAILABLE, Budget, Dataset, Guarantee
from dpmc_papers.config import grids
from dpmc_papers.config.problems import make_data
from dpmc_papers.config.setups import ProblemSetup, StudyPoint, StudySetup

if TYPE_CHECKING:
    import pandas as pd

# Studies look at private methods closely: what is counted without noise is named as outside.
EXACT = {"diagnostics": "exact"}

COLUMNS = {
    "experiment": "str",
    "problem": "str",
    "label": "str",
    "algorithm": "str",
    "method": "str",
    "variant": "str",
    "point": "str",
    "epsilon": "float64",
    "delta": "float64",
    "replicate": "int64",
    "guarantee_epsilon": "float64",
    "guarantee_delta": "float64",
    "guarantee_neighbours": "str",
    "guarantee_accountant": "str",
    "outside": "str",
    "status": "str",
}


def place(setup: StudyPoint, replicate: int) -> dict[str, Any]:
    """Columns that say where one replicate of a point stands in the configuration."""
    return {
        "experiment": setup.experiment,
        "problem": setup.problem.name,
        "label": setup.label,
        "algorithm": grids.algorithm(setup.label),
        "method": setup.method,
        "variant": setup.variant,
        "point": grids.name(setup.point),
        "epsilon": float(setup.point.get("epsilon", math.nan)),
        "delta": math.nan,
        "replicate": replicate,
    }


def drawn(
    problem: ProblemSetup, seed: int, number: int, key: str = "draw"
) -> tuple[ProblemSetup, Dataset]:
    """Problem and its rows with another value of a parameter that draws them."""
    other = problem.with_data(f"{problem.name} {number}", {key: number})
    return other, make_data(other, seed)


def having(params: Mapping[str, Any], cls: Any) -> dict[str, Any]:
    """Parameters whose names are fields of `cls`."""
    known = {entry.name for entry in fields(cls)}
    return {key: value for key, value in params.items() if key in known}


def method_params(
    module: Any, point: StudyPoint, own: Mapping[str, Any] = MappingProxyType({})
) -> Any:
    """Parameters of a method: those of the study that it has, and of the point."""
    given = having({**EXACT, **point.params}, module.Params)
    return registry.parameters(module, {**given, **own})


def budget(point: StudyPoint, delta: float) -> Budget | None:
    """Budget of a point, None if it has no epsilon."""
    if "epsilon" not in point.point:
        return None
    return Budget(float(point.point["epsilon"]), delta, "rdp")


def guaranteed(guarantee: Guarantee, outside: Iterable[str]) -> dict[str, Any]:
    """Columns that say what privacy a result really has."""
    private = guarantee.private
    return {
        "guarantee_epsilon": guarantee.epsilon,
        "guarantee_delta": guarantee.delta if private else math.nan,
        "guarantee_neighbours": guarantee.neighbours if private else "",
        "guarantee_accountant": guarantee.accountant,
        "outside": "; ".join(dict.fromkeys([*guarantee.outside, *outside])) if private else "",
    }


def missing(reason: str) -> dict[str, Any]:
    """Columns of a replicate whose data cannot be had."""
    return {**guaranteed(NO_GUARANTEE, ()), "status": f"{UNAVAILABLE}: {reason}"}


def tabulate(
    columns: Mapping[str, str],
    pairs: Iterable[tuple[StudyPoint, int]],
    progress: Progress,
    row: Callable[[StudyPoint, int], dict[str, Any] | Iterable[dict[str, Any]]],
) -> pd.DataFrame:
    """Table of what `row` gives for each point and replicate: a row or several."""
    every = list(pairs)
    rows: list[dict[str, Any]] = []
    for done, (point, replicate) in enumerate(every, 1):
        found = row(point, replicate)
        rows += [found] if isinstance(found, dict) else found
        progress(done, len(every), rows[-1]["status"])
    return typed(rows, columns)


def unavailable(
    columns: Mapping[str, str], setup: StudySetup, replicates: Iterable[int], reason: str
) -> pd.DataFrame:
    """Table of a study whose data cannot be had: its points, and that."""
    keys = [key for key in columns if key not in COLUMNS]
    rows = [
        {
            **place(point, replicate),
            **missing(reason),
            **{key: value for key, value in point.point.items() if key in keys},
        }
        for point in setup.each()
        for replicate in replicates
    ]
    return typed(rows, columns)


def typed(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> pd.DataFrame:
    """Rows as a table of given columns and types; what a row lacks is empty or NaN."""
    import pandas as pd

    empty: dict[str, Any] = {"int64": 0, "str": "", "float64": math.nan}
    blank = {name: empty[kind] for name, kind in columns.items()}
    return pd.DataFrame([{**blank, **row} for row in rows], columns=list(columns)).astype(
        dict(columns)
    )
