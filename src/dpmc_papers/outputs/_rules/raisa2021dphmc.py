"""Rules on clipping counts, the worst problem of a method, and reuse of the last gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dpmc import registry
from dpmc.types import Array
from dpmc_papers.verdicts.bootstrap import Measurement, quotient
from dpmc_papers.verdicts.evidence import (
    Evidence,
    NotRunError,
    Rule,
    grid,
    name_of,
    of_variant,
    or_not_run,
    select,
    with_fallback,
    words,
)
from dpmc_papers.verdicts.kinds import kind
from dpmc_papers.verdicts.scales import LOG, PLAIN


@kind(
    "metric",
    "above",
    describe=lambda rule: f"runs with {rule.get('metric', '')} above {rule.get('above')}",
    exact=True,
)
def beyond(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Count the runs whose metric is not at most a number: an undefined one is among them.

    Keys: `metric`, `above`, `where`, `by`. A setting of which no run has the metric is left out.
    Nothing is resampled: the claim is about these runs.
    """
    limit = rule["above"]
    return _counted(rule, evidence, variant, lambda metric: ~(metric <= limit))


@kind(
    "metric",
    "between",
    describe=lambda rule: f"runs with {rule.get('metric', '')} between {rule.get('between')}",
    exact=True,
)
def count(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Count the runs whose metric lies strictly between two numbers.

    Keys: `metric`, `between`, `where`, `by`. Runs without a value are left out. Nothing is
    resampled: the claim is about these runs.
    """
    low, high = rule["between"]

    def inside(metric: pd.Series) -> pd.Series:
        present = metric.dropna()
        held: pd.Series = (present > low) & (present < high)
        return held

    return _counted(rule, evidence, variant, inside)


def _counted(
    rule: Rule, evidence: Evidence, variant: str, holds: Callable[[pd.Series], pd.Series]
) -> list[Measurement]:
    """How many runs of each setting have a metric of which something holds."""
    rows = of_variant(evidence.select(rule.get("where", {})), variant, {})
    by: list[str] = list(rule.get("by", ()))
    measurements: list[Measurement] = []
    for values, group in grid(rows, by):
        metric: pd.Series = group[str(rule["metric"])]
        if not metric.count():
            continue
        found = holds(metric)
        parts = [name_of({}, by, values)] if by else []
        name = ", ".join([*parts, f"of {len(found)} runs"])
        measurements.append(Measurement(name, float(found.sum()), 0.0, 0, PLAIN))
    return or_not_run(measurements, [words(rule.get("where", {}))], rule)


@kind(
    "metric",
    "method",
    "others",
    "by",
    describe=lambda rule: (
        f"ratio of the worst {rule.get('metric', '')} over the best, over problems"
    ),
)
def regret(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Compare how far methods fall behind the best one on their worst problem.

    The regret of a method is the largest, over problems, of its median over the best
    median. Keys: `metric`, `where`, `by`, `method`, `others`: the regret of `method` is
    divided by that of each of `others`.
    """
    rows = evidence.select(rule.get("where", {}))
    methods, by = [rule["method"], *rule["others"]], list(rule["by"])
    runs = [with_fallback(select(rows, {"method": m}), variant, {"method": m}) for m in methods]
    measurements = []
    for values, compared in grid(pd.concat(runs), by):
        problems = sorted(set(compared["problem"]))
        cells = [(m, p) for m in methods for p in problems]
        groups = [
            compared[(compared["method"] == m) & (compared["problem"] == p)] for m, p in cells
        ]
        shape = len(methods), len(problems)
        if len(problems) < 2 or any(group.empty for group in groups):
            continue
        for k, other in enumerate(rule["others"], start=1):

            def against(values: list[Array], k: int = k, shape: Any = shape) -> Array:
                medians = np.stack(values).reshape(*shape, -1)
                worst = quotient(medians, medians.min(axis=0)).max(axis=1)
                return quotient(worst[0], worst[k])

            name = f"against {name_of({'method': other}, by, values)}"
            measurements.append(
                evidence.measure(name, groups, rule["metric"], "median", LOG, against)
            )
    missing = ["two problems with " + ", ".join(words({"method": m}) for m in methods)]
    return or_not_run(measurements, missing, rule)


@kind(
    "experiment",
    "problem",
    "label",
    "epsilon",
    describe=lambda rule: "iterations gained by keeping the last gradient",
    exact=True,
)
def reuse(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure the share of iterations that DP-HMC gains by keeping its last gradient.

    Keys: `experiment`, `problem`, `label`, `epsilon`. Both counts come from the
    calibration, of one chain.
    """
    from dpmc.mcmc.methods import dp_hmc
    from dpmc.privacy.calibration import plan
    from dpmc.types import Budget

    path = ("experiments", rule["experiment"], "methods", rule["problem"], rule["label"])
    entry: Any = evidence.config
    for key in path:
        if key not in entry:
            raise NotRunError(f"not in this run: {'.'.join(path)} in the configuration")
        entry = entry[key]
    problem = evidence.config["problems"][rule["problem"]]
    num_rows, delta = problem["data"]["params"]["num_rows"], problem["delta"]
    params = registry.parameters(dp_hmc, dict(entry["params"]))
    budget = Budget(float(rule["epsilon"]), delta, "gaussian")
    fresh, reused = (
        plan(dp_hmc.releases(replace(params, reuse_gradient=keep), num_rows), budget).num_iterations
        for keep in (False, True)
    )
    name = f"{reused} iterations instead of {fresh} at epsilon {rule['epsilon']}"
    return [Measurement(name, reused / fresh - 1, 0.0, 0, PLAIN)]
