"""Statistics of groups of runs and their uncertainty over replicates."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from dpmc.types import Array
from dpmc_papers.verdicts.scales import PLAIN, Scale

# Ends of an interval on a scale, each wrong with a given probability at most.
Bounds = Callable[[float], tuple[float, float]]


@dataclass(frozen=True)
class Measurement:
    """One quantity at one setting.

    Parameters
    ----------
    setting : str
        In words, for the reason.
    estimate : float
    se : float
        Bootstrap standard error on the scale; 0 for an exact value, NaN where it is not defined.
    runs : int
        Replicates it rests on; 0 for an exact value.
    scale : Scale
        On which the estimate is compared with limits.
    limit_se : float
        Standard error of the limits themselves on the scale, where they come from printed runs.
    bounds : callable, optional
        Ends of an interval on the scale, by the error rate of each; by default those of Student.
    """

    setting: str
    estimate: float
    se: float
    runs: int
    scale: Scale
    limit_se: float = 0.0
    bounds: Bounds | None = None

    def slack(self, level: float) -> tuple[float, float]:
        """How far the truth may be below and above the estimate, on the scale.

        Each is exceeded with probability `level` at most, the error of the limits included; it is
        infinite where that is not known.
        """
        if self.runs == 0:
            return 0.0, 0.0
        quantile, value = student(self.runs, level), self.scale.of(self.estimate)
        below = above = quantile * self.se
        if self.bounds is not None:
            low, high = self.bounds(level)
            below, above = value - low, high - value
        sides = [math.hypot(side, quantile * self.limit_se) for side in (below, above)]
        known = [side if math.isfinite(value) and side < math.inf else math.inf for side in sides]
        return known[0], known[1]

    @property
    def natural_se(self) -> float:
        """Standard error of the estimate itself, off its scale."""
        slope = self.scale.slope(self.estimate)
        return self.se / slope if slope > 0 and math.isfinite(self.estimate) else math.nan


def student(runs: int, level: float) -> float:
    """One-sided Student quantile of `runs` replicates at a level."""
    return float(stdtrit(runs - 1, 1 - level)) if runs > 1 else math.inf


def measured(name: str, estimates: Array, rows: pd.DataFrame, scale: Scale = PLAIN) -> Measurement:
    """Turn an estimate that is followed by its bootstrap copies into a measurement.

    `name` is the setting in words; `rows` are the runs, for the number of replicates; the standard
    error is taken on `scale`. It is not defined where the estimate or a copy is infinite there.
    """
    on_scale = scale(estimates)
    copies = on_scale[1:]
    copies = copies[~np.isnan(copies)]  # a resample may miss a group
    runs = replicates_of(rows)
    defined = math.isfinite(on_scale[0]) and bool(np.isfinite(copies).all())
    se = float(np.std(copies, ddof=1)) if runs > 1 and len(copies) > 1 and defined else math.nan
    se *= math.sqrt(runs / (runs - 1)) if runs > 1 else 1.0  # resamples of few runs vary less
    return Measurement(name, float(estimates[0]), se, runs, scale)


def quotient(top: Array, bottom: Array) -> Array:
    """Ratios of estimates and of their copies; anything over zero is infinite, also zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.asarray(top / bottom)
    return np.where((top == 0) & (bottom == 0), math.inf, ratios)


def replicates_of(rows: pd.DataFrame) -> int:
    """Number of replicates there that are."""
    return len(np.unique(rows["replicate"].to_numpy()))


def resample(
    groups: Sequence[pd.DataFrame],
    metric: str,
    statistic: str,
    rng: np.random.Generator,
    resamples: int,
) -> list[Array]:
    """Compute a statistic of groups of runs, and of joint resamples of their replicates.

    Parameters
    ----------
    groups : sequence of pandas.DataFrame
        Rows with columns `metric` and ``replicate``, and ``mmd`` where runs are ranked by
        it; none empty.
    metric : str
    statistic : {"median", "mean", "max", "sd", "iqr", "of_median_run"}
        The last is the metric of the run of rank n // 2 by MMD.
    rng : numpy.random.Generator
    resamples : int

    Returns
    -------
    list of ndarray of shape (1 + resamples,)
        For each group, its statistic and then the bootstrap copies.
    """
    replicates = np.unique(np.concatenate([group["replicate"].to_numpy() for group in groups]))
    size = (resamples, len(replicates))
    drawn = rng.integers(len(replicates), size=size)
    resampled = np.vstack([np.arange(len(replicates)), drawn])
    results = []
    for group in groups:
        values = _resampled(_by_replicate(group, metric, replicates), resampled)
        orders = values
        if statistic == "of_median_run":
            orders = _resampled(_by_replicate(group, "mmd", replicates), resampled)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a resample may miss a group
            results.append(STATISTICS[statistic](values, orders))
    return results


def _resampled(matrix: Array, resampled: NDArray[np.int64]) -> Array:
    """Runs of each resample of replicates, in a row."""
    return matrix.take(resampled, axis=0).reshape(len(resampled), -1)


def _by_replicate(group: pd.DataFrame, metric: str, replicates: Array) -> Array:
    """Metric, shape (replicates, most runs of one replicate), padded with NaN."""
    codes = np.searchsorted(replicates, group["replicate"].to_numpy())
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    columns = np.arange(len(codes)) - np.searchsorted(codes, codes)
    matrix = np.full((len(replicates), int(columns.max()) + 1), math.nan)
    matrix[codes, columns] = group[metric].to_numpy(float)[order]
    return matrix


def _median(values: Array) -> Array:
    """Median of each row, NaN left out; `numpy.nanmedian` takes 50 times longer."""
    ranked = np.sort(values, axis=1)  # NaN comes last
    if not np.isnan(ranked[:, -1]).any():
        size = values.shape[1]
        whole: Array = (ranked[:, (size - 1) // 2] + ranked[:, size // 2]) / 2
        return whole
    present = np.sum(~np.isnan(values), axis=1)
    rows = np.arange(len(values))
    low, high = np.maximum(present - 1, 0) // 2, present // 2
    result: Array = (ranked[rows, low] + ranked[rows, high]) / 2
    return result


def _mean(values: Array) -> Array:
    """Mean of each row, NaN left out."""
    found: Array = values.mean(axis=1)
    return np.nanmean(values, axis=1) if np.isnan(found).any() else found


def _iqr(values: Array) -> Array:
    """Interquartile range of each row, NaN left out."""
    ranked = np.sort(values, axis=1)
    last = np.maximum(np.sum(~np.isnan(values), axis=1) - 1, 0)
    rows = np.arange(len(values))
    ends = []
    for share in (0.25, 0.75):
        low = np.floor(share * last).astype(int)
        part = share * last - low
        high = np.minimum(low + 1, last)
        ends.append((1 - part) * ranked[rows, low] + part * ranked[rows, high])
    result: Array = ends[1] - ends[0]
    return result


def _of_median_run(values: Array, orders: Array) -> Array:
    """Return `values` of the run of rank n // 2 by MMD: the one that Figure 2 shows."""
    ranked = np.argsort(orders, axis=1)  # NaN comes last
    present = np.sum(~np.isnan(orders), axis=1)
    column = np.take_along_axis(ranked, (present // 2)[:, None], axis=1)
    result: Array = np.take_along_axis(values, column, axis=1)[:, 0]
    return result


STATISTICS: dict[str, Callable[[Array, Array], Array]] = {
    "median": lambda v, _: _median(v),
    "mean": lambda v, _: _mean(v),
    "max": lambda v, _: np.nanmax(v, axis=1),
    "sd": lambda v, _: np.nanstd(v, axis=1, ddof=1),
    "iqr": lambda v, _: _iqr(v),
    "of_median_run": _of_median_run,
}
