"""Shares of responses between quantiles of a model, released: about those that the model says.

A row has the probabilities, under the model, of responses below its own and of those up to its own.
It counts for the bins between these two ends by the part of the way that lies in each: as a whole
in one bin where responses are numbers, in several where they are counts or classes, and as what is
still possible where a time is censored. Under the model the expected share of a bin is its width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpmc.automatic.purse import Purse
from dpmc.fits.check import Check
from dpmc.fits.predictive import (
    BINOMIAL,
    GAMMA,
    LINEAR,
    LOGISTIC,
    MULTINOMIAL,
    NEGATIVE_BINOMIAL,
    ORDINAL,
    POISSON,
    STUDENT_T,
    WEIBULL,
)
from dpmc.privacy.clipped import Clipped, row_histogram
from dpmc.types import Array, Neighbours

# Probabilities between which rows are counted.
EDGES = np.array([0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0])
# Probabilities of fewer responses, and of at most as many, given a predictor and a row's last
# columns; behind them logarithms of shapes, and degrees of freedom.
Ends = Callable[[Array, Array, Array, float], tuple[Array, Array]]


def _of_counts(law: Any, y: Array, *parameters: Any) -> tuple[Array, Array]:
    return law.cdf(y - 1, *parameters), law.cdf(y, *parameters)


def _linear(eta: Array, rows: Array, shape: Array, freedom: float) -> tuple[Array, Array]:
    from scipy.special import ndtr

    below = ndtr((rows[:, -1] - eta) * np.exp(-shape[0]))
    return below, below


def _student_t(eta: Array, rows: Array, shape: Array, freedom: float) -> tuple[Array, Array]:
    from scipy.special import stdtr

    below = stdtr(freedom, (rows[:, -1] - eta) * np.exp(-shape[0]))
    return below, below


def _logistic(eta: Array, rows: Array, shape: Array, freedom: float) -> tuple[Array, Array]:
    from scipy.special import expit

    none, y = expit(-eta), rows[:, -1]
    return np.where(y == 1, none, 0.0), np.where(y == 1, 1.0, none)


def _poisson(eta: Array, rows: Array, shape: Array, freedom: float) -> tuple[Array, Array]:
    from scipy.stats import poisson

    return _of_counts(poisson, rows[:, -1], np.exp(eta))


def _negative_binomial(
    eta: Array, rows: Array, shape: Array, freedom: float
) -> tuple[Array, Array]:
    from scipy.special import expit
    from scipy.stats import nbinom

    return _of_counts(nbinom, rows[:, -1], np.exp(-shape[0]), expit(-shape[0] - eta))


def _binomial(eta: Array, rows: Array, shape: Array, freedom: float) -> tuple[Array, Array]:
    from scipy.special import expit
    from scipy.stats import binom

    return _of_counts(binom, rows[:, -1], rows[:, -2], expit(eta))


def _gamma(eta: Array, rows: Array, shape: Array, freedom: float) -> tuple[Array, Array]:
    from scipy.special import gammainc

    size = np.exp(shape[0])
    below = gammainc(size, size * rows[:, -1] * np.exp(-eta))
    return below, below


def _weibull(eta: Array, rows: Array, shape: Array, freedom: float) -> tuple[Array, Array]:
    below = -np.expm1(-np.exp((np.log(rows[:, -1]) - eta) * np.exp(-shape[0])))
    return below, np.where(rows[:, -2] == 1, below, 1.0)


def _multinomial(eta: Array, rows: Array, shape: Array, freedom: float) -> tuple[Array, Array]:
    from scipy.special import softmax

    return _of_classes(softmax(np.column_stack([np.zeros(len(eta)), eta]), axis=1), rows)


def _ordinal(eta: Array, rows: Array, shape: Array, freedom: float) -> tuple[Array, Array]:
    from scipy.special import expit

    cuts = shape[0] + np.append(0.0, np.exp(shape[1:]).cumsum())
    below = expit(cuts - eta[:, None])
    return _of_classes(np.diff(below, axis=1, prepend=0.0, append=1.0), rows)


def _of_classes(chances: Array, rows: Array) -> tuple[Array, Array]:
    ends = np.column_stack([np.zeros(len(rows)), chances.cumsum(axis=1)])
    place, each = rows[:, -1].astype(int), np.arange(len(rows))
    return ends[each, place], ends[each, place + 1]


LAWS: Mapping[str, Ends] = {
    LINEAR: _linear,
    STUDENT_T: _student_t,
    LOGISTIC: _logistic,
    POISSON: _poisson,
    NEGATIVE_BINOMIAL: _negative_binomial,
    BINOMIAL: _binomial,
    GAMMA: _gamma,
    WEIBULL: _weibull,
    MULTINOMIAL: _multinomial,
    ORDINAL: _ordinal,
}


def counted(low: Array, high: Array, neighbours: Neighbours) -> Clipped[Array]:
    """Rows in each bin between `EDGES`, those whose ends are no probabilities in none.

    A row counts 1 in all, so that its counts are no longer than that.
    """
    known = (low >= 0) & (low <= high) & (high <= 1)
    low, high = low[known, None], high[known, None]
    first, last = EDGES[:-1], EDGES[1:]
    inside = np.minimum(high, last) - np.maximum(low, first)
    with np.errstate(all="ignore"):
        parts = np.maximum(inside, 0.0) / (high - low)
    # Ends that are one, or next to it, are in the bin that they are in.
    at = (low >= first) & ((low < last) | (last == 1))
    parts = np.where(high - low > 1e-9, parts, at)
    parts /= np.maximum(parts.sum(axis=1, keepdims=True), 1.0)
    return row_histogram(parts.sum(axis=0), neighbours)


def checked(counts: Clipped[Array], purse: Purse, displaced: float, num_rows: float) -> list[Check]:
    """Shares of rows in each bin beside those of the model, for what is left of a purse.

    Parameters
    ----------
    counts : Clipped
        Private.
    purse : Purse
    displaced : float
        Squared displacement of the parameters by noise, in deviations that rows leave: it moves a
        count by no more than that many deviations of the count.
    num_rows : float
        As users may know it.
    """
    noisy, noise = purse.total(counts, purse.left)
    number = max(float(noisy.sum()), 0.1 * num_rows)
    found = []
    for count, low, high in zip(noisy.tolist(), EDGES[:-1], EDGES[1:], strict=True):
        width = high - low
        variance = noise**2 + number * width * (1 - width) * (1 + displaced)
        what = f"responses from the {low:.0%} to the {high:.0%} quantile"
        found.append(Check(what, count / number, math.sqrt(variance) / number, width))
    return found
