"""Tables 7.1 and 7.2 in the layout of the document [alparslan2023thesis]."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from dpmc_papers.outputs import _printed
from dpmc_papers.outputs import _regression as parts
from dpmc_papers.outputs._layout import Cell, Layout, block
from dpmc_papers.outputs._printed import Printed
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import style

TITLE = "Alparslan 2023, Table {}: {}. Ours, and in parentheses the printed number"
# As the thesis names them.
PROBLEMS = {
    "power_plant": "PowerPlant",
    "bike_sharing": "BikeSharing",
    "air_quality": "AirQuality",
    "road_3d": "3droad",
}
Maker = Callable[["pd.Series[float]", _printed.Number | None], Cell]


def table7_1(context: Context) -> Layout:
    """Table 7.1: mean test errors; the least of ours in a row is bold."""
    title = TITLE.format("7.1", "mean squared error of predictions")

    def cell(values: pd.Series[float], number: _printed.Number | None) -> Cell:
        return _printed.cell(parts.interval(values)[0], number, 4)

    return _layout(context, title, "T-7.1", "number", cell)


def table7_2(context: Context) -> Layout:
    """Table 7.2: 90 % intervals of mean test errors."""
    title = TITLE.format("7.2", "90 % intervals of the mean squared error of predictions")

    def cell(values: pd.Series[float], number: _printed.Number | None) -> Cell:
        return _printed.interval(*parts.interval(values)[1:], number)

    return _layout(context, title, "T-7.2", "interval", cell)


def _layout(context: Context, title: str, series: str, form: str, made: Maker) -> Layout:
    data, printed = context.metrics, Printed(context.published, series)
    nodes = printed.values("num_nodes") or sorted(data["num_nodes"].unique())
    problems = printed.values("problem") or context.problems(data)
    rows = {(n, p): (f"J = {n}", PROBLEMS.get(p, p)) for n in nodes for p in problems}
    runs = dict(list(data.groupby(["problem", "num_nodes", "variant", "method"])["mse"]))
    nothing = pd.Series([math.nan])
    blocks = []
    for variant in parts.PROFILES:
        chosen = data[data["variant"].eq(variant) & data["method"].isin(parts.METHODS)]
        if chosen.empty:
            continue
        present = set(chosen["method"])

        def cell(
            row: tuple[int, str],
            method: str,
            variant: str = variant,
            present: set[str] = present,
        ) -> Cell:
            if method not in present:
                return Cell()
            values = runs.get((row[1], row[0], variant, method), nothing)
            return made(values, printed.find(problem=row[1], method=method, num_nodes=row[0]))

        words = style.look(variant).label
        head = _printed.titled(f"{words[:1].upper()}{words[1:]}", chosen)
        blocks.append(block(head, rows, parts.METHODS, cell))
    columns = tuple(style.look(name).label for name in parts.METHODS)
    notes = ("The epsilon that holds is for the replacement of a row.",)
    least = form == "number"
    return Layout(title, ("J", "data sets"), columns, tuple(blocks), form, least, notes)
