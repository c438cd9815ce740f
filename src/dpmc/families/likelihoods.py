"""Likelihoods of regressions by the general search, each a function of a row.

A row has its scaled features, the constant among them, then the place of its group and its weight
where there are such, an offset where the likelihood takes one, further columns, and the response.
Coefficients are standard normal times `PRIOR`, in units of the columns.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import modelling
from dpmc.autodiff.tracing import where
from dpmc.families.intercepts import SEARCH_SD, Exchangeable
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
from dpmc.modelling import ParametricModel
from dpmc.models import dot
from dpmc.priors import Prior, log_sigmoid, normal
from dpmc.types import Array

# Standard deviations of a coefficient of scaled features, and of the logarithm of a shape.
PRIOR, LOG_SHAPE = 2.5, 3.0
FIRST_CUT, LOG_GAP = 10.0, 1.0


def softplus(u: Any) -> Any:
    """Log(1 + exp(u)), without an overflow."""
    return -log_sigmoid(-u)


def _predictor(p: Any, row: Any) -> Any:
    return dot(p.beta, row) + row[len(p.beta)]


def _negative_binomial(p: Any, row: Any) -> Any:
    eta, y = _predictor(p, row), row[-1]
    # The variance is the mean plus its square over this size.
    log_size = -p.log_dispersion
    size = math.exp(log_size)
    return (
        math.lgamma(y + size)
        - math.lgamma(size)
        + y * (eta - log_size)
        - (y + size) * softplus(eta - log_size)
    )


def _binomial(p: Any, row: Any) -> Any:
    eta, trials, y = _predictor(p, row), row[-2], row[-1]
    return y * eta - trials * softplus(eta)


def _gamma(p: Any, row: Any) -> Any:
    eta, y = _predictor(p, row), row[-1]
    shape = math.exp(p.log_shape)
    log_ratio = math.log(y) - eta
    return shape * (p.log_shape + log_ratio - math.exp(log_ratio)) - math.lgamma(shape)


def _weibull(p: Any, row: Any) -> Any:
    eta, event, y = _predictor(p, row), row[-2], row[-1]
    z = (math.log(y) - eta) * math.exp(-p.log_sigma)
    return event * (z - p.log_sigma) - math.exp(z)


def _multinomial(p: Any, row: Any) -> Any:
    count = len(row) - 1
    y, classes = row[-1], len(p.beta) // count
    etas = [dot(p.beta[k * count : (k + 1) * count], row) for k in range(classes)]
    largest = max(0.0, *etas)
    total = math.exp(-largest)
    chosen: Any = 0.0
    for k, eta in enumerate(etas):
        total = total + math.exp(eta - largest)
        chosen = where(y == k + 1, eta, chosen)
    return chosen - largest - math.log(total)


def _ordinal(p: Any, row: Any) -> Any:
    # The first threshold and the mean of intercepts of groups are one number.
    y, cut = row[-1], (0.0 if hasattr(p, "levels") else p.cut) - _predictor(p, row)
    found = log_sigmoid(cut)
    for k, log_gap in enumerate(p.log_gaps):
        gap = math.exp(log_gap)
        between = log_sigmoid(cut + gap) + log_sigmoid(-cut) + math.log(-math.expm1(-gap))
        found = where(y == k + 1, between, found)
        cut = cut + gap
    return where(y == len(p.log_gaps) + 1, log_sigmoid(-cut), found)


def _linear(p: Any, row: Any) -> Any:
    z = (row[-1] - _predictor(p, row)) * math.exp(-p.log_sigma)
    return -p.log_sigma - 0.5 * z * z


def _student_t(p: Any, row: Any, freedom: float = 4.0) -> Any:
    z = (row[-1] - _predictor(p, row)) * math.exp(-p.log_sigma)
    return -p.log_sigma - 0.5 * (freedom + 1) * math.log1p(z * z / freedom)


def _logistic(p: Any, row: Any) -> Any:
    eta = _predictor(p, row)
    return row[-1] * eta - softplus(eta)


def _poisson(p: Any, row: Any) -> Any:
    eta = _predictor(p, row)
    return row[-1] * eta - math.exp(eta)


def _behind(function: Callable[..., Any], first: int, weighted: bool) -> Any:
    """Likelihood of rows with a group, or a weight, behind their features."""

    def of_row(p: Any, row: Any) -> Any:
        grouped = hasattr(p, "levels")
        rest = row[first + grouped + weighted :]
        if grouped:
            code = row[first]
            level = sum(where(code == k, one, 0.0) for k, one in enumerate(p.levels))
            rest = (rest[0] + level, *rest[1:])
        found = function(p, row[:first] + rest)
        return row[first + grouped] * found if weighted else found

    return of_row


@dataclass(frozen=True)
class Likelihood:
    """A likelihood and what it needs.

    Parameters
    ----------
    function : callable
        Of parameters and a row, for `dpmc.model`; of a Student-t one with its degrees of freedom.
    examples : tuple of float
        Responses that there are.
    wanted : str
        What a response must be.
    allowed : callable
        Which responses are.
    shape : str
        Name of the logarithm of its shape, the last component of theta; empty where it has none.
    size : callable, optional
        Predictors at which responses, beside what is in the column before them, are typical.
    offset : bool
        Whether rows have one.
    """

    function: Callable[..., Any]
    examples: tuple[float, ...]
    wanted: str
    allowed: Callable[[Array], Any]
    shape: str = ""
    size: Callable[[Array, Array], Array] | None = None
    offset: bool = True


def _number(y: Array) -> Any:
    return y == y


def _flag(y: Array) -> Any:
    return (y == 0) | (y == 1)


def _not_negative(y: Array) -> Any:
    return y >= 0


def _natural(y: Array) -> Any:
    return (y >= 0) & (y == np.floor(y))


def _positive(y: Array) -> Any:
    return y > 0


def _logarithm(y: Array, before: Array) -> Array:
    return np.asarray(np.log(y))


def _logarithm_of_count(y: Array, before: Array) -> Array:
    return np.asarray(np.log1p(y))


def _logit(y: Array, trials: Array) -> Array:
    return np.asarray(np.log((y + 0.5) / (trials - y + 0.5)))


CLASS, COUNT, POSITIVE = (0.0, 1.0, 2.0), (0.0, 1.0, 4.0), (0.3, 1.0, 4.0)
NUMBER = (-1.0, 0.0, 2.0)
# What stands before the responses, in rows that are made up.
BEFORE = {WEIBULL: [1.0, 0.0, 1.0, 1.0], BINOMIAL: [4.0, 5.0, 9.0]}
LIKELIHOODS: Mapping[str, Likelihood] = {
    NEGATIVE_BINOMIAL: Likelihood(
        _negative_binomial, COUNT, "a count", _natural, "log_dispersion", _logarithm_of_count
    ),
    BINOMIAL: Likelihood(_binomial, COUNT, "a count", _natural, "", _logit),
    GAMMA: Likelihood(_gamma, POSITIVE, "positive", _positive, "log_shape", _logarithm),
    WEIBULL: Likelihood(_weibull, POSITIVE, "positive", _positive, "log_sigma", _logarithm),
    MULTINOMIAL: Likelihood(_multinomial, CLASS, "a class 0, 1, ...", _natural, offset=False),
    ORDINAL: Likelihood(_ordinal, CLASS, "a class 0, 1, ...", _natural),
}
# Those with a search of their own, which knows neither groups nor weights.
OWN_SEARCH: Mapping[str, Likelihood] = {
    LINEAR: Likelihood(_linear, NUMBER, "a number", _number, "log_sigma"),
    STUDENT_T: Likelihood(_student_t, NUMBER, "a number", _number, "log_sigma"),
    LOGISTIC: Likelihood(_logistic, (0.0, 1.0), "0 or 1", _flag),
    POISSON: Likelihood(_poisson, COUNT, "at least 0", _not_negative, "", _logarithm_of_count),
}
ALL: Mapping[str, Likelihood] = {**OWN_SEARCH, **LIKELIHOODS}


def model_of(
    name: str,
    num_features: int,
    classes: int = 0,
    *,
    groups: tuple[int, float] = (0, 0.0),
    weighted: bool = False,
    freedom: float = 4.0,
    prior_sd: float = PRIOR,
) -> ParametricModel:
    """Model of responses.

    Parameters
    ----------
    name : str
        One of `ALL`.
    num_features : int
        Scaled columns, the constant among them.
    classes : int
        Of responses; 0 where these are numbers.
    groups : (int, float)
        How many groups of rows have an intercept of their own, and the prior standard deviation of
        the mean of these.
    weighted : bool
        Whether rows have a weight.
    freedom : float
        Degrees of freedom of a Student-t distribution.
    prior_sd : float
        Of each coefficient.
    """
    likelihood, blocks = ALL[name], classes - 1 if name == MULTINOMIAL else 1
    priors: dict[str, Prior] = {"beta": normal(0, prior_sd, num_features * blocks)}
    if groups[0]:
        real = priors["beta"]
        priors["levels"] = Exchangeable(
            real.support, real.log_density, groups[0], mean_sd=groups[1], sd=SEARCH_SD * PRIOR
        )
    if name == ORDINAL:
        priors |= {} if groups[0] else {"cut": normal(0, FIRST_CUT)}
        priors |= {"log_gaps": normal(0, LOG_GAP, classes - 2)}
    elif likelihood.shape:
        priors |= {likelihood.shape: normal(0, LOG_SHAPE)}
    function = likelihood.function
    if name == STUDENT_T:
        function = functools.partial(function, freedom=freedom)
    if groups[0] or weighted:
        function = _behind(function, num_features, weighted)
    rng = np.random.default_rng(20260101)
    responses = np.resize(likelihood.examples, 48)
    others = [np.arange(48.0) % groups[0]] if groups[0] else []
    others += [np.resize([0.5, 1.0, 2.0], 48)] if weighted else []
    others += [np.zeros(48)] if likelihood.offset else []
    others += [np.resize(BEFORE[name], 48)] if name in BEFORE else []
    rows = np.column_stack([rng.standard_normal((48, num_features)), *others, responses])
    return modelling.model(
        function, priors, num_columns=rows.shape[1], name=name, example_rows=rows
    )
