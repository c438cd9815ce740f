"""The way in by a formula: what a table says in its place of arrays."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np
import pandas as pd

from dpmc import callers
from dpmc.fits import Fit
from dpmc.fitting import PosteriorWarning
from dpmc.formulas.design import DROP, Design, refuse_missing_columns
from dpmc.formulas.syntax import LEVELS
from dpmc.shards.tables import open_table, refuse_missing
from dpmc.shards.units import Column
from dpmc.types import DpmcError, collected, frames, is_frame, labels

P = ParamSpec("P")
# Arguments that may name a column of the table.
BESIDE = "offset", "exposure", "trials", "event", "weights"
# Deviations of the noise that a count of rows has to exceed.
CLEAR = 2.0


def by_formula(way_in: Callable[P, Fit]) -> Callable[P, Fit]:
    """Way in of features and responses that takes a formula and a table in their place."""

    @functools.wraps(way_in)
    def door(*args: P.args, **given: P.kwargs) -> Fit:
        text = args[0] if args else given.get("x")
        if not isinstance(text, str) and not {"formula", "data"} & {*given}:
            return way_in(*args, **given)
        rest: dict[str, Any] = {key: value for key, value in given.items() if key != "x"}
        if not isinstance(text, str) or (len(args) < 2 and "y" not in rest):
            raise DpmcError(
                "a formula must come first and its table second, both without a name: "
                f"dpmc.{way_in.__name__}('y ~ x', table, ...)"
            )
        data = args[1] if len(args) > 1 else rest.pop("y")
        if rest.pop("intercept", True) is not True:
            raise DpmcError("`intercept` must be left out beside a formula, which says `- 1`")
        design = Design.of(text, rest.pop("ranges", None), rest.pop("missing", DROP))
        beside = [name for name in BESIDE if isinstance(rest.get(name), str)]
        unit = rest.get("unit")
        named = [unit] if isinstance(unit, str) else []
        frame = table_of(data, (*design.columns, *(rest[name] for name in beside), *named))
        x = pd.DataFrame(design.x(frame), columns=list(map(frames.label, design.names)))
        if not len(x) and unit is None and rest.get("neighbours") != "add_remove":
            raise DpmcError("the table of a formula must have rows, got none")
        if isinstance(frame, pd.DataFrame):  # of which series beside it have the index
            x.index = frame.index
        offset = design.added(frame)
        if offset is not None:
            for name in ("offset", "exposure"):
                if rest.get(name) is not None:
                    raise DpmcError(f"`{name}` must be left out beside a formula with offset()")
            rest["offset"] = offset
        if design.classes is not None and design.classes > 2:
            rest.setdefault("classes", design.classes)
        if design.group is not None:
            column, levels = design.group
            if rest.get("group") is not None or rest.get("levels") is not None:
                raise DpmcError(
                    "`group` and `levels` must be left out beside a formula that has groups"
                )
            # By their places: which levels have no entry is private.
            entries = np.array([*levels, None], dtype=object)[design.places(frame).astype(int)]
            rest |= {"group": pd.Series(entries, x.index, name=column), "levels": levels}
        for name in beside:
            rest[name] = frames.entries(frames.column(frame, rest[name]))
        if isinstance(unit, str):
            rest["unit"] = Column(unit, frames.column(frame, unit))
        rest |= {"intercept": design.intercept, "invalid_rows": "zero"}
        fit = way_in(x, design.y(frame), *args[2:], **rest)  # type: ignore[arg-type]
        likelihood = {**fit.plan.likelihood, "columns": list(design.names)}
        likelihood["formula"] = design.values()
        few = tuple(_few(fit, design))
        for remark in few:
            warnings.warn(remark, PosteriorWarning, stacklevel=callers.stacklevel())
        return replace(
            fit, plan=replace(fit.plan, likelihood=likelihood), remarks=(*few, *fit.remarks)
        )

    return door


def _few(fit: Fit, design: Design) -> Iterator[str]:
    """Remark on rows that do not count, from the number of those that do, released with noise."""
    for stage in fit.plan.stages:
        if "count" in stage and stage["count"] < CLEAR * stage["standard_error"]:
            columns = ", ".join(repr(name) for name in design.columns)
            yield (
                f"Hardly any row has a possible entry in all of {columns}. A column of texts has "
                f"none as a number: {LEVELS % 'column'} declares its levels. Nor has a number with "
                "a decimal comma, or a line of a CSV file with another number of fields than the "
                "first one."
            )


def table_of(data: Any, columns: tuple[str, ...]) -> Any:
    """Table in memory with some columns: a data frame, what a query makes, or a file."""
    if isinstance(data, str | os.PathLike):
        table = open_table(Path(data), told="the table of a formula")
        refuse_missing(table, columns)
        return table.frame(columns)
    frame = collected(data)
    if not is_frame(frame):
        kind = "None" if frame is None else type(frame).__name__
        raise DpmcError(
            f"the table of a formula must be a data frame, a query or a file, got {kind}"
        )
    refuse_missing_columns(labels(frame), columns, "the table")
    return frame
