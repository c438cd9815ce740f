"""Rules on differences over epsilon, gains between accountants, and constants of problems."""

from __future__ import annotations

import itertools

import numpy as np

from dpmc.types import Array
from dpmc_papers.verdicts.bootstrap import Measurement
from dpmc_papers.verdicts.evidence import (
    Evidence,
    NotRunError,
    Rule,
    grid,
    of_variant,
    or_not_run,
    select,
)
from dpmc_papers.verdicts.kinds import kind, statistics_of
from dpmc_papers.verdicts.printed import curve_rows
from dpmc_papers.verdicts.scales import PLAIN


@kind(
    "metric",
    "between",
    describe=lambda rule: f"difference of {statistics_of(rule)} over {rule.get('between')}",
)
def difference(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure how far a statistic differs between every two values of a column.

    The largest of noisy medians less the smallest grows with the noise; a difference of
    two does not, so each is a setting of its own. Keys: `metric`, `statistic` (median),
    `where`, `by`, `between` (the column).
    """
    rows = of_variant(evidence.select(rule.get("where", {})), variant, {})
    rows, column = rows[rows[rule["metric"]].notna()], str(rule["between"])
    statistic = str(rule.get("statistic", "median"))
    measurements = []
    for values, group in grid(rows, list(rule.get("by", ()))):
        parts = list(grid(group, [column]))
        for (low, first), (high, second) in itertools.combinations(parts, 2):
            name = f"{column} {high[0]:g} less {low[0]:g}"
            name = ", ".join([*map(str, values), name])
            measurements.append(
                evidence.measure(name, [first, second], rule["metric"], statistic, PLAIN, _less)
            )
    return or_not_run(measurements, [f"two values of {column}"], rule)


def _less(values: list[Array]) -> Array:
    return values[1] - values[0]


@kind(
    "curve",
    "accountants",
    describe=lambda rule: "iterations by one accountant over those by the other",
    exact=True,
)
def gain(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure how many times more iterations one accountant allows than another.

    Keys: `curve`, `where`, `accountants` (by variant: the one that allows more, the other).
    """
    rows = select(curve_rows(rule, evidence), rule.get("where", {}))
    if variant not in rule["accountants"]:
        raise NotRunError(f"not in this run: variant {variant}")
    more, less = rule["accountants"][variant]
    keys = ["label", "epsilon"]
    first, second = (
        rows.loc[rows["accountant"] == name, [*keys, "num_iterations"]] for name in (more, less)
    )
    both = first.merge(second, on=keys, suffixes=("_more", "_less"))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = both["num_iterations_more"].astype(float) / both["num_iterations_less"]
    measurements = [
        Measurement(f"{label}, epsilon {epsilon:.3g}", float(value), 0.0, 0, PLAIN)
        for label, epsilon, value in zip(both["label"], both["epsilon"], ratios, strict=True)
    ]
    return or_not_run(measurements, [f"{more} and {less} of {rule['curve']}"], rule)
