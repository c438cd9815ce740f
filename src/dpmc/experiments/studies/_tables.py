"""Columns that the tables of all studies share: the point of the grid, and the guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import pandas as pd

from dpmc.experiments.config import grids
from dpmc.experiments.config.problems import make_data
from dpmc.types import NO_GUARANTEE, UNAVAILABLE, Dataset, Guarantee

Settings = Mapping[str, Any]
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


def points(settings: Settings) -> list[dict[str, Any]]:
    """Return the settings of each point, in place of those of the job that it shares."""
    shared = {key: value for key, value in settings.items() if key != "points"}
    return [{**shared, "point": point} for point in settings["points"]]


def place(settings: Settings, replicate: int) -> dict[str, Any]:
    """Return the columns that say where one replicate of a point stands in the configuration."""
    label, point = str(settings["label"]), dict(settings["point"])
    return {
        "experiment": settings["experiment"],
        "problem": settings["problem"]["name"],
        "label": label,
        "algorithm": grids.algorithm(label),
        "method": settings["method"],
        "variant": settings["variant"],
        "point": grids.name(point),
        "epsilon": float(point.get("epsilon", math.nan)),
        "delta": math.nan,
        "replicate": replicate,
    }


def drawn(settings: Settings, number: int, key: str = "draw") -> tuple[dict[str, Any], Dataset]:
    """Return a problem and its rows with another value of a parameter that draws them."""
    spec = dict(settings["problem"])
    params = {**spec["data"]["params"], key: number}
    spec |= {"name": f"{spec['name']} {number}", "data": {**spec["data"], "params": params}}
    return spec, make_data(spec, settings["seed"])


def having(params: Settings, cls: Any) -> dict[str, Any]:
    """Return the parameters whose names are fields of `cls`."""
    known = {entry.name for entry in fields(cls)}
    return {key: value for key, value in params.items() if key in known}


def guaranteed(guarantee: Guarantee, outside: Iterable[str]) -> dict[str, Any]:
    """Return the columns that say what privacy a result really has."""
    private = guarantee.private
    return {
        "guarantee_epsilon": guarantee.epsilon,
        "guarantee_delta": guarantee.delta if private else math.nan,
        "guarantee_neighbours": guarantee.neighbours if private else "",
        "guarantee_accountant": guarantee.accountant,
        "outside": "; ".join(dict.fromkeys([*guarantee.outside, *outside])) if private else "",
    }


def missing(reason: str) -> dict[str, Any]:
    """Return the columns of a replicate whose data cannot be had."""
    return {**guaranteed(NO_GUARANTEE, ()), "status": f"{UNAVAILABLE}: {reason}"}


def unavailable(
    settings: Settings, replicates: Iterable[int], reason: str, columns: Mapping[str, str]
) -> pd.DataFrame:
    """Return the table of a study whose data cannot be had: its points, and that."""
    keys = [key for key in columns if key not in COLUMNS]
    rows = [
        {
            **place(point, replicate),
            **missing(reason),
            **{key: value for key, value in point["point"].items() if key in keys},
        }
        for point in points(settings)
        for replicate in replicates
    ]
    return typed(rows, columns)


def typed(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> pd.DataFrame:
    """Return rows as a table of given columns and types; what a row lacks is empty or NaN."""
    empty: dict[str, Any] = {"int64": 0, "str": "", "float64": math.nan}
    blank = {name: empty[kind] for name, kind in columns.items()}
    return pd.DataFrame([{**blank, **row} for row in rows], columns=list(columns)).astype(
        dict(columns)
    )
