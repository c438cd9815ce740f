"""Tables of Räisä 2021."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dpmc_papers.outputs import _printed, _tables
from dpmc_papers.outputs._layout import Cell, Layout, block
from dpmc_papers.outputs._printed import Printed
from dpmc_papers.pipeline.results import Context

METRICS = (*_tables.METRICS, "mean_norm")
# Columns of Table 5.1: as the document names them, and as the file of claims does.
CONSTANTS = {
    "dim": ("Dim", ("dim",)),
    "n": ("n", ("data.num_rows",)),
    "n0": ("n₀", ("n0",)),
    "start_deviation": ("Start Deviation", ("start.scale",)),
    "a": ("a", ("model.curvature", "model.scale")),
    "prior_variance": ("σ₀²", ("model.prior_variance",)),
}
# Models that the document names otherwise than figures do.
NAMES = {"gauss_30d": "High dimensional Gauss", "corr_gauss_2d": "Correlated Gauss"}

budget_table = _tables.budget_table
clipping_table = _tables.clipping_table


def comparison_table(context: Context) -> pd.DataFrame:
    """Quartiles of every metric per problem, algorithm and epsilon.

    As :func:`dpmc_papers.outputs._tables.comparison_table`, and the norm of the mean of the draws,
    which is what the thesis reports of the circle.
    """
    return _tables.comparison_table(context, METRICS)


def table5_1(context: Context) -> pd.DataFrame:
    """Models and their constants, read from the configuration.

    Its configuration holds the problems; those of the first experiment that it holds are shown, in
    their order. One row per problem: dimension, rows n, tempered count n0 = T n (missing where T =
    1), tempering T, standard deviation of the start points around their centre (``reference``: the
    mean of those of the exact sample), the constant a, the variance of the prior (missing where it
    is flat), that of a row, and delta [Räisä 2021, Table 5.1; variances of a row: section 5.4;
    delta: section 6.3].
    """
    problems: Mapping[str, Any] = context.config["problems"]
    experiments = list(context.config.get("experiments", {}).values())
    names = list(experiments[0]["methods"]) if experiments else list(problems)
    return pd.DataFrame([_constants(name, problems[name]) for name in problems if name in names])


def layout_table5_1(context: Context) -> Layout:
    """Table 5.1 in the layout of the document."""
    long = table5_1(context)
    ours = {name: _printed.numbers(long, ["problem"], name) for name in CONSTANTS}
    printed = Printed(context.published, "T-5.1")

    def cell(problem: str, name: str) -> Cell:
        value = ours[name].get((problem,), math.nan)
        quantities = CONSTANTS[name][1]
        found = (printed.find(problem=problem, quantity=quantity) for quantity in quantities)
        number = next((entry for entry in found if entry is not None), None)
        return Cell() if math.isnan(value) and number is None else _printed.cell(value, number)

    problems = printed.values("problem") or list(long["problem"])
    rows = {name: [NAMES.get(name, context.problem_label(name))] for name in problems}
    title = "Räisä 2021, Table 5.1: models. Ours, and in parentheses the printed number"
    columns = tuple(words for words, _ in CONSTANTS.values())
    return Layout(title, ("Name",), columns, (block("", rows, CONSTANTS, cell),))


def _constants(name: str, problem: Mapping[str, Any]) -> dict[str, Any]:
    data, model, start = problem["data"]["params"], problem["model"]["params"], problem["start"]
    tempering = model.get("tempering", 1)
    circle = problem["model"]["name"] == "circle"
    return {
        "problem": name,
        "dim": 2 if circle else model.get("dim") or len(model["variances"]),
        "n": data["num_rows"],
        "n0": tempering * data["num_rows"] if tempering != 1 else math.nan,
        "tempering": tempering,
        "start_deviation": start.get("scale", 0),
        "a": model["scale"] if circle else model.get("curvature", 0),
        "prior_variance": model.get("prior_variance", math.nan),
        "row_variances": f"radius: {data['sd'] ** 2:g}" if circle else _variances(model),
        "delta": problem["delta"],
    }


def _variances(model: Mapping[str, Any]) -> str:
    """Variances of the components of a row, or the rows of their covariance."""
    if "variances" in model:
        return _short(model["variances"])
    covariance = model["covariance"]
    if isinstance(covariance, Mapping):
        return f"drawn from seed {covariance['seed']}"
    return "; ".join(" ".join(f"{value:g}" for value in row) for row in covariance)


def _short(values: Sequence[float]) -> str:
    """Numbers as text, a run of equal ones at the end as one."""
    count = len(values)
    while count > 1 and values[count - 2] == values[-1]:
        count -= 1
    shown = " ".join(f"{value:g}" for value in values[:count])
    return shown if count == len(values) else f"{shown} (to the end)"
