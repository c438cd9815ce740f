"""Rules that compare groups of runs, or iteration counts, with each other or with print."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

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
from dpmc.types import UNAVAILABLE, DpmcError

# A printed curve is read between its points, not across a gap of a thinned grid.
LARGEST_GAP = 0.15


def order(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure, per setting, the ratio of every two groups that a claim puts in order.

    Keys: `metric`, `statistic` (median), `where`, `tiers` (lists of filters, the tier of
    the smallest values first), `by`. Groups of one tier are not compared.
    """
    rows = select(evidence.metrics, rule.get("where", {}))
    statistic = str(rule.get("statistic", "median"))
    found, lacking = [], []
    for below, above in _pairs(rule["tiers"]):
        chosen = [with_fallback(select(rows, side), variant, side) for side in (below, above)]
        lacking += [words(s) for s, c in zip((below, above), chosen, strict=True) if c.empty]
        if any(side.empty for side in chosen):
            continue
        if not any((side["variant"] == variant).all() for side in chosen):
            lacking.append(f"variant {variant}")
            continue
        for name, groups in _matched(chosen, list(rule.get("by", ()))):
            top, bottom = resample(
                groups, rule["metric"], statistic, evidence.rng, evidence.resamples
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                quotient = top / bottom
            told = ", ".join([f"{words(below)} over {words(above)}", *name])
            found.append(measured(told, quotient, _smallest(groups), log=True))
    return or_not_run(found, lacking, rule)


def difference(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure how far a statistic differs between every two values of a column.

    The largest of noisy medians less the smallest grows with the noise; a difference of
    two does not, so each is a setting of its own. Keys: `metric`, `statistic` (median),
    `where`, `by`, `between` (the column).
    """
    rows = of_variant(select(evidence.metrics, rule.get("where", {})), variant, {})
    rows, column = rows[rows[rule["metric"]].notna()], str(rule["between"])
    statistic = str(rule.get("statistic", "median"))
    found = []
    for values, here in grid(rows, list(rule.get("by", ()))):
        parts = list(grid(here, [column]))
        for (low, first), (high, second) in itertools.combinations(parts, 2):
            pair = resample(
                [first, second], rule["metric"], statistic, evidence.rng, evidence.resamples
            )
            name = f"{column} {high[0]:g} less {low[0]:g}"
            name = ", ".join([*map(str, values), name])
            smallest = _smallest([first, second])
            found.append(measured(name, pair[1] - pair[0], smallest, log=False))
    return or_not_run(found, [f"two values of {column}"], rule)


def follows(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure, per setting, whether the group with the larger guide has the smaller metric.

    A claim that one quantity tells the order of another holds whichever group comes first.
    Keys: `metric`, `statistic` (mean), `where`, `groups` (two filters), `by`, and `guide`:
    the `metric` that leads and `where` it stands, at the same settings and groups. What is
    measured is the metric of the group with the larger guide over that of the other.
    """
    rows = select(evidence.metrics, rule.get("where", {}))
    by, guide = list(rule["by"]), rule["guide"]
    groups = [with_fallback(select(rows, side), variant, side) for side in rule["groups"]]
    leads = select(evidence.metrics, guide.get("where", {}))
    leads = leads[leads[guide["metric"]].notna()]
    known = [
        dict(grid(with_fallback(select(leads, side), variant, side), by)) for side in rule["groups"]
    ]
    found = []
    for values, here in _settings(groups, by):
        if not all(values in side for side in known):
            continue
        means = [float(side[values][guide["metric"]].mean()) for side in known]
        ahead = here if means[0] > means[1] else here[::-1]
        statistic = str(rule.get("statistic", "mean"))
        top, bottom = resample(ahead, rule["metric"], statistic, evidence.rng, evidence.resamples)
        with np.errstate(divide="ignore", invalid="ignore"):
            quotient = top / bottom
        larger = rule["groups"][0 if means[0] > means[1] else 1]
        told = ", ".join([f"{words(larger)} ahead", *([name_of({}, by, values)] if by else [])])
        found.append(measured(told, quotient, _smallest(ahead), log=True))
    lacking = [words(s) for s, g in zip(rule["groups"], groups, strict=True) if g.empty]
    return or_not_run(found, lacking or [f"settings with {guide['metric']}"], rule)


def quartiles(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure the median of one box of a box plot, whose print is uncertain too.

    Keys: `metric`, `where`, `printed` (first quartile, median, third quartile, or the
    median alone), `count` (printed runs; as many as here by default). The standard error
    of the printed median is that of a Gaussian distribution with these quartiles,
    ``1.2533 (q3 - q1) / 1.349 / sqrt(count)``. Of a median alone nothing is known: it is
    taken to be as uncertain as the median here.
    """
    rows, name = _measurable(rule, evidence, variant)
    copies = resample([rows], rule["metric"], "median", evidence.rng, evidence.resamples)[0]
    found = measured(name, copies, rows, log=False)
    printed, size = rule["printed"], rule.get("count", len(rows))
    if not isinstance(printed, list):
        return [replace(found, limit_se=found.se)]
    spread = (printed[2] - printed[0]) / 1.349
    limit_se = 1.2533 * spread / math.sqrt(size)
    return [replace(found, limit_se=limit_se, runs=min(found.runs, size))]


def interval(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure a mean, or the half-width of its interval, of which print gives an interval.

    Keys: `metric`, `where`, `printed` (lower end, mean, upper end), `of` (``mean`` or
    ``half_width``), `count` (printed runs M), `confidence` of the interval. Print then
    tells its own standard error: the half-width over the Student quantile of M - 1 degrees
    of freedom, and that of a half-width is about itself over ``sqrt(2 (M - 1))``.
    """
    rows, name = _measurable(rule, evidence, variant)
    low, _, high = rule["printed"]
    half, count = (high - low) / 2, int(rule["count"])
    if rule["of"] == "mean":
        copies = resample([rows], rule["metric"], "mean", evidence.rng, evidence.resamples)[0]
        limit_se = half / _quantile(rule, count)
    else:
        copies = resample([rows], rule["metric"], "sd", evidence.rng, evidence.resamples)[0]
        copies = copies * _quantile(rule, len(rows)) / math.sqrt(len(rows))
        limit_se = half / math.sqrt(2 * (count - 1))
    found = measured(name, copies, rows, log=False)
    return [replace(found, limit_se=limit_se, runs=min(found.runs, count))]


def spread(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure a mean, of which print gives a mean and a standard deviation over runs.

    Keys: `metric`, `where`, `printed` (mean and standard deviation, or the mean alone),
    `count` (printed runs; 1 if what is printed beside a mean is a standard error; 0 if print
    is one run whose random numbers a single run here repeats, so that nothing is uncertain).
    The standard error of print is its standard deviation over ``sqrt(count)``; a mean alone
    is taken to be as uncertain as a mean of so many of the runs here.
    """
    rows, name = _measurable(rule, evidence, variant)
    copies = resample([rows], rule["metric"], "mean", evidence.rng, evidence.resamples)[0]
    found = measured(name, copies, rows, log=False)
    printed, count = rule["printed"], int(rule["count"])
    if count == 0:
        return [replace(found, se=0.0, runs=0) if len(rows) == 1 else found]
    if not isinstance(printed, list):
        return [replace(found, limit_se=found.se * math.sqrt(found.runs / count))]
    limit_se = printed[1] / math.sqrt(count)
    return [
        replace(found, limit_se=limit_se, runs=min(found.runs, count) if count > 1 else found.runs)
    ]


def _measurable(rule: Rule, evidence: Evidence, variant: str) -> tuple[pd.DataFrame, str]:
    """Return the runs that a cell of print is about and that have its metric, and its name."""
    where = rule["where"]
    rows = of_variant(select(evidence.metrics, where), variant, where)
    # A count of data that cannot be had is 0, not NaN.
    here = rows[rule["metric"]].notna() & ~rows["status"].astype(str).str.startswith(UNAVAILABLE)
    if not here.to_numpy().any():
        raise NotRunError(f"not in this run: {rule['metric']} of {words(where)}")
    return rows[here], words({key: value for key, value in where.items() if key != "experiment"})


def _quantile(rule: Rule, count: int) -> float:
    return float(stdtrit(max(count - 1, 1), 0.5 + rule["confidence"] / 2))


def curve(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Read the iterations that an accountant allows off a curve, between points linearly.

    Keys: `curve` (name), `where` (filters that leave one curve, and its `epsilon`).
    """
    where = dict(rule["where"])
    epsilon = float(where.pop("epsilon"))
    rows = select(_curve(rule, evidence), where).sort_values("epsilon")
    points = rows["epsilon"].to_numpy(float)
    if len(set(points)) < len(points):
        raise DpmcError(f"rule: {words(where)} are several curves of {rule['curve']}, allowed one")
    index = int(np.searchsorted(points, epsilon))
    around = points[max(index - 1, 0) : index + 1]
    exact = index < len(points) and points[index] == epsilon
    if not exact and (len(around) < 2 or np.ptp(around) > LARGEST_GAP):
        raise NotRunError(f"not in this run: {words(rule['where'])} of {rule['curve']}")
    value = float(np.interp(epsilon, points, rows["num_iterations"].to_numpy(float)))
    return [Measurement(words(rule["where"]), value, 0.0, 0, log=False)]


def gain(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure how many times more iterations one accountant allows than another.

    Keys: `curve`, `where`, `accountants` (by variant: the one that allows more, the other).
    """
    rows = select(_curve(rule, evidence), rule.get("where", {}))
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
    found = [
        Measurement(f"{label}, epsilon {epsilon:.3g}", float(value), 0.0, 0, log=False)
        for label, epsilon, value in zip(both["label"], both["epsilon"], ratios, strict=True)
    ]
    return or_not_run(found, [f"{more} and {less} of {rule['curve']}"], rule)


def _pairs(tiers: list[list[Rule]]) -> list[tuple[Rule, Rule]]:
    return [
        (below, above)
        for low, high in itertools.combinations(tiers, 2)
        for below, above in itertools.product(low, high)
    ]


def _matched(
    chosen: list[pd.DataFrame], by: list[str]
) -> list[tuple[list[str], list[pd.DataFrame]]]:
    """Return the settings that both groups have, in words."""
    return [
        ([name_of({}, by, values)] if by else [], groups)
        for values, groups in _settings(chosen, by)
    ]


def _settings(
    chosen: list[pd.DataFrame], by: list[str]
) -> list[tuple[tuple[Any, ...], list[pd.DataFrame]]]:
    """Return the settings that both groups have, by the values of the columns `by`."""
    first, second = (dict(grid(side, by)) for side in chosen)
    return [(key, [group, second[key]]) for key, group in first.items() if key in second]


def _smallest(groups: list[pd.DataFrame]) -> pd.DataFrame:
    return min(groups, key=lambda rows: rows["replicate"].nunique())


def _curve(rule: Rule, evidence: Evidence) -> pd.DataFrame:
    if rule["curve"] not in evidence.curves:
        raise NotRunError(f"not in this run: the curve {rule['curve']}")
    return evidence.curves[rule["curve"]]


KINDS: Mapping[str, Callable[[Rule, Evidence, str], list[Measurement]]] = {
    "order": order,
    "difference": difference,
    "follows": follows,
    "quartiles": quartiles,
    "interval": interval,
    "spread": spread,
    "curve": curve,
    "gain": gain,
}
KEYS: Mapping[str, tuple[str, ...]] = {
    "order": ("metric", "tiers"),
    "difference": ("metric", "between"),
    "follows": ("metric", "groups", "by", "guide"),
    "quartiles": ("metric", "where", "printed"),
    "interval": ("metric", "where", "printed", "of", "count", "confidence"),
    "spread": ("metric", "where", "printed", "count"),
    "curve": ("curve", "where"),
    "gain": ("curve", "accountants"),
}
