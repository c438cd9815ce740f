"""The way in by a formula: what a table says in its place of arrays."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec

import pandas as pd

from dpmc.fits import Fit
from dpmc.formulas.design import DROP, Design, refuse_missing_columns
from dpmc.shards.tables import open_table, refuse_missing
from dpmc.types import DpmcError, collected, is_frame, labels

P = ParamSpec("P")


def by_formula(way_in: Callable[P, Fit]) -> Callable[P, Fit]:
    """Way in of features and responses that takes a formula and a table in their place."""

    @functools.wraps(way_in)
    def door(*args: P.args, **given: P.kwargs) -> Fit:
        text = args[0] if args else given.get("x")
        if not isinstance(text, str):
            return way_in(*args, **given)
        rest: dict[str, Any] = {key: value for key, value in given.items() if key != "x"}
        if len(args) < 2 and "y" not in rest:
            raise DpmcError(
                "a table must come second, behind its formula: dpmc.regression('y ~ x', table, ...)"
            )
        data = args[1] if len(args) > 1 else rest.pop("y")
        if rest.pop("intercept", True) is not True:
            raise DpmcError("`intercept` must be left out beside a formula, which says `- 1`")
        design = Design.of(text, rest.pop("ranges", None), rest.pop("missing", DROP))
        frame = table_of(data, design.columns)
        x = pd.DataFrame(design.x(frame), columns=list(design.names))
        y, offset = design.y(frame), design.added(frame)
        if offset is not None:
            if rest.get("offset") is not None:
                raise DpmcError("`offset` must be left out beside a formula that has offset()")
            rest["offset"] = offset
        rest |= {"intercept": design.intercept, "invalid_rows": "zero"}
        fit = way_in(x, y, *args[2:], **rest)  # type: ignore[arg-type]
        likelihood = {**fit.plan.likelihood, "formula": design.values()}
        return replace(fit, plan=replace(fit.plan, likelihood=likelihood))

    return door


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
