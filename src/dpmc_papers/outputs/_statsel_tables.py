"""Tables of statistic selection [alparslan2023thesis, chapters 4 and 6]."""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd

from dpmc_papers.outputs import _printed
from dpmc_papers.outputs import _statsel as parts
from dpmc_papers.outputs._layout import Cell, Layout
from dpmc_papers.outputs._printed import Printed
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import style

SETTING = ["label", "method", "variant"]
TITLE = "Alparslan 2023, Table {}: {}. Ours, and in parentheses the printed number"
# Blocks of Table 6.1: the label of each column.
CHAINS = {
    "As printed": {"pmmh": "pmmh-as_published", "mhaar": "mhaar-as_published"},
    "Algorithm 10 with the right weights": {"pmmh": "pmmh-corrected"},
    "Proposals as wide as serves mixing": {"pmmh": "pmmh-tuned", "mhaar": "mhaar-tuned"},
}
UNRELIABLE = "†"
# Blocks of Table 6.2.
ESTIMATES = {"As published, Algorithm 12": "exact", "By quadrature": "quadrature"}


def table6_1(context: Context) -> pd.DataFrame:
    """Integrated autocorrelation times of chains by their number of particles.

    Reads rows of a study ``statsel_autocorrelation``. One row per number of particles, method and
    settings: the mean over chains by the window of Sokal with its 90 % interval, the mean by the
    monotone sequence of Geyer, the share of chains that are long enough for that, acceptance rate,
    and the guarantee [alparslan2023thesis, Table 6.1].
    """
    rows = parts.having(context.metrics, "iac_sokal")
    table = []
    for keys, group in rows.groupby(["num_particles", *SETTING], sort=True):
        mean, low, high = parts.positive_interval(group["iac_sokal"])
        table.append(
            {
                **dict(zip(["num_particles", *SETTING], keys, strict=True)),
                "algorithm": style.look(str(keys[2])).label,
                "settings": style.look(str(keys[1]).partition("-")[2]).label,
                "iac": mean,
                "iac_low": low,
                "iac_high": high,
                "iac_geyer": group["iac_geyer"].mean(),
                "reliable": group["reliable"].astype(float).mean(),
                "acceptance_rate": group["acceptance_rate"].mean(),
                "runs": len(group),
                **_privacy(group),
            }
        )
    return pd.DataFrame(table)


def table6_2(context: Context) -> pd.DataFrame:
    """Mean squared errors of posterior means from order statistics.

    Reads rows of a study ``statsel_posterior``, with ``quadrature`` among its methods. One row per
    statistic, parameter and method: the mean squared error over releases with its 90 % interval,
    that of quadrature on the same releases, the root mean squared distance of both estimates in
    posterior standard deviations, medians of the standard deviation and of the 99.5 % quantile of
    a chain over those by quadrature, the largest relative Monte Carlo errors of the latter, and
    the guarantee [alparslan2023thesis, Table 6.2].
    """
    return errors(context.metrics, ["statistic", "theta"])


def table_prior_bound(context: Context) -> pd.DataFrame:
    """How mean squared errors depend on where a flat prior ends.

    Reads rows of a study ``statsel_posterior`` whose points have several upper ends. As
    :func:`table6_2`, by the upper end of the prior too.
    """
    rows = context.metrics.copy()
    rows["prior_high"] = rows["point"].map(_prior_high)
    return errors(rows, ["statistic", "theta", "prior_high"])


def _prior_high(point: str) -> float:
    match = re.search(r"prior_high=([^,]*)", str(point))
    return float(match[1]) if match else math.nan


def table_errors(context: Context) -> pd.DataFrame:
    """Numbers behind Figures 6.1, 6.2 and 6.4, as :func:`table6_2` by epsilon."""
    return errors(context.metrics, ["experiment", "statistic", "epsilon"])


def table_leads(context: Context) -> pd.DataFrame:
    """Where another statistic becomes the most informative, along theta or epsilon.

    Reads rows of studies ``statsel_information`` of several statistics. One row per experiment,
    release and change of the lead; a row without ``place`` where one statistic leads all along.
    """
    table = []
    rows = parts.information(context.metrics)
    for (experiment, label), group in rows.groupby(["experiment", "label"], sort=False):
        along = "theta" if group["theta"].min() < group["theta"].max() else "epsilon"
        first = group[group[along] == group[along].min()]
        best = str(first.loc[first["information"].idxmax(), "statistic"])
        changes = parts.leads(group, along) or [parts.Lead(math.nan, best, "")]
        table += [
            {
                "experiment": experiment,
                "label": label,
                "along": along,
                "from": group[along].min(),
                "to": group[along].max(),
                "place": lead.place,
                "before": lead.before,
                "after": lead.after,
            }
            for lead in changes
        ]
    return pd.DataFrame(table)


def errors(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Table of :func:`table6_2` for rows of each combination of `keys`."""
    known = parts.having(rows, "reference_squared_error")
    table = []
    for values, group in known.groupby([*keys, *SETTING], sort=True, dropna=False):
        exact = group["method"].iloc[0] == parts.QUADRATURE
        column = "reference_squared_error" if exact else "squared_error"
        mean, low, high = parts.positive_interval(group[column])
        gap = (group["estimate"] - group["reference_mean"]) / group["reference_sd"]
        chain = group.iloc[:0] if exact else group
        table.append(
            {
                **dict(zip([*keys, *SETTING], values, strict=True)),
                "mse": mean,
                "mse_low": low,
                "mse_high": high,
                "mse_quadrature": group["reference_squared_error"].mean(),
                "gap_in_sd": math.nan if exact else math.sqrt((gap**2).mean()),
                "sd_ratio": _ratios(chain, "estimate_sd", "reference_sd").median(),
                "high_ratio": _ratios(chain, "estimate_high", "reference_high").median(),
                "sd_error": _ratios(group, "reference_sd_error", "reference_sd").max(),
                "high_error": _ratios(group, "reference_high_error", "reference_high").max(),
                "acceptance_rate": group["acceptance_rate"].mean(),
                "iac": group["iac"].mean(),
                "num_iterations": group["num_iterations"].max(),
                "num_particles": group["num_particles"].max(),
                "runs": len(group),
                **_privacy(group),
            }
        )
    return pd.DataFrame(table)


def _ratios(rows: pd.DataFrame, column: str, over: str) -> pd.Series[float]:
    """Ratios of two columns, of rows that have both."""
    both = parts.having(rows, column, over)
    if not {column, over} <= set(both.columns):
        return pd.Series(dtype="float64")
    return both[column] / both[over]


def table_monte_carlo(context: Context) -> pd.DataFrame:
    """Bias of Monte Carlo estimates of the Fisher information.

    Reads rows of a study ``statsel_information`` with Algorithms 6, 7 and 8 and what they estimate.
    One row per algorithm, variant and point: the mean of estimates with its standard error, the
    value by quadrature, the bias in percent, and in standard errors [alparslan2023thesis,
    Algorithms 6 to 8].
    """
    rows = parts.information(context.metrics)
    place = ["problem", "statistic", "theta", "epsilon"]
    exact = rows[rows["method"].isin(parts.ESTIMATED.values())]
    truth = exact.groupby([*place, "method"], dropna=False)["information"].mean()
    keys = [*SETTING, *place, "num_outer", "num_inner"]
    simulated = rows[rows["method"].isin(parts.ESTIMATED)]
    table = []
    for values, group in simulated.groupby(keys, sort=False, dropna=False):
        row: dict[str, Any] = dict(zip(keys, values, strict=True))
        at = (*(row[name] for name in place), parts.ESTIMATED[row["method"]])
        mean, error = _combined(group)
        reference = float(truth.get(at, math.nan))
        row |= {
            "information": mean,
            "information_se": error,
            "quadrature": reference,
            "bias_percent": 100 * (mean / reference - 1),
            "bias_in_se": (mean - reference) / error if error > 0 else math.nan,
            "runs": len(group),
        }
        table.append(row)
    return pd.DataFrame(table)


def _combined(group: pd.DataFrame) -> tuple[float, float]:
    """Mean of independent estimates and its standard error."""
    mean = float(group["information"].mean())
    if len(group) > 1:
        return mean, float(group["information"].std(ddof=1)) / math.sqrt(len(group))
    return mean, float(group["information_se"].iloc[0])


def _privacy(group: pd.DataFrame) -> dict[str, Any]:
    return {
        "guarantee_epsilon": group["guarantee_epsilon"].max(),
        "guarantee_delta": group["guarantee_delta"].max(),
        "guarantee_accountant": ", ".join(sorted(set(group["guarantee_accountant"]) - {""})),
    }


def layout_table6_1(context: Context) -> Layout:
    """Table 6.1 in the layout of the document: integrated times by the number of particles."""
    long, runs = table6_1(context), context.metrics
    times = _printed.numbers(long, ["label", "num_particles"], "iac")
    reliable = _printed.numbers(long, ["label", "num_particles"], "reliable")
    printed = Printed(context.published, "T-6.1")
    counts = printed.values("num_particles") or sorted(set(long["num_particles"]))

    def cell(labels: dict[str, str], count: int, method: str) -> Cell:
        if method not in labels:
            return Cell()
        number = printed.find(label=f"{method}-as_published", num_particles=count)
        at = (labels[method], count)
        mark = UNRELIABLE if reliable.get(at) == 0 else ""
        return _printed.cell(times.get(at, math.nan), number, 2, mark)

    blocks = _printed.blocks(
        CHAINS,
        lambda labels: runs[runs["label"].isin(labels.values())],
        {count: [f"{count:g}"] for count in counts},
        ("pmmh", "mhaar"),
        cell,
    )
    marks = [c.mark for body in blocks for row in body.cells for c in row]
    note = f"{UNRELIABLE} No chain is a hundred times as long as this time: too short to tell it."
    title = TITLE.format("6.1", "integrated autocorrelation times")
    columns = ("Algorithm 10", "Algorithm 11")
    return Layout(title, ("N",), columns, blocks, notes=(note,) if any(marks) else ())


def layout_table6_2(context: Context) -> Layout:
    """Table 6.2 in the layout of the document: errors from the median and from the maximum."""
    long, runs = table6_2(context), context.metrics
    errors = _printed.numbers(long, ["method", "statistic", "theta"], "mse")
    printed = Printed(context.published, "T-6.2")
    thetas = printed.values("theta") or sorted(set(long["theta"]))

    def cell(method: str, statistic: str, theta: float) -> Cell:
        ours = errors.get((method, statistic, theta), math.nan)
        return _printed.cell(ours, printed.find(statistic=statistic, theta=theta), 3)

    rows = {name: [name] for name in ("median", "max")}
    title = TITLE.format("6.2", "mean squared error for median and maximum")
    blocks = _printed.blocks(
        ESTIMATES, lambda method: runs[runs["method"].eq(method)], rows, thetas, cell
    )
    return Layout(title, ("Statistic",), tuple(f"θ = {theta:g}" for theta in thetas), blocks)
