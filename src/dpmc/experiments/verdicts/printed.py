"""Kinds of rules for printed numbers, whose uncertainty in print counts too."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dpmc.experiments.verdicts.bootstrap import Measurement, measured, resample
from dpmc.experiments.verdicts.evidence import (
    Evidence,
    NotRunError,
    Rule,
    of_variant,
    select,
    words,
)
from dpmc.experiments.verdicts.kinds import Cell, kind
from dpmc.types import UNAVAILABLE, DpmcError

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
    standard error of the printed median is that of a Gaussian distribution with these
    quartiles, ``1.2533 (q3 - q1) / 1.349 / sqrt(count)``. Of a median alone nothing is
    known: it is taken to be as uncertain as the measured median.
    """
    rows, name = _measurable(rule, evidence, variant)
    copies = resample([rows], rule["metric"], "median", evidence.rng, evidence.resamples)[0]
    measurement = measured(name, copies, rows, log=False)
    printed, size = rule["printed"], rule.get("count", len(rows))
    if not isinstance(printed, list):
        return [replace(measurement, limit_se=measurement.se)]
    spread = (printed[2] - printed[0]) / 1.349
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
    degrees of freedom, and that of a half-width is about itself over ``sqrt(2 (M - 1))``.
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
    measurement = measured(name, copies, rows, log=False)
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
    copies = resample([rows], rule["metric"], "mean", evidence.rng, evidence.resamples)[0]
    measurement = measured(name, copies, rows, log=False)
    printed, count = rule["printed"], int(rule["count"])
    if count == 0:
        return [replace(measurement, se=0.0, runs=0) if len(rows) == 1 else measurement]
    if not isinstance(printed, list):
        limit_se = measurement.se * math.sqrt(measurement.runs / count)
        return [replace(measurement, limit_se=limit_se)]
    limit_se = printed[1] / math.sqrt(count)
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
    return [Measurement(words(rule["where"]), value, 0.0, 0, log=False)]


def curve_rows(rule: Rule, evidence: Evidence) -> pd.DataFrame:
    """Return the accounting curves that a rule names.

    Raises
    ------
    NotRunError
        If the run has none of this name.
    """
    if rule["curve"] not in evidence.curves:
        raise NotRunError(f"not in this run: the curve {rule['curve']}")
    return evidence.curves[rule["curve"]]


def _measurable(rule: Rule, evidence: Evidence, variant: str) -> tuple[pd.DataFrame, str]:
    """Return the runs that a cell of print is about and that have its metric, and its name."""
    where = rule["where"]
    rows = of_variant(select(evidence.metrics, where), variant, where)
    # A count of data that cannot be had is 0, not NaN.
    usable = rows[rule["metric"]].notna() & ~rows["status"].astype(str).str.startswith(UNAVAILABLE)
    if not usable.to_numpy().any():
        raise NotRunError(f"not in this run: {rule['metric']} of {words(where)}")
    name = words({key: value for key, value in where.items() if key != "experiment"})
    return rows[usable], name


def _quantile(rule: Rule, count: int) -> float:
    return float(stdtrit(max(count - 1, 1), 0.5 + rule["confidence"] / 2))
