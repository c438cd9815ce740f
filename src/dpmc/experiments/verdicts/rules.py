"""Statistical rules: what a claim of a document says about a table of runs.

Each rule measures one quantity per setting (a value of epsilon, a model, a method) and
compares it with limits. Uncertainty comes from resampling replicates: all methods share
the start points of a replicate, so replicates are resampled jointly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dpmc.diagnostics.mmd import PAIRS
from dpmc.experiments.plots.style import method_label
from dpmc.experiments.verdicts import comparisons
from dpmc.experiments.verdicts.bootstrap import Measurement, measured, resample
from dpmc.experiments.verdicts.evidence import (
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
from dpmc.types import DpmcError

CONSTANTS = {"width_pairs": PAIRS}


def ratio(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure the ratio of a statistic of one group to that of others, per setting.

    Keys: `metric`, `statistic` (median), `where`, `numerators` (filters, each measured by
    itself), `denominators` (filters), `versus` (``max`` or ``min`` of the denominators),
    `by` (columns of the grid).
    """
    rows = select(evidence.metrics, rule.get("where", {}))
    by = list(rule.get("by", ()))
    found, lacking = [], []
    for top in rule["numerators"]:
        tops = with_fallback(select(rows, top), variant, top)
        if tops.empty:
            lacking.append(words(top))
        for values, group in grid(tops, by):
            here = select(rows, dict(zip(by, values, strict=True)))
            rest = [with_fallback(select(here, f), variant, f) for f in rule["denominators"]]
            lacking += [
                words(f) for f, r in zip(rule["denominators"], rest, strict=True) if r.empty
            ]
            # Where no group has the variant, the setting says nothing about it.
            if any((part["variant"] == variant).all() and len(part) for part in [group, *rest]):
                name = name_of(top, by, values)
                if not any(part.empty for part in rest):
                    found.append(_ratio(rule, name, group, rest, evidence))
    return or_not_run(found, lacking or [f"variant {variant}"], rule)


def level(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure a statistic of a metric per group and setting.

    Keys: `metric`, `statistic`, `where`, `groups` (filters), `by`, and `over`: a column by
    which the metric is divided run by run.
    """
    rows = select(evidence.metrics, rule.get("where", {}))
    by = list(rule.get("by", ()))
    found, lacking = [], []
    for choice in rule.get("groups", [{}]):
        chosen = of_variant(select(rows, choice), variant, choice)
        if "over" in rule:
            chosen = chosen.copy()
            chosen[rule["metric"]] = chosen[rule["metric"]].div(chosen[rule["over"]])
        chosen = chosen[chosen[rule["metric"]].notna()]
        if chosen.empty:
            lacking.append(words(choice))
        for values, group in grid(chosen, by):
            statistic = str(rule.get("statistic", "median"))
            estimates = resample(
                [group], rule["metric"], statistic, evidence.rng, evidence.resamples
            )[0]
            found.append(measured(name_of(choice, by, values), estimates, group, log=False))
    return or_not_run(found, lacking, rule)


def count(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Count the runs whose metric lies strictly between two numbers.

    Keys: `metric`, `between`, `where`, `by`. Nothing is resampled: the claim is about
    these runs.
    """
    rows = of_variant(select(evidence.metrics, rule.get("where", {})), variant, {})
    by, (low, high) = list(rule.get("by", ())), rule["between"]
    found = []
    for values, group in grid(rows[rows[rule["metric"]].notna()], by):
        metric = group[rule["metric"]]
        inside = int(((metric > low) & (metric < high)).sum())
        parts = [name_of({}, by, values)] if by else []
        name = ", ".join([*parts, f"of {len(metric)} runs"])
        found.append(Measurement(name, float(inside), 0.0, 0, log=False))
    return or_not_run(found, [words(rule.get("where", {}))], rule)


def regret(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Compare how far methods fall behind the best one on their worst problem.

    The regret of a method is the largest, over problems, of its median over the best
    median. Keys: `metric`, `where`, `by`, `method`, `others`: the regret of `method` is
    divided by that of each of `others`.
    """
    rows = select(evidence.metrics, rule.get("where", {}))
    methods, by = [rule["method"], *rule["others"]], list(rule["by"])
    picked = [with_fallback(select(rows, {"method": m}), variant, {"method": m}) for m in methods]
    found = []
    for values, here in grid(pd.concat(picked), by):
        problems = sorted(set(here["problem"]))
        cells = [(m, p) for m in methods for p in problems]
        groups = [here[(here["method"] == m) & (here["problem"] == p)] for m, p in cells]
        if len(problems) < 2 or any(group.empty for group in groups):
            continue
        medians = np.stack(
            resample(groups, rule["metric"], "median", evidence.rng, evidence.resamples)
        )
        medians = medians.reshape(len(methods), len(problems), -1)
        worst = (medians / medians.min(axis=0)).max(axis=1)
        for k, other in enumerate(rule["others"], start=1):
            name = name_of({"method": other}, by, values)
            found.append(measured(f"against {name}", worst[0] / worst[k], here, log=True))
    return or_not_run(found, ["two problems with " + ", ".join(map(method_label, methods))], rule)


def setting(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Read one number of the configuration, or of the code. Keys: `path` (keys, indices)."""
    value: Any = {**evidence.config, "constants": CONSTANTS}
    for key in str(rule["path"]).split("."):
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, Sequence) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise NotRunError(f"not in this run: {rule['path']} in the configuration")
    return [Measurement(str(rule["path"]), float(value), 0.0, 0, log=False)]


def problem(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Read one quantity of a problem, also where the configuration leaves it to the model.

    Keys: `where`: `problem` and `quantity`, which is ``dim``, ``n0`` (tempering times rows)
    or a parameter behind ``data.``, ``model.`` or ``start.``.
    """
    from dpmc import registry

    name, quantity = rule["where"]["problem"], str(rule["where"]["quantity"])
    entry = evidence.config["problems"].get(name)
    if entry is None:
        raise NotRunError(f"not in this run: problem {name}")
    module = registry.load("model", entry["model"]["name"])
    params = registry.parameters(module, dict(entry["model"]["params"]))
    rows = entry["data"]["params"]
    values = {f"data.{key}": value for key, value in rows.items()}
    values |= {f"start.{key}": value for key, value in entry["start"].items()}
    values |= {f"model.{key}": value for key, value in vars(params).items()}
    values |= {"dim": module.build(params).dim, "n0": params.tempering * rows["num_rows"]}
    if quantity not in values:
        raise NotRunError(f"not in this run: {name} has no {quantity}")
    return [Measurement(f"{quantity} of {name}", float(values[quantity]), 0.0, 0, log=False)]


def reuse(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure the share of iterations that DP-HMC gains by keeping its last gradient.

    Keys: `experiment`, `problem`, `label`, `epsilon`. Both counts come from the
    calibration, of one chain.
    """
    from dpmc import registry
    from dpmc.mcmc.methods import dp_hmc
    from dpmc.privacy.calibration import plan
    from dpmc.types import Budget

    path = ("experiments", rule["experiment"], "methods", rule["problem"], rule["label"])
    entry: Any = evidence.config
    for key in path:
        if key not in entry:
            raise NotRunError(f"not in this run: {'.'.join(path)} in the configuration")
        entry = entry[key]
    settings = evidence.config["problems"][rule["problem"]]
    num_rows, delta = settings["data"]["params"]["num_rows"], settings["delta"]
    params = registry.parameters(dp_hmc, dict(entry["params"]))
    budget = Budget(float(rule["epsilon"]), delta, "gaussian")
    fresh, kept = (
        plan(dp_hmc.releases(replace(params, reuse_gradient=keep), num_rows), budget).num_iterations
        for keep in (False, True)
    )
    name = f"{kept} iterations instead of {fresh} at epsilon {rule['epsilon']}"
    return [Measurement(name, kept / fresh - 1, 0.0, 0, log=False)]


def _ratio(
    rule: Rule, name: str, top: pd.DataFrame, rest: list[pd.DataFrame], evidence: Evidence
) -> Measurement:
    statistic = str(rule.get("statistic", "median"))
    estimates = resample([top, *rest], rule["metric"], statistic, evidence.rng, evidence.resamples)
    versus = np.max if rule.get("versus", "max") == "max" else np.min
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = estimates[0] / versus(np.stack(estimates[1:]), axis=0)
    smallest = min([top, *rest], key=lambda rows: rows["replicate"].nunique())
    return measured(name, quotient, smallest, log=True)


KINDS: dict[str, Callable[[Rule, Evidence, str], list[Measurement]]] = {
    "ratio": ratio,
    "level": level,
    "count": count,
    "regret": regret,
    "setting": setting,
    "reuse": reuse,
    "problem": problem,
    **comparisons.KINDS,
}
# What each rule cannot do without.
KEYS: dict[str, tuple[str, ...]] = {
    "ratio": ("metric", "numerators", "denominators"),
    "level": ("metric",),
    "count": ("metric", "between"),
    "regret": ("metric", "method", "others", "by"),
    "setting": ("path",),
    "reuse": ("experiment", "problem", "label", "epsilon"),
    "problem": ("where",),
    **comparisons.KEYS,
}
# Nothing random enters these.
EXACT = ("count", "setting", "reuse", "problem", "curve", "gain")


def exact(rule: Rule) -> bool:
    """Return whether nothing random enters what a rule measures: by its kind, or as it says."""
    return rule["kind"] in EXACT or bool(rule.get("exact"))


def exactly(rule: Rule, found: list[Measurement]) -> list[Measurement]:
    """Return measurements without uncertainty where a rule says that there is none.

    Raises
    ------
    DpmcError
        If an exact rule is about several runs of one setting: replicates differ, so the
        value is random, not exact.
    """
    if not rule.get("exact"):
        return found
    several = [entry.setting for entry in found if entry.runs > 1 and entry.se != 0]
    if several:
        raise DpmcError(f"rule: exact, but {several[0]} differs between runs, allowed one value")
    return [replace(entry, se=0.0, runs=0) for entry in found]
