"""Tables of DP-SEP [vinaroz2022dpsep], with the actual epsilon of every number."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpmc.ep.network.layout import Architecture
from dpmc.types import UNAVAILABLE
from dpmc_papers.pipeline.results import Context

KEYS = ["problem", "label", "method", "variant", "epsilon"]
MIXTURE = (
    "f_published",
    "kl_published",
    "mean_error",
    "covariance_error",
    "kl_to_truth",
    "kl_from_truth",
    "sd",
    "exact_sd",
)


def table1(context: Context) -> pd.DataFrame:
    """How far each method on the mixture ends from the exact posterior.

    One row per method and epsilon, means of runs: the two columns of Table 1 as the public code
    computes them, then errors and divergences by their usual definition, standard deviations of the
    fit and of the exact posterior, and what was private [vinaroz2022dpsep, Table 1].
    """
    rows = []
    for keys, group in context.metrics.groupby(KEYS, sort=False, dropna=False):
        rows.append(
            {
                **dict(zip(KEYS, keys, strict=True)),
                **{name: group[name].mean() for name in MIXTURE},
                "runs": len(group),
                **_privacy(group),
            }
        )
    return pd.DataFrame(rows)


def table2(context: Context) -> pd.DataFrame:
    """Test errors of networks: means, standard deviations and errors over splits.

    One row per problem, method and epsilon. ``rmse_of_centre`` is the mean error of predicting what
    the targets of the training rows are centred at [vinaroz2022dpsep, Table 2].
    """
    table = _spreads(context, "rmse")
    trivial = context.metrics.groupby("problem")["rmse_of_mean"].mean()
    columns = [*KEYS, "rmse", "rmse_of_centre"]
    table = table.assign(rmse_of_centre=table["problem"].map(trivial))
    return table[[*columns, *(name for name in table if name not in columns)]]


def table3(context: Context) -> pd.DataFrame:
    """Test log-likelihoods of networks, as :func:`table2`.

    [vinaroz2022dpsep, Table 3].
    """
    return _spreads(context, "loglik")


def table4(context: Context) -> pd.DataFrame:
    """Sizes of tables and networks, and the memory of EP and of SEP.

    [vinaroz2022dpsep, Table 4].
    """
    rows = []
    data = context.metrics
    for problem in context.problems(data):
        of_problem = data[data["problem"] == problem]
        known = of_problem[of_problem["num_rows"] > 0]
        row: dict[str, Any] = {"problem": problem, "status": _status(of_problem)}
        if len(known):
            first = known.iloc[0]
            network = Architecture(int(first["hidden"]), int(first["num_inputs"]))
            weights = network.hidden * (network.inputs + 1) + network.hidden + 1
            row |= {
                "rows": first["table_rows"],
                "training_rows": first["num_rows"],
                "features": network.inputs,
                "hidden": network.hidden,
                "weights": weights,
                "ep_bytes": network.site_bytes(int(first["num_rows"])),
                "sep_bytes": 16 * weights,
            }
        rows.append(row)
    return pd.DataFrame(rows)


def table_tuning(context: Context) -> pd.DataFrame:
    """Test errors on simulated rows for each of the settings tried there.

    One row per problem and point of the grid: the mean root mean squared error over draws of the
    data, relative to predicting the mean, and its standard error.
    """
    rows = context.metrics.assign(relative=lambda t: t["rmse"] / t["rmse_of_mean"])
    groups = rows.groupby(["problem", "label", "epsilon", "point"], sort=False)
    table = groups["relative"].agg(relative_rmse="mean", se="sem", runs="count")
    return table.reset_index()


def _spreads(context: Context, metric: str) -> pd.DataFrame:
    rows = []
    for keys, group in context.metrics.groupby(KEYS, sort=False, dropna=False):
        values = group[metric].dropna()
        rows.append(
            {
                **dict(zip(KEYS, keys, strict=True)),
                metric: values.mean(),
                "sd": values.std(ddof=1),
                "se": values.sem(),
                "runs": len(values),
                **_privacy(group),
                "status": _status(group),
            }
        )
    return pd.DataFrame(rows)


def _privacy(group: pd.DataFrame) -> dict[str, Any]:
    first = group.iloc[0]
    return {
        "epsilon_really": group["guarantee_epsilon"].max(),
        "delta": first["guarantee_delta"],
        "outside": first["outside"],
    }


def _status(rows: pd.DataFrame) -> str:
    if rows["status"].str.startswith(UNAVAILABLE).all():
        return UNAVAILABLE
    if len(set(rows["status"])) == 1:
        return str(rows["status"].iloc[0])
    broken = int((rows["status"] != "complete").sum())
    return f"{broken} of {len(rows)} runs stopped"
