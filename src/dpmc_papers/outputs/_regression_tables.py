"""Tables of private distributed regression [alparslan2023thesis, chapter 7]."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from dpmc_papers.outputs import _printed, _tables
from dpmc_papers.outputs import _regression as parts
from dpmc_papers.outputs._layout import Cell, Layout
from dpmc_papers.outputs._printed import Printed
from dpmc_papers.outputs._statsel import interval
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import style

TITLE = "Alparslan 2023, Table {}. Ours, and in parentheses the printed number"
# As the thesis names them.
PROBLEMS = {
    "power_plant": "PowerPlant",
    "bike_sharing": "BikeSharing",
    "air_quality": "AirQuality",
    "road_3d": "3droad",
}
Maker = Callable[["pd.Series[float]", _printed.Number | None], Cell]


def table7_1(context: Context) -> pd.DataFrame:
    """Mean test error of every method, number of nodes and profile.

    Reads runs of the experiment ``real_data``. One row per problem, number of nodes and profile: a
    column for each method, and what least squares without privacy reaches [alparslan2023thesis,
    Table 7.1].
    """
    return _table(context, lambda rows: interval(rows)[:1])


def table7_2(context: Context) -> pd.DataFrame:
    """Return 90 % intervals of the mean test error over draws of the noise.

    Parameters and return value are those of :func:`table7_1`, with two columns for each method: the
    ``_lower`` and the ``_upper`` end.

    [alparslan2023thesis, Table 7.2].
    """
    return _table(context, lambda rows: interval(rows)[1:], ("_lower", "_upper"))


def table_profiles(context: Context) -> pd.DataFrame:
    """What each profile asks for and the privacy that its results really have.

    One row per problem, method and profile: the epsilon asked for, the epsilon that holds when a
    row is replaced, and when one is added or removed, all at the same delta; the largest split
    R-hat and the largest integrated autocorrelation time of a chain at each number of nodes.
    """
    rows = []
    data = context.metrics
    private = data[~data["method"].isin(parts.EXACT)]
    cells = dict(list(private.groupby(["problem", "method", "variant"])))
    order = itertools.product(context.problems(private), parts.METHODS, parts.PROFILES)
    for problem, method, variant in order:
        cell = cells.get((problem, method, variant))
        if cell is None:
            continue
        epsilons = ("epsilon", "delta", "epsilon_replace", "epsilon_add_remove")
        rows.append(
            {
                "problem": problem,
                "label": f"{method}-{variant}",
                "method": method,
                "variant": variant,
                **{name: cell[name].max() for name in epsilons},
                **{
                    f"{name}_J{n}": group[name].max()
                    for name in ("rhat", "iac")
                    for n, group in cell.groupby("num_nodes")
                },
                "status": _tables.status(cell["status"]),
            }
        )
    return pd.DataFrame(rows)


def table_convergence(context: Context) -> pd.DataFrame:
    """How far apart two chains on one release end which started far apart.

    Reads runs of the experiment ``convergence``. One row per problem, number of nodes and profile:
    medians over releases of the columns of :mod:`dpmc_papers.studies.regression_convergence`.
    """
    names = ("rhat", "rhat_node", "rhat_pooled", "ess_bulk", "iac", "separation")
    errors = ("mse_node", "mse_pooled", "mse_zero")
    return pd.DataFrame(
        {
            "problem": problem,
            "num_nodes": nodes,
            "profile": variant,
            "dim": chosen["dim"].max(),
            **{name: chosen[name].median() for name in (*names, *errors)},
            "status": _tables.status(chosen["status"]),
        }
        for problem, nodes, variant, chosen in parts.cells(context, context.metrics)
    )


def _table(
    context: Context,
    entry: Callable[[pd.Series[float]], Sequence[float]],
    endings: Sequence[str] = ("",),
) -> pd.DataFrame:
    rows = []
    data = context.metrics
    for problem, nodes, variant, chosen in parts.cells(context, data):
        row: dict[str, Any] = {"problem": problem, "num_nodes": nodes, "profile": variant}
        present = [m for m in parts.METHODS if m in set(data["method"])]
        for method in present:
            values = entry(chosen.loc[chosen["method"] == method, "mse"])
            row |= {f"{method}{end}": value for end, value in zip(endings, values, strict=True)}
        exact = data[(data["problem"] == problem) & (data["num_nodes"] == nodes)]
        row["ols"] = exact.loc[exact["method"] == "ols", "mse"].mean()
        rows.append({**row, "status": _tables.status(chosen["status"])})
    return pd.DataFrame(rows)


def layout_table7_1(context: Context) -> Layout:
    """Table 7.1 in the layout of the document; the least of ours in a row is bold."""
    title = TITLE.format("7.1: mean squared error of predictions")
    return _layout(
        context, title, "T-7.1", "number", lambda v, n: _printed.cell(interval(v)[0], n, 4)
    )


def layout_table7_2(context: Context) -> Layout:
    """Table 7.2 in the layout of the document: 90 % intervals of mean test errors."""
    title = TITLE.format("7.2: 90 % intervals of the mean squared error of predictions")
    return _layout(
        context,
        title,
        "T-7.2",
        "interval",
        lambda v, n: _printed.interval(*interval(v)[1:], n),
    )


def _layout(context: Context, title: str, series: str, form: str, made: Maker) -> Layout:
    data, printed = context.metrics, Printed(context.published, series)
    nodes = printed.values("num_nodes") or sorted(data["num_nodes"].unique())
    problems = printed.values("problem") or context.problems(data)
    runs = dict(list(data.groupby(["problem", "num_nodes", "variant", "method"])["mse"]))
    nothing = pd.Series([math.nan])

    def chosen(variant: str) -> pd.DataFrame:
        return data[data["variant"].eq(variant) & data["method"].isin(parts.METHODS)]

    def cell(variant: str, row: tuple[int, str], method: str) -> Cell:
        if method not in set(chosen(variant)["method"]):
            return Cell()
        values = runs.get((row[1], row[0], variant, method), nothing)
        return made(values, printed.find(problem=row[1], method=method, num_nodes=row[0]))

    words = {name: style.look(name).label for name in parts.PROFILES}
    blocks = _printed.blocks(
        {f"{told[:1].upper()}{told[1:]}": name for name, told in words.items()},
        chosen,
        {(n, p): (f"J = {n}", PROBLEMS.get(p, p)) for n in nodes for p in problems},
        parts.METHODS,
        cell,
    )
    columns = tuple(style.look(name).label for name in parts.METHODS)
    notes = ("The epsilon that holds is for the replacement of a row.",)
    return Layout(title, ("J", "data sets"), columns, blocks, form, form == "number", notes)
