"""General kinds of rules: ratios and levels of groups of runs.

Each rule measures one quantity per setting (a value of epsilon, a model, a method) and
compares it with limits. Uncertainty comes from resampling replicates: all methods share
the start points of a replicate, so replicates are resampled jointly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

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
from dpmc_papers.verdicts.kinds import kind, statistics_of
from dpmc_papers.verdicts.scales import LOG


@kind(
    "metric",
    "numerators",
    "denominators",
    describe=lambda rule: f"ratio of {statistics_of(rule)}",
)
def ratio(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure the ratio of a statistic of one group to that of others, per setting.

    Keys: `metric`, `statistic` (median), `where`, `numerators` (filters, each measured by
    itself), `denominators` (filters), `versus` (``max`` or ``min`` of the denominators),
    `by` (columns of the grid).
    """
    rows = evidence.select(rule.get("where", {}))
    by = list(rule.get("by", ()))
    settings = dict(grid(rows, by))
    measurements, lacking = [], []
    for top in rule["numerators"]:
        tops = with_fallback(select(rows, top), variant, top)
        if tops.empty:
            lacking.append(words(top))
        for values, group in grid(tops, by):
            rest = [
                with_fallback(select(settings[values], f), variant, f) for f in rule["denominators"]
            ]
            lacking += [
                words(f) for f, r in zip(rule["denominators"], rest, strict=True) if r.empty
            ]
            # Where no group has the variant, the setting says nothing about it.
            if any((part["variant"] == variant).all() and len(part) for part in [group, *rest]):
                name = name_of(top, by, values)
                if not any(part.empty for part in rest):
                    measurements.append(_ratio(rule, name, group, rest, evidence))
    return or_not_run(measurements, lacking or [f"variant {variant}"], rule)


def _level_in_words(rule: Rule) -> str:
    statistic, metric = rule.get("statistic", "median"), rule.get("metric", "")
    start = "the median run's" if statistic == "of_median_run" else f"{statistic} of"
    return f"{start} {metric}" + (f" / {rule['over']}" if "over" in rule else "")


@kind("metric", describe=_level_in_words)
def level(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure a statistic of a metric per group and setting.

    Keys: `metric`, `statistic`, `where`, `groups` (filters), `by`, and `over`: a column by
    which the metric is divided run by run.
    """
    rows = evidence.select(rule.get("where", {}))
    by = list(rule.get("by", ()))
    measurements, lacking = [], []
    for filters in rule.get("groups", [{}]):
        runs = of_variant(select(rows, filters), variant, filters)
        if "over" in rule:
            runs = runs.copy()
            runs[rule["metric"]] = runs[rule["metric"]].div(runs[rule["over"]])
        runs = runs[runs[rule["metric"]].notna()]
        if runs.empty:
            lacking.append(words(filters))
        for values, group in grid(runs, by):
            statistic = str(rule.get("statistic", "median"))
            name = name_of(filters, by, values)
            measurements.append(evidence.measure(name, [group], rule["metric"], statistic))
    return or_not_run(measurements, lacking, rule)


def configured(path: str, config: Mapping[str, Any]) -> Any:
    """Value at a place in the configuration, named by its keys and indices with dots between them.

    Raises
    ------
    NotRunError
        If there is no such place.
    """
    value: Any = config
    for key in path.split("."):
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, Sequence) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise NotRunError(f"not in this run: {path} in the configuration")
    return value


def _ratio(
    rule: Rule, name: str, top: pd.DataFrame, rest: list[pd.DataFrame], evidence: Evidence
) -> Measurement:
    statistic = str(rule.get("statistic", "median"))
    versus = np.max if rule.get("versus", "max") == "max" else np.min

    def over(values: list[Array]) -> Array:
        return quotient(values[0], versus(np.stack(values[1:]), axis=0))

    return evidence.measure(name, [top, *rest], rule["metric"], statistic, LOG, over)
