"""Tables for comparisons of private samplers: budgets, metrics and clipping."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpmc.types import UNAVAILABLE
from dpmc_papers.pipeline.results import Context

METRICS = (
    "mmd",
    "mmd_fixed",
    "mmd_white",
    "mean_error",
    "acceptance_rate",
    "ratio_clip_fraction",
    "gradient_clip_fraction",
    "rhat",
    "ess_bulk",
    "iac",
)
GUARANTEE = ("guarantee_epsilon", "guarantee_delta", "guarantee_accountant", "outside")
QUARTILES = {"q1": 0.25, "median": 0.5, "q3": 0.75}


def write(table: pd.DataFrame, path: Path | str) -> None:
    """Write `table` as CSV with six significant digits, the same bytes for the same table."""
    table.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")


def status(runs: pd.Series[str]) -> str:
    """How runs ended, in words: all of them, or how many otherwise."""
    if runs.str.startswith(UNAVAILABLE).all():
        return UNAVAILABLE
    if len(set(runs)) == 1:
        return str(runs.iloc[0])
    return f"{(runs != 'complete').sum()} of {len(runs)} runs stopped"


def budget_table(context: Context) -> pd.DataFrame:
    """What each budget bought and the privacy that its result really has.

    One row per experiment, problem, method and epsilon: iterations of one chain and of all, noise
    multipliers (noise sd over substitution sensitivity), the accountant that set the count, and the
    guarantee by a valid accountant.
    """
    rows = context.metrics[context.metrics["epsilon"].notna()]
    keys = ["experiment", "problem", "label", "method", "variant", "epsilon"]
    names = ["delta", "accountant", "num_chains", "num_iterations", "noise_multipliers"]
    table = _ordered(context, rows).groupby(keys, sort=False)[[*names, *GUARANTEE]].first()
    table = table.reset_index()
    at = table.columns.get_loc("num_iterations")
    assert isinstance(at, int)
    table.insert(at + 1, "total_iterations", table["num_chains"] * table["num_iterations"])
    return table


def comparison_table(context: Context, metrics: Sequence[str] = METRICS) -> pd.DataFrame:
    """Quartiles of every metric per experiment, problem, method and epsilon.

    Columns ``<metric>_q1``, ``_median`` and ``_q3``, the number of runs and of those that did not
    complete, and the guarantee.
    """
    rows = context.metrics[context.metrics["epsilon"].notna()]
    keys = ["experiment", "problem", "label", "method", "variant", "epsilon"]
    return _summary(context, rows, keys, metrics)


def clipping_table(context: Context) -> pd.DataFrame:
    """Quartiles of every metric per problem, method and clip bound.

    Reads runs of the experiment ``clipping``: no noise, so no privacy. As `comparison_table`, by
    clip bound.
    """
    rows = context.experiment("clipping")
    keys = ["experiment", "problem", "label", "method", "variant", "clip_bound"]
    return _summary(context, rows, keys)


def dimension_table(context: Context) -> pd.DataFrame:
    """Quartiles of every metric per dimension and method.

    Reads runs of the experiment ``dimension``. As `comparison_table`, by dimension.
    """
    rows = context.experiment("dimension")
    keys = ["experiment", "problem", "dim", "label", "method", "variant", "epsilon"]
    return _summary(context, rows, keys)


def _summary(
    context: Context, rows: pd.DataFrame, keys: Sequence[str], metrics: Sequence[str] = METRICS
) -> pd.DataFrame:
    groups = _ordered(context, rows).groupby(list(keys), sort=False, dropna=False)
    parts = {"num_iterations": groups["num_iterations"].first(), "runs": groups.size()}
    parts["incomplete"] = groups["status"].agg(lambda s: int((s != "complete").sum()))
    for metric in metrics:
        for name, share in QUARTILES.items():
            parts[f"{metric}_{name}"] = quartiles(groups[metric], share)
    parts.update({name: groups[name].first() for name in GUARANTEE})
    return pd.DataFrame(parts).reset_index()


def quartiles(groups: Any, share: float) -> pd.Series[float]:
    """Quantile of each group; infinite between infinite values, and next to one.

    A chain that stands still has an infinite R-hat, and pandas takes the difference of two of them.
    """
    found = groups.quantile(share)
    higher = groups.quantile(share, interpolation="higher")
    lower = groups.quantile(share, interpolation="lower")
    found = found.mask(np.isposinf(higher) & (lower < higher), np.inf)
    one: pd.Series[float] = found.mask(lower == higher, lower)
    return one


def _ordered(context: Context, rows: pd.DataFrame) -> pd.DataFrame:
    """Sort by problem as configured, then label, grid point and replicate."""
    order = {name: k for k, name in enumerate(context.problems(rows))}
    keys = ["_problem", "label", "epsilon", "clip_bound", "replicate"]
    sorted_rows = rows.assign(_problem=rows["problem"].map(order)).sort_values(keys, kind="stable")
    return sorted_rows.drop(columns="_problem")
