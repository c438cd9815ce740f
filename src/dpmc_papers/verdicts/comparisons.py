"""Comparison of groups of runs: the general kind `order`, and what comparisons share."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd

from dpmc.types import Array
from dpmc_papers.verdicts.bootstrap import Measurement, quotient
from dpmc_papers.verdicts.evidence import (
    Evidence,
    Rule,
    grid,
    name_of,
    or_not_run,
    select,
    with_fallback,
    words,
)
from dpmc_papers.verdicts.kinds import kind, statistics_of
from dpmc_papers.verdicts.scales import LOG


@kind(
    "metric",
    "tiers",
    describe=lambda rule: (
        f"ratio of {statistics_of(rule)}, each group over each that should exceed it"
    ),
)
def order(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure, per setting, the ratio of every two groups that a claim puts in order.

    Keys: `metric`, `statistic` (median), `where`, `tiers` (lists of filters, the tier of
    the smallest values first), `by`. Groups of one tier are not compared.
    """
    rows = evidence.select(rule.get("where", {}))
    statistic = str(rule.get("statistic", "median"))
    by = list(rule.get("by", ()))
    measurements, lacking = [], []
    for below, above in _pairs(rule["tiers"]):
        sides = [with_fallback(select(rows, side), variant, side) for side in (below, above)]
        lacking += [words(f) for f, s in zip((below, above), sides, strict=True) if s.empty]
        if any(side.empty for side in sides):
            continue
        if not any((side["variant"] == variant).all() for side in sides):
            lacking.append(f"variant {variant}")
            continue
        for values, groups in shared_settings(sides, by):
            parts = [name_of({}, by, values)] if by else []
            name = ", ".join([f"{words(below)} over {words(above)}", *parts])
            measurements.append(
                evidence.measure(name, groups, rule["metric"], statistic, LOG, first_over_second)
            )
    return or_not_run(measurements, lacking, rule)


def shared_settings(
    sides: list[pd.DataFrame], by: list[str]
) -> list[tuple[tuple[Any, ...], list[pd.DataFrame]]]:
    """Settings that both sides have: the values of the columns `by`, and the runs of each side."""
    first, second = (dict(grid(side, by)) for side in sides)
    return [(key, [group, second[key]]) for key, group in first.items() if key in second]


def first_over_second(values: list[Array]) -> Array:
    """Ratio of the values of two groups."""
    return quotient(values[0], values[1])


def _pairs(tiers: list[list[Rule]]) -> list[tuple[Rule, Rule]]:
    return [
        (below, above)
        for low, high in itertools.combinations(tiers, 2)
        for below, above in itertools.product(low, high)
    ]
