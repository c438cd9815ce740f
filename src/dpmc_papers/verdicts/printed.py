"""Kinds of rules for printed numbers, whose uncertainty in print counts too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dpmc.types import UNAVAILABLE, DpmcError
from dpmc_papers.verdicts.bootstrap import Bounds, Measurement, measured, replicates_of
from dpmc_papers.verdicts.evidence import (
    Evidence,
    NotRunError,
    Rule,
    of_variant,
    select,
    words,
)
from dpmc_papers.verdicts.kinds import Cell, Kind, kind
from dpmc_papers.verdicts.scales import LOG, PLAIN, Scale, scale_of

# A printed curve is read between its points, not across a gap of a thinned grid.
LARGEST_GAP = 0.15


@kind(
    "metric",
    "where",
    "printed",
    describe=lambda rule: f"median of {rule.get('metric', '')}",
    in_series=True,
    cell=Cell(3, "quartiles in ascending order"),
    uncertain="medians",
)
def quartiles(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure the median of one box of a box plot, whose print is uncertain too.

    Keys: `metric`, `where`, `printed` (first quartile, median, third quartile, or the
    median alone), `count` (printed runs; by default as many as were measured). The
    standard error of the printed median is that of a distribution that is Gaussian on the scale
    of the metric and has these quartiles, ``1.2533 (q3 - q1) / 1.349 / sqrt(count)``. Of a median
    alone nothing is known: it is taken to be as uncertain as the measured median.
    """
    rows, name = _measurable(rule, evidence, variant)
    scale = _scale(rule)
    measurement = evidence.measure(name, [rows], rule["metric"], "median", scale)
    printed, size = rule["printed"], rule.get("count", len(rows))
    if not isinstance(printed, list):
        return [replace(measurement, limit_se=measurement.se)]
    spread = (scale.of(printed[2]) - scale.of(printed[0])) / 1.349
    limit_se = 1.2533 * spread / math.sqrt(size)
    return [replace(measurement, limit_se=limit_se, runs=min(measurement.runs, size))]


@kind(
    "metric",
    "where",
    "printed",
    "of",
    "count",
    "confidence",
    describe=lambda rule: f"{str(rule.get('of')).replace('_', '-')} of {rule.get('metric', '')}",
    in_series=True,
    cell=Cell(3, "an interval around a mean in ascending order"),
    uncertain="numbers",
)
def interval(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure a mean, or the half-width of its interval, of which print gives an interval.

    Keys: `metric`, `where`, `printed` (lower end, mean, upper end), `of` (``mean`` or
    ``half_width``), `count` (printed runs M), `confidence` of the interval. The printed
    interval implies its standard error: the half-width over the Student quantile of M - 1
    degrees of freedom, rounding of its ends included. The standard error of a half-width is that
    of Gaussian runs, itself over ``sqrt(2 (M - 1))``, or that of M runs like ours where these
    have heavier tails; of fifty runs with tails as heavy as those of a lognormal law with sigma
    0.5, the error rate of a contradiction is then up to twice the one that is stated.
    """
    rows, name = _measurable(rule, evidence, variant)
    scale, unit = _scale(rule), float(rule.get("unit", 0.0))
    low, middle, high = rule["printed"]
    half, count = (high - low) / 2, int(rule["count"])
    if rule["of"] == "mean":
        limit_se = (half + unit) / _quantile(rule, count) * scale.slope(middle)
        measurement = evidence.measure(name, [rows], rule["metric"], "mean", scale)
    else:
        copies = evidence.resample([rows], rule["metric"], "sd")[0]
        copies = copies * _quantile(rule, len(rows)) / math.sqrt(len(rows))
        measurement = measured(name, copies, rows, scale)
        limit_se = max(
            half * scale.slope(half) / math.sqrt(2 * (count - 1)),
            measurement.se * math.sqrt(measurement.runs / count),
        )
    return [replace(measurement, limit_se=limit_se, runs=min(measurement.runs, count))]


@kind(
    "metric",
    "where",
    "printed",
    "count",
    describe=lambda rule: f"mean of {rule.get('metric', '')}",
    in_series=True,
    cell=Cell(2, "a mean and a non-negative standard deviation"),
    uncertain="means",
)
def spread(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure a mean, of which print gives a mean and a standard deviation over runs.

    Keys: `metric`, `where`, `printed` (mean and standard deviation, or the mean alone),
    `count` (printed runs; 1 if the second printed number is a standard error; 0 if print
    is one run whose random numbers a single run repeats, so that nothing is uncertain).
    The standard error of print is its standard deviation over ``sqrt(count)``; a mean alone
    is taken to be as uncertain as a mean of so many of the measured runs.
    """
    rows, name = _measurable(rule, evidence, variant)
    scale = _scale(rule)
    measurement = evidence.measure(name, [rows], rule["metric"], "mean", scale)
    printed, count = rule["printed"], int(rule["count"])
    if count == 0:
        return [replace(measurement, se=0.0, runs=0) if len(rows) == 1 else measurement]
    if not isinstance(printed, list):
        limit_se = measurement.se * math.sqrt(measurement.runs / count)
        return [replace(measurement, limit_se=limit_se)]
    limit_se = printed[1] / math.sqrt(count) * scale.slope(printed[0])
    runs = min(measurement.runs, count) if count > 1 else measurement.runs
    return [replace(measurement, limit_se=limit_se, runs=runs)]


@kind("curve", "where", describe=lambda rule: "iterations", exact=True, in_series=True)
def curve(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Read the iterations that an accountant allows off a curve, between points linearly.

    Keys: `curve` (name), `where` (filters that leave one curve, and its `epsilon`).
    """
    where = dict(rule["where"])
    epsilon = float(where.pop("epsilon"))
    rows = select(curve_rows(rule, evidence), where).sort_values("epsilon")
    points = rows["epsilon"].to_numpy(float)
    if len(set(points)) < len(points):
        raise DpmcError(
            f"`where` of a rule must leave one curve of {rule['curve']!r}, "
            f"got several for {words(where)}"
        )
    index = int(np.searchsorted(points, epsilon))
    around = points[max(index - 1, 0) : index + 1]
    exact = index < len(points) and points[index] == epsilon
    if not exact and (len(around) < 2 or np.ptp(around) > LARGEST_GAP):
        raise NotRunError(f"not in this run: {words(rule['where'])} of {rule['curve']}")
    value = float(np.interp(epsilon, points, rows["num_iterations"].to_numpy(float)))
    return [Measurement(words(rule["where"]), value, 0.0, 0, PLAIN)]


def curve_rows(rule: Rule, evidence: Evidence) -> pd.DataFrame:
    """Accounting curves that a rule names.

    Raises
    ------
    NotRunError
        If the run has none of this name.
    """
    if rule["curve"] not in evidence.curves:
        raise NotRunError(f"not in this run: the curve {rule['curve']}")
    return evidence.curves[rule["curve"]]


def _measurable(rule: Rule, evidence: Evidence, variant: str) -> tuple[pd.DataFrame, str]:
    """Runs that a cell of print is about and that have its metric, and its name."""
    where = rule["where"]
    rows = of_variant(evidence.select(where), variant, where)
    # A count of data that cannot be had is 0, not NaN.
    known = [not str(status).startswith(UNAVAILABLE) for status in rows["status"]]
    usable = rows[rule["metric"]].notna().to_numpy() & np.array(known, dtype=bool)
    if not usable.any():
        raise NotRunError(f"not in this run: {rule['metric']} of {words(where)}")
    name = words({key: value for key, value in where.items() if key != "experiment"})
    return rows[usable], name


def together(
    cells: Sequence[Rule], kind: Kind, evidence: Evidence, variant: str
) -> list[Measurement]:
    """Measure the mean difference of the numbers of a row from print, as a ratio.

    The mean of differences on the scale of the metric has a smaller error than each of them. The
    error of ours comes from resampling replicates of all numbers jointly; that of print is the
    error of a mean of independent numbers, times how much more than such a mean ours varies.
    """
    metric, statistic = cells[0]["rule"]["metric"], _statistic(cells[0]["rule"])
    groups, found, middles = [], [], []
    for cell in cells:
        rule = cell["rule"]
        groups.append(_measurable(rule, evidence, variant)[0])
        found += kind.measure(rule, evidence, variant)
        middles.append((cell["low"] + cell["high"]) / 2)
    if any(entry.runs < 2 for entry in found):
        fewest = min(entry.runs for entry in found)
        return [Measurement("mean ratio to print", math.nan, math.nan, fewest, LOG)]
    copies = evidence.resample(groups, metric, statistic)
    differences = np.zeros_like(copies[0])
    for entry, values, middle in zip(found, copies, middles, strict=True):
        widened = values * (entry.estimate / values[0]) if statistic == "sd" else values
        differences += (entry.scale(widened) - entry.scale.of(middle)) / len(cells)
    rows = min(groups, key=replicates_of)
    joint = measured("mean ratio to print", np.exp(differences), rows, LOG)
    apart = math.sqrt(sum(entry.se**2 for entry in found)) / len(found)
    limit_se = math.sqrt(sum(entry.limit_se**2 for entry in found)) / len(found)
    shared = max(joint.se / apart, 1.0) if apart > 0 else 1.0
    runs = min(entry.runs for entry in found)
    bounds = _mean_bounds(found, joint.scale.of(joint.estimate), shared)
    return [replace(joint, limit_se=limit_se * shared, runs=runs, bounds=bounds)]


def _mean_bounds(found: list[Measurement], middle: float, shared: float) -> Bounds | None:
    """Interval of a mean of independent medians, `shared` times as wide; None for no medians.

    Distances of each median from the ends of its interval add up as standard errors do.
    """
    if any(entry.bounds is None for entry in found):
        return None

    def bounds(level: float) -> tuple[float, float]:
        slacks = np.array([replace(entry, limit_se=0.0).slack(level) for entry in found])
        below, above = shared * np.sqrt(np.sum(slacks**2, axis=0)) / len(found)
        return middle - float(below), middle + float(above)

    return bounds


def _statistic(rule: Rule) -> str:
    if rule["kind"] == "quartiles":
        return "median"
    return "sd" if rule.get("of") == "half_width" else "mean"


def _scale(rule: Rule) -> Scale:
    """Scale of a printed number; key `unit` is half a unit in its last place."""
    return scale_of(rule["metric"], float(rule.get("unit", 0.0)))


def _quantile(rule: Rule, count: int) -> float:
    return float(stdtrit(max(count - 1, 1), 0.5 + rule["confidence"] / 2))
