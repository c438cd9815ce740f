"""The table of the league: medians of runs, and which methods are the nearest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpmc.rng import stream
from dpmc.types import UNAVAILABLE, Array
from dpmc_league.table import ABSENT
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots.style import Look

DISTANCE = "sliced_wasserstein"
COMPLETE = "complete"
KEYS = ["problem", "label", "epsilon"]
MEDIANS = ("mmd", "mean_error", "deviation_ratio", "bulk_ess", "predictive", "releases", "passes")
COVERAGES = ("coverage_50", "coverage_90")
# In the order in which they are shown; of these, colours are those of chains and what they release.
LOOKS = {
    "noisy_statistic": Look("one noisy statistic", "#222222", "P"),
    "exact_draws": Look("exact draws", "#767676", "X"),
    "automatic": Look("automatic", "#009E73", "v"),
    "hmc_releases": Look("what DP-HMC released", "#E69F00", "*"),
    "variational": Look("variational", "#56B4E9", "<"),
    "variational_aware": Look("variational, aware", "#332288", ">"),
    "langevin": Look("unadjusted Langevin", "#0072B2", "o"),
    "kinetic_langevin": Look("kinetic Langevin", "#56B4E9", "s"),
    "penalty": Look("DP-penalty", "#CC79A7", "D"),
    "hmc": Look("DP-HMC", "#D55E00", "^"),
    "hmc_10": Look("DP-HMC, ten steps", "#332288", "P"),
    "hmc_batches": Look("DP-HMC, batches", "#882255", "d"),
    "awk_mean": Look("awk", "#999999", "1"),
    "r_mean": Look("R", "#999999", "2"),
    "emcee_gradients": Look("emcee", "#999999", "3"),
}
RESAMPLES, SEED = 2000, 20261
# Of bootstrap ratios to the nearest, this share is 1 or less where a method may be as near.
LEVEL = 0.05


def label(name: str) -> str:
    """Name of a method in figures."""
    return LOOKS[name].label if name in LOOKS else name.replace("_", " ")


def ordered(names: set[str]) -> list[str]:
    """Methods in the order in which they are shown: ours, examples, others."""
    return [name for name in LOOKS if name in names] + sorted(names - set(LOOKS))


def standings(context: Context) -> pd.DataFrame:
    """What the runs of each method on each task at each budget come to.

    Reads runs of the studies of the league. One row per task, method and epsilon: how many runs
    have a score; median and quartiles of the sliced distance, and whether it is among the nearest
    (see `nearest`); medians of other scores; effective draws, 1 over the mean square error of the
    means, and the same over mu^2; mean coverage; the epsilon that holds; the lower bound of the
    attack on the method, and the epsilon that its ledger claims there; what is outside; and why
    runs have no score.
    """
    rows, near = context.metrics, nearest(context.metrics)
    groups: Any = rows.groupby(KEYS)
    scored = rows[rows["status"] == COMPLETE].groupby(KEYS)
    quartiles = {"q1": 0.25, "median": 0.5, "q3": 0.75}
    draws = 1 / scored["square_error"].agg(_mean)
    table = pd.DataFrame(
        {
            "runs": groups.size(),
            "scored": scored.size(),
            **{name: scored[DISTANCE].quantile(share) for name, share in quartiles.items()},
            "nearest": {key: near.get((key[0], key[2], key[1]), False) for key in groups.groups},
            **{name: scored[name].median() for name in MEDIANS},
            "effective_draws": draws,
            "per_mu2": draws / scored["mu"].agg(lambda mu: _mean(mu**2)),
            **{name: scored[name].agg(_mean) for name in COVERAGES},
            "guarantee_epsilon": groups["guarantee_epsilon"].max(),
            "attack": groups["attack_epsilon"].max(),
            "attack_claim": groups["attack_claim"].max(),
            "outside": groups["outside"].agg(_joined),
            "status": groups["status"].agg(lambda found: _joined(found[found != COMPLETE])),
        }
    )
    table["scored"] = table["scored"].fillna(0).astype(int)
    order = [
        key
        for problem in context.problems(rows)
        for label in ordered(set(rows["label"]))
        for key in sorted(k for k in groups.groups if k[:2] == (problem, label))
    ]
    return table.loc[order].rename_axis(["problem", "method", "epsilon"]).reset_index()


def _mean(values: pd.Series[float]) -> float:
    return float(values.mean())  # pandas rounds a mean of groups otherwise


def _joined(texts: pd.Series[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, texts)))


def attacks(context: Context) -> pd.DataFrame:
    """What attacks on the methods have found.

    Reads runs of the studies of the league. One row per method and problem on which it was
    attacked, those alike put together: the lower bound on its epsilon, what its ledger claims
    there, whether it stands, and why not.
    """
    rows = context.metrics
    found: list[dict[str, object]] = []
    for method in ordered(set(rows["label"])):
        group = rows[(rows["label"] == method) & rows["attack_claim"].notna()]
        worst = group.assign(share=group["attack_epsilon"] / group["attack_claim"])
        worst = worst.sort_values("share", kind="stable").groupby("problem").tail(1)
        problems: dict[tuple[float, float], list[str]] = {}
        worst = worst.sort_values("problem")
        pairs = zip(worst["attack_epsilon"], worst["attack_claim"], strict=True)
        for pair, problem in zip(pairs, worst["problem"], strict=True):
            problems.setdefault(pair, []).append(problem)
        for (lower, claim), names in problems.items():
            others = group.loc[group["problem"].isin(names) & (group["status"] != COMPLETE)]
            found.append(
                {
                    "method": method,
                    "problem": "all" if len(problems) == 1 else "; ".join(names),
                    "lower_bound": lower,
                    "claim": claim,
                    "share": lower / claim,
                    "stands": bool(lower <= claim),
                    "status": "; ".join(dict.fromkeys(others["status"])),
                }
            )
    columns = ["method", "problem", "lower_bound", "claim", "share", "stands", "status"]
    return pd.DataFrame(found, columns=columns)


def nearest(rows: pd.DataFrame) -> dict[tuple[str, float, str], bool]:
    """Which methods have the least median distance of a task and budget, or may have it.

    A method may be as near as the one with the least median unless the bootstrap ratio of the two
    medians, replicates resampled together, is above 1 in all but `LEVEL` of the resamples. Methods
    of which a run has no score are not among them; with fewer than three replicates only the least
    is.
    """
    found: dict[tuple[str, float, str], bool] = {}
    for task, epsilon in set(zip(rows["problem"], rows["epsilon"].astype(float), strict=True)):
        group = rows[(rows["problem"] == task) & (rows["epsilon"] == epsilon)]
        wide = group.pivot_table(DISTANCE, "replicate", "label", sort=False, dropna=False)
        wide = wide.dropna(axis=1)
        if wide.empty:
            continue
        values = wide.to_numpy(float)
        medians = np.median(values, axis=0)
        best = int(medians.argmin())
        ratios = _ratios(values, best, task, epsilon)
        for k, name in enumerate(wide.columns):
            as_near = k == best or (len(values) > 2 and np.mean(ratios[:, k] <= 1) > LEVEL)
            found[task, epsilon, str(name)] = bool(as_near)
    return found


def why(group: pd.DataFrame) -> str:
    """In one sign why no run of a group has a score."""
    status = group["status"]
    if status.str.startswith((ABSENT, UNAVAILABLE)).all():
        return "–"
    return "×"


def _ratios(values: Array, best: int, task: str, epsilon: float) -> Array:
    rng = stream(SEED, "league", "nearest", task, epsilon)
    chosen = rng.integers(len(values), size=(RESAMPLES, len(values)))
    medians = np.median(values[chosen], axis=1)
    ratios: Array = medians / medians[:, [best]]
    return ratios
