"""Regressions through the automatic method: no bounds, no tuning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.families import _arrays
from dpmc.fits import Fit
from dpmc.fits.predictive import LINEAR, LOGISTIC, POISSON, STUDENT_T
from dpmc.fitting import fit
from dpmc.models import linear, logistic, poisson, student_t
from dpmc.types import Array, DpmcError, InvalidRows, Model

MODELS: Mapping[str, Any] = {
    LINEAR: linear,
    STUDENT_T: student_t,
    LOGISTIC: logistic,
    POISSON: poisson,
}
SCALED = (LINEAR, STUDENT_T)
# What responses must be, where not every number is one.
RESPONSES: Mapping[str, tuple[str, Callable[[Array], Any]]] = {
    LOGISTIC: ("0 or 1", lambda y: (y == 0) | (y == 1)),
    POISSON: ("at least 0", lambda y: y >= 0),
}


def regression(
    x: Any,
    y: Any,
    *,
    epsilon: float,
    delta: float,
    likelihood: str = LINEAR,
    intercept: bool = True,
    prior_sd: float = 10.0,
    degrees_of_freedom: float = 4.0,
    invalid_rows: InvalidRows = "refuse",
    names: Sequence[str] = (),
    **options: Any,
) -> Fit:
    """Return the posterior of the coefficients of a regression under a privacy budget.

    Parameters
    ----------
    x : array_like of shape (n, p) or data frame
        Features, private. Whatever scales they have, the prior is in their units.
    y : array_like of shape (n,)
        Responses, private: 0 and 1 for ``"logistic"``, counts for ``"poisson"``. A row with another
        one is invalid: see `invalid_rows`.
    epsilon, delta : float
        The budget under substitution of one row.
    likelihood : {"linear", "student_t", "logistic", "poisson"}
        Of a response: normal with unknown standard deviation; Student-t with unknown scale;
        Bernoulli with the logit, or Poisson with the logarithm, as link.
    intercept : bool
        Whether a constant comes before the features.
    prior_sd : float
        Of each coefficient: normal around 0.
    degrees_of_freedom : float
        Of the Student-t distribution.
    invalid_rows
        As of `dpmc.fit`.
    names : sequence of str
        Names of the coefficients, that of the intercept first; by default those of the columns
        of a data frame, which must be texts that are no numbers, or integers.
    **options
        Of `dpmc.fit`, such as ``num_draws``, ``seed`` or ``method``.

    Returns
    -------
    Fit
        With ``"linear"`` and ``"student_t"`` the last component is the logarithm of the standard
        deviation, or scale, of a response. `Fit.predict` draws responses of new rows.

    Raises
    ------
    DpmcError
        If an argument is refused, before any row is used.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(20_000, 2))
    >>> y = 1.0 + x @ [0.5, -1.0] + rng.normal(size=20_000)
    >>> fit = regression(x, y, epsilon=1, delta=1e-6, seed=1)
    >>> fit.names
    ('intercept', 'x1', 'x2', 'log_sigma')
    >>> fit.predict(np.zeros((3, 2)), seed=1).shape[1]
    3
    """
    checks.one_of("likelihood", likelihood, tuple(MODELS))
    checks.flag("intercept", intercept)
    possible = partial(_possible, likelihood, invalid_rows)
    dataset, columns = _arrays.rows_of(x, y, invalid_rows, names, possible)
    coefficients = (*(("intercept",) if intercept else ()), *columns)
    scale = ("log_sigma",) if likelihood in SCALED else ()
    named = _arrays.named(names, coefficients, scale)
    model, predictive = built(
        likelihood, len(columns), intercept, prior_sd=prior_sd, freedom=degrees_of_freedom
    )
    fitted = fit(model, dataset, epsilon=epsilon, delta=delta, names=(*named, *scale), **options)
    told = _arrays.with_columns(predictive, x)
    plan = {"family": "regression", **fitted.plan, "likelihood": told}
    return replace(fitted, plan=plan)


def _possible(likelihood: str, invalid_rows: InvalidRows, y: Array) -> Array:
    """Return responses, those that a likelihood has none of refused or marked as invalid.

    Raises
    ------
    DpmcError
        If there is one, and rows are not to count as zero; nothing is said of a value.
    """
    if likelihood not in RESPONSES:
        return y
    wanted, allowed = RESPONSES[likelihood]
    wrong = np.isfinite(y) & ~allowed(y)
    if not wrong.any():
        return y
    if invalid_rows != "zero":
        raise DpmcError(
            f"`y` must be {wanted} with likelihood {likelihood!r}, unless `invalid_rows` is "
            "'zero', got others"
        )
    return np.where(wrong, np.nan, y)


def built(
    likelihood: str, num_features: int, intercept: bool, *, prior_sd: float, freedom: float
) -> tuple[Model, dict[str, Any]]:
    """Return the model of a regression, and what its plan says of responses."""
    module = MODELS[likelihood]
    more = {"degrees_of_freedom": freedom} if likelihood == STUDENT_T else {}
    params = module.Params(num_features, intercept=intercept, prior_sd=prior_sd, **more)
    told = {"name": likelihood, "intercept": intercept, **more}
    return module.build(params), told
