"""Regressions through the automatic method: no bounds, no tuning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from dpmc import checks, progress_bar
from dpmc.automatic.glm import run
from dpmc.families import _arrays
from dpmc.families._formula import by_formula
from dpmc.fits import Fit
from dpmc.fits.predictive import LINEAR, LOGISTIC, POISSON, STUDENT_T
from dpmc.fitting import AUTOMATIC, NUM_DRAWS, checked, chosen, fit
from dpmc.formulas.design import DROP
from dpmc.mcmc import fit as chains
from dpmc.models import linear, logistic, poisson, student_t
from dpmc.privacy.ledger import Noise
from dpmc.types import Array, DpmcError, InvalidRows, Model, check_delta, check_epsilon

MODELS: Mapping[str, Any] = {
    LINEAR: linear,
    STUDENT_T: student_t,
    LOGISTIC: logistic,
    POISSON: poisson,
}
SCALED = (LINEAR, STUDENT_T)
COVARIANCES = "auto", "robust"
# Prior standard deviation of each coefficient, for a method of one's own choice.
PRIOR_SD = 10.0
# What responses must be, where not every number is one.
RESPONSES: Mapping[str, tuple[str, Callable[[Array], Any]]] = {
    LOGISTIC: ("0 or 1", lambda y: (y == 0) | (y == 1)),
    POISSON: ("at least 0", lambda y: y >= 0),
}


@by_formula
def regression(
    x: Any,
    y: Any,
    *,
    epsilon: float,
    delta: float,
    likelihood: str = LINEAR,
    intercept: bool = True,
    prior_sd: float | Sequence[float] | None = None,
    degrees_of_freedom: float = 4.0,
    covariance: str = "auto",
    method: Any = AUTOMATIC,
    num_chains: int = 4,
    num_draws: int | None = None,
    start: Array | None = None,
    seed: int | None = None,
    noise: Noise | None = None,
    progress: bool = True,
    invalid_rows: InvalidRows = "refuse",
    names: Sequence[str] = (),
    ranges: Mapping[str, tuple[float, float]] | None = None,
    missing: Literal["drop"] | Mapping[str, Any] = "drop",
    **params: Any,
) -> Fit:
    """Posterior of the coefficients of a regression under a privacy budget.

    Parameters
    ----------
    x : array_like of shape (n, p), data frame or str
        Features, private, in any units: their location and scale are released with noise. Or a
        formula such as ``"y ~ age + C(sex, levels=['f', 'm'])"``, whose columns depend on levels
        and ranges that are declared, and on no row (docs/formulas.md).
    y : array_like of shape (n,) or table
        Responses, private: 0 and 1 for ``"logistic"``, counts for ``"poisson"``. A row with another
        one is invalid: see `invalid_rows`. Behind a formula its table: a data frame, a query of
        DuckDB, Dask or polars, or the path of a .csv, .tsv, .parquet or .feather file.
    epsilon, delta : float
        The budget under substitution of one row.
    likelihood : {"linear", "student_t", "logistic", "poisson"}
        Of a response: normal with unknown standard deviation; Student-t with unknown scale;
        Bernoulli with the logit, or Poisson with the logarithm, as link.
    intercept : bool
        Whether a constant comes before the features.
    prior_sd : float or sequence of float, optional
        Of each coefficient, in units of the rows: normal around 0. By default the prior is in
        units of the columns: a slope times a typical difference between two rows has a standard
        deviation of 2.5, for responses with a scale of 2.5 typical differences between them; the
        linear predictor of a typical row one of 10. `Fit.plan` has this prior.
    degrees_of_freedom : float
        Of the Student-t distribution.
    covariance : {"auto", "robust"}
        Whether widths follow the variance that the likelihood says responses have, times a factor
        above 1 where residuals clearly vary more, or the covariance of gradients, for which 5 % of
        the budget is spent. A remark tells where residuals do not vary as the likelihood says.
    method, num_chains, num_draws, start, seed, noise, progress, invalid_rows
        As of `dpmc.fit`.
    names : sequence of str
        Names of the coefficients, that of the intercept first; by default those of the columns
        of a data frame, which must be texts that are no numbers, or integers.
    ranges : mapping of str to (float, float), optional
        Public ranges of columns of a formula. Numbers beyond are taken to their ends. ``center``,
        ``scale``, ``poly`` and splines take means, knots and the rest from them.
    missing : "drop" or mapping of str to number or text
        What a formula takes for an entry that is missing or impossible, a level that is not
        declared say, by column. Other rows with one count as nothing: `invalid_rows` is ``"zero"``.
    **params
        Of a named method, as of `dpmc.fit`.

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
    automatic = chosen(method, params, regression) is None
    if ranges is not None or missing != DROP:
        raise DpmcError("`ranges` and `missing` must be left out without a formula, got some")
    checks.one_of("likelihood", likelihood, tuple(MODELS))
    checks.flag("intercept", intercept)
    checks.one_of("covariance", covariance, COVARIANCES)
    possible = partial(_possible, likelihood, invalid_rows)
    dataset, columns = _arrays.rows_of(x, y, invalid_rows, names, possible)
    coefficients = (*(("intercept",) if intercept else ()), *columns)
    scale = ("log_sigma",) if likelihood in SCALED else ()
    named = (*_arrays.named(names, coefficients, scale), *scale)
    sds: Any = prior_sd
    several = np.ndim(sds) > 0
    one_sd = PRIOR_SD if prior_sd is None or several else sds
    model, predictive = built(
        likelihood, len(columns), intercept, prior_sd=one_sd, freedom=degrees_of_freedom
    )
    if automatic:
        sds = None if prior_sd is None else _deviations(prior_sd, len(coefficients))
        count, seed, noise = checked(
            num_chains, NUM_DRAWS if num_draws is None else num_draws, seed, noise
        )
        check_epsilon(epsilon)
        delta = check_delta(delta, "the automatic method")
        point = None
        if start is not None:
            points = checks.real_array("start", start)
            point = chains.start_points(points, model.dim, 1)[0]
        with progress_bar.shown(progress, "% of the budget") as report:
            fitted = run.fit(
                dataset,
                likelihood,
                float(epsilon),
                delta,
                intercept=intercept,
                prior_sd=sds,
                freedom=float(degrees_of_freedom),
                robust=covariance == "robust",
                num_chains=count[0],
                num_draws=count[1],
                start=point,
                seed=seed,
                noise=noise,
                names=named,
                progress=report,
            )
        fitted = _arrays.finished(fitted, fitted.remarks, dataset.num_rows)
    else:
        if several:
            raise DpmcError(f"`prior_sd` must be one number beside a `method`, got {prior_sd!r}")
        if covariance != "auto":
            raise DpmcError(f"`covariance` must be 'auto' beside a `method`, got {covariance!r}")
        fitted = fit(
            model,
            dataset,
            epsilon=epsilon,
            delta=delta,
            method=method,
            num_chains=num_chains,
            num_draws=num_draws,
            start=start,
            seed=seed,
            noise=noise,
            progress=progress,
            names=named,
            **params,
        )
    told = _arrays.with_columns(predictive, x)
    return replace(fitted, plan=replace(fitted.plan, family="regression", likelihood=told))


def _deviations(prior_sd: Any, count: int) -> Array:
    """Standard deviations of coefficients, one for each."""
    checks.positive_scales("prior_sd", prior_sd)
    given = np.atleast_1d(np.asarray(prior_sd, dtype=np.float64))
    if len(given) not in (1, count):
        raise DpmcError(
            f"`prior_sd` must be one number, or {count}, one for each coefficient, got {len(given)}"
        )
    return np.broadcast_to(given, (count,)).copy()


def _possible(likelihood: str, invalid_rows: InvalidRows, y: Array) -> Array:
    """Responses, those that a likelihood has none of refused or marked as invalid."""
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
    """Model of a regression, and what its plan says of responses."""
    module = MODELS[likelihood]
    more = {"degrees_of_freedom": freedom} if likelihood == STUDENT_T else {}
    params = module.Params(num_features, intercept=intercept, prior_sd=prior_sd, **more)
    told = {"name": likelihood, "intercept": intercept, **more}
    return module.build(params), told
