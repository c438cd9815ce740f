"""Responses of new rows under the draws of a fit: the posterior predictive distribution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.types import Array, DpmcError, is_frame, labels

LINEAR, STUDENT_T, LOGISTIC, POISSON = "linear", "student_t", "logistic", "poisson"
NETWORK, MIXTURE = "network", "mixture"
# Largest rate of NumPy's counts: from 1e15 on they spread too widely, and beyond 1e18 there are
# none. A rounded normal number cannot be told from a count of skewness 1e-5.
LARGEST = 1e10


def responses(
    likelihood: Mapping[str, Any], draws: Array, x: Any, rng: np.random.Generator
) -> Array:
    """Response of each new row under each draw.

    Parameters
    ----------
    likelihood : mapping
        What a fit says of it in its plan: a ``name``, and what the name needs.
    draws : ndarray of shape (k, d)
        Of theta.
    x : array_like of shape (m, p) or int
        Features of new rows; of a mixture their number m.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (k, m), or (k, m, p) of a mixture
    """
    name = likelihood["name"]
    if name == MIXTURE:
        return _mixture(likelihood, draws, x, rng)
    rows = _in_order(likelihood, checks.real_array("x", x), x)
    if rows.ndim != 2:
        raise DpmcError(f"`x` must have shape (m, p), got {rows.shape}")
    if not np.isfinite(rows).all():
        raise DpmcError("`x` must hold finite numbers only, got others")
    if name == NETWORK:
        return _network(likelihood, draws, rows, rng)
    given = rows.shape[1]
    if likelihood["intercept"]:
        rows = np.column_stack([np.ones(len(rows)), rows])
    scaled = name in (LINEAR, STUDENT_T)
    num_coefficients = draws.shape[1] - scaled
    if rows.shape[1] != num_coefficients:
        wanted = num_coefficients - bool(likelihood["intercept"])
        raise DpmcError(f"`x` must have {wanted} columns, got {given}")
    predictor = draws[:, :num_coefficients] @ rows.T
    scale = np.exp(draws[:, -1:]) if scaled else np.empty(0)
    return _REGRESSIONS[name](predictor, scale, likelihood, rng)


def _in_order(likelihood: Mapping[str, Any], rows: Array, x: Any) -> Array:
    """Columns of a data frame as they were fitted, by their names."""
    fitted = likelihood.get("columns")
    if fitted is None or not is_frame(x):
        return rows
    given = [str(label) for label in labels(x)]
    missing = [label for label in fitted if label not in given]
    if missing:
        raise DpmcError(f"`x` must have the column {missing[0]!r} of the fit, and has not")
    return rows[:, [given.index(label) for label in fitted]]


def _linear(
    predictor: Array, scale: Array, likelihood: Mapping[str, Any], rng: np.random.Generator
) -> Array:
    return predictor + scale * rng.standard_normal(predictor.shape)


def _student_t(
    predictor: Array, scale: Array, likelihood: Mapping[str, Any], rng: np.random.Generator
) -> Array:
    return predictor + scale * rng.standard_t(likelihood["degrees_of_freedom"], predictor.shape)


def _logistic(
    predictor: Array, scale: Array, likelihood: Mapping[str, Any], rng: np.random.Generator
) -> Array:
    ones: Array = (rng.logistic(size=predictor.shape) < predictor).astype(np.float64)
    return ones


def _poisson(
    predictor: Array, scale: Array, likelihood: Mapping[str, Any], rng: np.random.Generator
) -> Array:
    """Counts; infinite ones where a rate is beyond floats, NaN where it is none."""
    with np.errstate(over="ignore"):
        rates = np.exp(predictor)
    counts: Array = rng.poisson(np.where(rates <= LARGEST, rates, 0.0)).astype(np.float64)
    large = (rates > LARGEST) & np.isfinite(rates)
    if large.any():
        counts[large] = np.round(rng.normal(rates[large], np.sqrt(rates[large])))
    counts[~np.isfinite(rates)] = rates[~np.isfinite(rates)]
    return counts


_Regression = Callable[[Array, Array, Mapping[str, Any], np.random.Generator], Array]
_REGRESSIONS: Mapping[str, _Regression] = {
    LINEAR: _linear,
    STUDENT_T: _student_t,
    LOGISTIC: _logistic,
    POISSON: _poisson,
}


def _network(
    likelihood: Mapping[str, Any], draws: Array, rows: Array, rng: np.random.Generator
) -> Array:
    """Outputs of networks with one hidden layer of rectified units, with noise.

    A draw holds the weights into each hidden unit, its bias last; the weights out of them, the
    bias last; and the logarithm of the standard deviation of the noise.
    """
    low, high = np.asarray(likelihood["x_low"]), np.asarray(likelihood["x_high"])
    hidden, width = int(likelihood["hidden"]), len(low) + 1
    if rows.shape[1] != width - 1:
        raise DpmcError(f"`x` must have {width - 1} columns, got {rows.shape[1]}")
    inputs = np.column_stack([scaled_to_unit(rows, low, high), np.ones(len(rows))])
    outputs = np.empty((len(draws), len(rows)))
    for number, draw in enumerate(draws):
        inner, outer = draw[: hidden * width].reshape(hidden, width), draw[hidden * width : -1]
        active = np.maximum(inputs @ inner.T / np.sqrt(width), 0.0)
        outputs[number] = (active @ outer[:-1] + outer[-1]) / np.sqrt(hidden + 1)
    outputs += np.exp(draws[:, -1:]) * rng.standard_normal(outputs.shape)
    return scaled_back(outputs, likelihood["y_low"], likelihood["y_high"])


def _mixture(
    likelihood: Mapping[str, Any], draws: Array, num_rows: Any, rng: np.random.Generator
) -> Array:
    checks.at_least("x", num_rows, 1)
    weights = np.asarray(likelihood["weights"])
    means = draws.reshape(len(draws), len(weights), -1)
    which = rng.choice(len(weights), size=(len(draws), num_rows), p=weights)
    chosen = np.take_along_axis(means, which[:, :, None], axis=1)
    spread: Array = float(likelihood["sigma_x"]) * rng.standard_normal(chosen.shape)
    return chosen + spread


def scaled_to_unit(x: Array, low: Array | float, high: Array | float) -> Array:
    """Numbers of a public range on a scale on which the uniform one has variance 1."""
    scaled: Array = (x - (np.add(low, high) / 2)) * (np.sqrt(12) / np.subtract(high, low))
    return scaled


def scaled_back(x: Array, low: float, high: float) -> Array:
    """Numbers on the scale of a public range: the inverse of `scaled_to_unit`."""
    back: Array = x * ((high - low) / np.sqrt(12)) + (low + high) / 2
    return back
