"""Tables of DP-SEP [vinaroz2022dpsep], with the actual epsilon of every number."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from dpmc.ep.network.layout import Architecture
from dpmc_papers.outputs import _printed
from dpmc_papers.outputs._layout import Cell, Layout, block
from dpmc_papers.outputs._printed import Printed
from dpmc_papers.outputs._tables import status
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
TITLE = "Vinaroz and Park 2022, Table {}: {}. Ours, and in parentheses the printed number"
COLUMNS = {"vi": "VI", "ep": "EP", "sep": "SEP", "clipped_sep": "SEP clipped", "dp_sep": "DP-SEP"}
# The label of each column in each block, empty where nothing was run.
AS_PUBLISHED = {
    "vi": "vi-graves",
    **{name: f"{name}-as_published" for name in ("ep", "sep", "clipped_sep", "dp_sep")},
}
# Blocks of Table 1.
MIXTURES = {
    "As published": "as_published",
    "The row of ε = 5 as it was run": "as_run",
    "With valid privacy": "dp_valid",
}
BLOCKS = {
    "As published": AS_PUBLISHED,
    "Really clipped, with valid privacy": {
        "clipped_sep": "clipped_sep-clipped_true",
        "dp_sep": "dp_sep-dp_valid",
    },
    "With valid privacy, tuned": {"dp_sep": "dp_sep-dp_valid_tuned"},
}
# Decimals of standard deviations: four, but in the column VI of Table 3.
DECIMALS = {("loglik", "vi"): 3}
NOTES = (
    "Means and standard deviations over splits. VI is a new run: nothing in the public code makes"
    " that column.",
)


def table1(context: Context) -> pd.DataFrame:
    """How far each method on the mixture ends from the exact posterior.

    One row per method and epsilon, means of runs: the two columns of Table 1 as the public code
    computes them, then errors and divergences by their usual definition, standard deviations of the
    fit and of the exact posterior, and what was private [vinaroz2022dpsep, Table 1].
    """
    groups = context.metrics.groupby(KEYS, sort=False, dropna=False)
    means = groups[list(MIXTURE)].mean()
    return means.assign(runs=groups.size(), **_privacy(groups)).reset_index()


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
        row: dict[str, Any] = {"problem": problem, "status": status(of_problem["status"])}
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
    groups = context.metrics.groupby(KEYS, sort=False, dropna=False)
    values = groups[metric]
    spreads = {metric: values.mean(), "sd": values.std(), "se": values.sem()}
    ends = {"runs": values.count(), **_privacy(groups), "status": groups["status"].agg(status)}
    return pd.DataFrame({**spreads, **ends}).reset_index()


def _privacy(groups: Any) -> dict[str, Any]:
    def first(values: pd.Series) -> Any:
        return values.iloc[0]

    return {
        "epsilon_really": groups["guarantee_epsilon"].max(),
        "delta": groups["guarantee_delta"].agg(first),
        "outside": groups["outside"].agg(first),
    }


def layout_table1(context: Context) -> Layout:
    """Table 1 in its layout, the row of epsilon 5 at the epsilon that it was run at too."""
    runs, long = context.metrics, table1(context)
    metrics = {"f_published": "F-norm", "kl_published": "KL-divergence (proxy)"}
    as_told = {
        "f_published": Printed(context.published, "T-1-F", "T-1-SEP"),
        "kl_published": Printed(context.published, "T-1-KL", "T-1-SEP-KL"),
    }
    as_run = {
        "f_published": Printed(context.published, "T-1-F-run"),
        "kl_published": Printed(context.published, "T-1-KL-run"),
    }

    def cell(variant: str, key: tuple[str, float], metric: str) -> Cell:
        method, epsilon = key
        same = long["epsilon"].eq(epsilon) | (long["epsilon"].isna() & math.isnan(epsilon))
        found = long.loc[long["label"].eq(f"{method}-{variant}") & same, metric].to_list()
        which = {"algorithm": method} | ({} if math.isnan(epsilon) else {"epsilon": epsilon})
        number = (as_run if variant == "as_run" else as_told)[metric].find(**which)
        return _printed.cell(found[0] if found else math.nan, number, 4)

    def rows(variant: str) -> dict[tuple[str, float], list[str]]:
        epsilons = (as_run if variant == "as_run" else as_told)["f_published"].values("epsilon")
        labels = {("dp_sep", float(e)): [f"DP-SEP (ε = {e:g})"] for e in epsilons}
        sep = {("sep", math.nan): ["SEP (ε = ∞)"]} if variant == "as_published" else {}
        return {**sep, **labels}

    def chosen(variant: str) -> pd.DataFrame:
        return runs[runs["label"].eq(f"dp_sep-{variant}")]

    blocks = [
        made
        for title, variant in MIXTURES.items()
        for made in _printed.blocks({title: variant}, chosen, rows(variant), metrics, cell)
    ]
    notes = ("Further digits are cut off, as in print.",)
    title = TITLE.format(1, "accuracy of the posterior of a mixture")
    return Layout(title, ("Method",), tuple(metrics.values()), tuple(blocks), notes=notes)


def layout_table2(context: Context) -> Layout:
    """Table 2 in its layout: test errors of networks."""
    return _networks(context, table2(context), "rmse", 2, "RMSE on test data")


def layout_table3(context: Context) -> Layout:
    """Table 3 in its layout: test log-likelihoods of networks."""
    return _networks(context, table3(context), "loglik", 3, "test log-likelihood")


def layout_table4(context: Context) -> Layout:
    """Table 4 in its layout: sizes of data sets."""
    long = table4(context)
    columns = {"rows": "# samps", "features": "# features"}
    sizes = {name: _printed.numbers(long, ["problem"], name) for name in columns}
    printed = {name: Printed(context.published, f"T-4-{name}") for name in columns}

    def cell(problem: str, name: str) -> Cell:
        ours = sizes[name].get((problem,), math.nan)
        return _printed.cell(ours, printed[name].find(problem=problem))

    problems = printed["rows"].values("problem") or list(long["problem"])
    rows = {name: [name.capitalize()] for name in problems}
    title = TITLE.format(4, "regression data sets")
    blocks = (block("", rows, columns, cell),)
    return Layout(title, ("Dataset",), tuple(columns.values()), blocks)


def _networks(context: Context, long: pd.DataFrame, metric: str, place: int, words: str) -> Layout:
    ends, runs = ("", "-clipped", "-dp", "-vi"), context.metrics
    printed = Printed(context.published, *(f"T-{place}{end}" for end in ends))
    means = _printed.numbers(long, ["problem", "label"], metric)
    deviations = _printed.numbers(long, ["problem", "label"], "sd")
    problems = printed.values("problem") or context.problems(long)

    def cell(labels: dict[str, str], problem: str, method: str) -> Cell:
        if method not in labels:
            return Cell()
        at = (problem, labels[method])
        ours = (means.get(at, math.nan), deviations.get(at, math.nan))
        number = printed.find(problem=problem, algorithm=method)
        return _printed.spread(*ours, number, DECIMALS.get((metric, method), 4))

    blocks = _printed.blocks(
        BLOCKS,
        lambda labels: runs[runs["label"].isin(labels.values())],
        {name: [name.capitalize()] for name in problems},
        COLUMNS,
        cell,
        "DP-SEP: ",
    )
    columns, title = tuple(COLUMNS.values()), TITLE.format(place, words)
    return Layout(title, ("Dataset",), columns, blocks, form="spread", notes=NOTES)
