"""The table of the league: medians of runs, and which methods are the nearest."""

from __future__ import annotations

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
    rows = context.metrics
    found = []
    near = nearest(rows)
    for name in context.problems(rows):
        of_task = rows[rows["problem"] == name]
        for method in ordered(set(of_task["label"])):
            of_method = of_task[of_task["label"] == method]
            for epsilon in sorted(set(of_method["epsilon"].astype(float))):
                group = of_method[of_method["epsilon"] == epsilon]
                scored = group[group["status"] == COMPLETE]
                quartiles = scored[DISTANCE].quantile([0.25, 0.5, 0.75]).to_numpy()
                draws = 1 / scored["square_error"].mean() if len(scored) else np.nan
                others = group.loc[group["status"] != COMPLETE, "status"]
                found.append(
                    {
                        "problem": name,
                        "method": method,
                        "epsilon": epsilon,
                        "runs": len(group),
                        "scored": len(scored),
                        "q1": quartiles[0],
                        "median": quartiles[1],
                        "q3": quartiles[2],
                        "nearest": bool(near.get((name, epsilon, method), False)),
                        **{key: scored[key].median() for key in MEDIANS},
                        "effective_draws": draws,
                        "per_mu2": draws / (scored["mu"] ** 2).mean(),
                        **{key: scored[key].mean() for key in COVERAGES},
                        "guarantee_epsilon": group["guarantee_epsilon"].max(),
                        "attack": group["attack_epsilon"].max(),
                        "attack_claim": group["attack_claim"].max(),
                        "outside": "; ".join(dict.fromkeys(filter(None, group["outside"]))),
                        "status": "; ".join(dict.fromkeys(others)),
                    }
                )
    return pd.DataFrame(found)


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
