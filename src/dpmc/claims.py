"""Statistical rules: what a claim of a document says about a table of runs.

Each rule measures one quantity per setting (a value of epsilon, a model, a method) and
compares it with limits. Uncertainty comes from resampling replicates: all methods share
the start points of a replicate, so replicates are resampled jointly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpmc.bootstrap import Measurement, measured, resample
from dpmc.discrepancy import PAIRS
from dpmc.plots.style import method_label
from dpmc.types import DpmcError

Rule = Mapping[str, Any]
AS_PUBLISHED = "as_published"
CONSTANTS = {"width_pairs": PAIRS}


@dataclass(frozen=True)
class Evidence:
    """What rules are evaluated on.

    Parameters
    ----------
    metrics : pandas.DataFrame
        One row per run.
    config : mapping
        The resolved configuration of the document.
    rng : numpy.random.Generator
        Resamples replicates.
    resamples : int
        Bootstrap resamples.
    """

    metrics: pd.DataFrame
    config: Mapping[str, Any]
    rng: np.random.Generator
    resamples: int


class NotRunError(Exception):
    """The run lacks what a rule needs; the message says what."""


def ratio(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure the ratio of a statistic of one group to that of others, per setting.

    Keys: `metric`, `statistic` (median), `where`, `numerators` (filters, each measured by
    itself), `denominators` (filters), `versus` (``max`` or ``min`` of the denominators),
    `by` (columns of the grid).
    """
    rows = _select(evidence.metrics, rule.get("where", {}))
    by = list(rule.get("by", ()))
    found, lacking = [], []
    for top in rule["numerators"]:
        tops = _fallback(_select(rows, top), variant, top)
        if tops.empty:
            lacking.append(_words(top))
        for values, group in _grid(tops, by):
            here = _select(rows, dict(zip(by, values, strict=True)))
            rest = [_fallback(_select(here, f), variant, f) for f in rule["denominators"]]
            lacking += [
                _words(f) for f, r in zip(rule["denominators"], rest, strict=True) if r.empty
            ]
            # Where no group has the variant, the setting says nothing about it.
            if any((part["variant"] == variant).all() and len(part) for part in [group, *rest]):
                name = _setting(top, by, values)
                if not any(part.empty for part in rest):
                    found.append(_ratio(rule, name, group, rest, evidence))
    return _or_not_run(found, lacking or [f"variant {variant}"], rule)


def level(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure a statistic of a metric per group and setting.

    Keys: `metric`, `statistic`, `where`, `groups` (filters), `by`, and `over`: a column by
    which the metric is divided run by run.
    """
    rows = _select(evidence.metrics, rule.get("where", {}))
    by = list(rule.get("by", ()))
    found, lacking = [], []
    for choice in rule.get("groups", [{}]):
        chosen = _variant(_select(rows, choice), variant, choice)
        if "over" in rule:
            chosen = chosen.copy()
            chosen[rule["metric"]] = chosen[rule["metric"]].div(chosen[rule["over"]])
        chosen = chosen[chosen[rule["metric"]].notna()]
        if chosen.empty:
            lacking.append(_words(choice))
        for values, group in _grid(chosen, by):
            statistic = str(rule.get("statistic", "median"))
            estimates = resample(
                [group], rule["metric"], statistic, evidence.rng, evidence.resamples
            )[0]
            found.append(measured(_setting(choice, by, values), estimates, group, log=False))
    return _or_not_run(found, lacking, rule)


def count(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Count the runs whose metric lies strictly between two numbers.

    Keys: `metric`, `between`, `where`, `by`. Nothing is resampled: the claim is about
    these runs.
    """
    rows = _variant(_select(evidence.metrics, rule.get("where", {})), variant, {})
    by, (low, high) = list(rule.get("by", ())), rule["between"]
    found = []
    for values, group in _grid(rows[rows[rule["metric"]].notna()], by):
        metric = group[rule["metric"]]
        inside = int(((metric > low) & (metric < high)).sum())
        parts = [_setting({}, by, values)] if by else []
        name = ", ".join([*parts, f"of {len(metric)} runs"])
        found.append(Measurement(name, float(inside), 0.0, 0, log=False))
    return _or_not_run(found, [_words(rule.get("where", {}))], rule)


def regret(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Compare how far methods fall behind the best one on their worst problem.

    The regret of a method is the largest, over problems, of its median over the best
    median. Keys: `metric`, `where`, `by`, `method`, `others`: the regret of `method` is
    divided by that of each of `others`.
    """
    rows = _select(evidence.metrics, rule.get("where", {}))
    methods, by = [rule["method"], *rule["others"]], list(rule["by"])
    picked = [_fallback(_select(rows, {"method": m}), variant, {"method": m}) for m in methods]
    found = []
    for values, here in _grid(pd.concat(picked), by):
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
            name = _setting({"method": other}, by, values)
            found.append(measured(f"against {name}", worst[0] / worst[k], here, log=True))
    return _or_not_run(found, ["two problems with " + ", ".join(map(method_label, methods))], rule)


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


def reuse(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure the share of iterations that DP-HMC gains by keeping its last gradient.

    Keys: `experiment`, `problem`, `label`, `epsilon`. Both counts come from the
    calibration, of one chain.
    """
    from dataclasses import replace

    from dpmc import registry
    from dpmc.methods import dp_hmc
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


def _select(rows: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    """Filter by equality, list, ``{at_least, below}`` or ``{largest: k}`` of the grid."""
    for column, wanted in filters.items():
        if column not in rows:
            raise DpmcError(f"rule: column {column!r}, allowed {', '.join(sorted(rows.columns))}")
        values = rows[column]
        keep: npt.NDArray[np.bool_] | pd.Series[bool]
        if isinstance(wanted, Mapping) and "largest" in wanted:
            keep = np.zeros(len(rows), dtype=bool)
            for _, part in rows.groupby("problem"):
                grid = np.sort(part[column].dropna().unique())[-wanted["largest"] :]
                keep |= (rows["problem"] == part["problem"].iloc[0]) & values.isin(grid)
        elif isinstance(wanted, Mapping):
            low, high = wanted.get("at_least", -math.inf), wanted.get("below", math.inf)
            keep = (values >= low) & (values < high)
        else:
            keep = values.isin(wanted if isinstance(wanted, list) else [wanted])
        rows = rows[keep]
    return rows


def _variant(rows: pd.DataFrame, variant: str, filters: Mapping[str, Any]) -> pd.DataFrame:
    return rows if "variant" in filters else rows[rows["variant"] == variant]


def _fallback(rows: pd.DataFrame, variant: str, filters: Mapping[str, Any]) -> pd.DataFrame:
    """Return the runs of `variant`, or as published where a method has no such variant."""
    chosen = _variant(rows, variant, filters)
    return chosen if not chosen.empty else _variant(rows, AS_PUBLISHED, filters)


def _grid(rows: pd.DataFrame, by: list[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    if rows.empty:
        return
    if not by:
        yield (), rows
        return
    for values, group in rows.groupby(by, sort=True):
        yield values if isinstance(values, tuple) else (values,), group


def _setting(filters: Mapping[str, Any], by: list[str], values: tuple[Any, ...]) -> str:
    return _words({**filters, **dict(zip(by, values, strict=True))}) if filters or by else "all"


def _words(filters: Mapping[str, Any]) -> str:
    parts = []
    for column, value in filters.items():
        if column == "method" and isinstance(value, str):
            parts.append(method_label(value))
        elif isinstance(value, Mapping):
            parts.append(f"{column} " + " ".join(f"{k} {v}" for k, v in value.items()))
        elif isinstance(value, float):
            parts.append(f"{column} {value:g}")
        else:
            parts.append(f"{value}" if column in ("problem", "variant") else f"{column} {value}")
    return ", ".join(parts) or "any run"


def _or_not_run(found: list[Measurement], lacking: list[str], rule: Rule) -> list[Measurement]:
    usable = [entry for entry in found if not math.isnan(entry.estimate)]
    if not usable:
        where = _words(rule.get("where", {}))
        missing = "; ".join(dict.fromkeys(lacking)) or rule.get("metric")
        raise NotRunError(f"not in this run: {missing} ({where})")
    return usable


KINDS: dict[str, Callable[[Rule, Evidence, str], list[Measurement]]] = {
    "ratio": ratio,
    "level": level,
    "count": count,
    "regret": regret,
    "setting": setting,
    "reuse": reuse,
}
