"""Regressions through the automatic method: no bounds, no tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from dpmc import checks, progress_bar
from dpmc.automatic.glm import run
from dpmc.families import _arrays, _columns, general
from dpmc.families._columns import SCALED
from dpmc.families._formula import by_formula
from dpmc.families.likelihoods import LIKELIHOODS
from dpmc.fits import Fit
from dpmc.fits.predictive import (
    LINEAR,
    LOGISTIC,
    MULTINOMIAL,
    ORDINAL,
    POISSON,
    STUDENT_T,
)
from dpmc.fitting import AUTOMATIC, NUM_DRAWS, PERSONS, checked, chosen, fit, refuse_unit
from dpmc.formulas.design import DROP
from dpmc.mcmc import fit as chains
from dpmc.models import linear, logistic, poisson, student_t
from dpmc.privacy.ledger import Noise
from dpmc.rows.persons import Persons
from dpmc.shards.units import Column, column_of, without
from dpmc.types import (
    NEIGHBOURS,
    Array,
    Dataset,
    DpmcError,
    InvalidRows,
    Model,
    Neighbours,
    check_delta,
    check_epsilon,
    frames,
    is_real,
)

MODELS: Mapping[str, Any] = {
    LINEAR: linear,
    STUDENT_T: student_t,
    LOGISTIC: logistic,
    POISSON: poisson,
}
COVARIANCES = "auto", "robust"
# Prior standard deviation of each coefficient, for a method of one's own choice.
PRIOR_SD = 10.0


@by_formula
def regression(
    x: Any,
    y: Any,
    *,
    epsilon: float,
    delta: float,
    likelihood: str = LINEAR,
    offset: Any = None,
    exposure: Any = None,
    trials: Any = None,
    event: Any = None,
    weights: Any = None,
    group: Any = None,
    levels: Sequence[Any] | None = None,
    classes: int | None = None,
    intercept: bool = True,
    prior_sd: float | Sequence[float] | Mapping[str, float] | None = None,
    prior_mean: float | Sequence[float] | Mapping[str, float] | None = None,
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
    neighbours: Neighbours = "replace",
    ranges: Mapping[str, tuple[float, float]] | None = None,
    missing: Literal["drop"] | Mapping[str, Any] = "drop",
    unit: Any = None,
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
        Responses, private: 0 and 1 for ``"logistic"``; counts for ``"poisson"`` and
        ``"negative_binomial"``, or of successes for ``"binomial"``; positive for ``"gamma"`` and
        ``"weibull"``; classes 0, 1, ... for ``"multinomial"`` and ``"ordinal"``. A row with another
        one is invalid: see `invalid_rows`. Behind a formula its table: a data frame, a query of
        DuckDB, Dask or polars, or the path of a .csv, .tsv, .parquet or .feather file.
    epsilon, delta : float
        The budget, for one row or one `unit`.
    likelihood : str
        Of a response: ``"linear"``, normal with unknown standard deviation; ``"student_t"`` with
        unknown scale; ``"logistic"`` and ``"binomial"`` with the logit as link; with the logarithm
        as link ``"poisson"``, ``"negative_binomial"`` (variance ``mean + dispersion * mean**2``),
        ``"gamma"`` (variance ``mean**2 / shape``) and ``"weibull"``, of times whose logarithms
        spread by sigma; ``"multinomial"``, with coefficients of each class but the first;
        ``"ordinal"``, logistic with thresholds between classes. The first four
        of `dpmc.regression`, ``"linear"``, ``"student_t"``, ``"logistic"`` and ``"poisson"``, have
        a search of their own, the others, and all with `group` or `weights`, the general one of
        `dpmc.fit`.
    offset : array_like of shape (n,), optional
        Known part of the linear predictor of each row, private as the features are.
    exposure : array_like of shape (n,), optional
        Of counts, positive: time or population that each row counts in. Its logarithm is added to
        the offset.
    trials : array_like of shape (n,), optional
        Of ``"binomial"``: how many trials a response counts the successes of.
    event : array_like of shape (n,), optional
        Of ``"weibull"``: 1 where the time is that of an event, 0 where none had come until then.
    weights : array_like of shape (n,), optional
        At least 0: a row counts as so many like it. As private as the row, whose contribution is
        clipped with its weight.
    group : array_like of shape (n,), optional
        Level of each row, such as its clinic: those of a level share an intercept of their own,
        normal around that of all with a standard deviation that is unknown. In a formula
        ``(1 | C(clinic, levels=['a', 'b']))``.
    levels : sequence of str or number, optional
        Levels that there are; public.
    classes : int, optional
        Of ``"multinomial"`` and ``"ordinal"``: how many there are, at least 3; public.
    intercept : bool
        Whether a constant comes before the features.
    prior_sd : float, sequence of float or mapping of str to float, optional
        Of each coefficient, or of each by its name, in units of the rows: normal. By default the
        prior is in units of the columns: a slope times a typical difference between two rows has a
        standard deviation of 2.5, for responses with a scale of 2.5 typical differences between
        them; the linear predictor of a typical row one of 10. `Fit.plan` has this prior. Beside a
        `method` it is one number, by default 10. With
        `group` one more, ``"sd[group]"``: the scale of the half-normal prior of the standard
        deviation of intercepts, by default 2.5, or so many typical differences.
    prior_mean : float, sequence of float or mapping of str to float, optional
        Beside `prior_sd`, not for ``"multinomial"`` and ``"ordinal"``; 0 for what is not named.
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
    neighbours : {"replace", "add_remove"}
        As of `dpmc.fit`.
    ranges : mapping of str to (float, float), optional
        Public ranges of columns of a formula. Numbers beyond are taken to their ends. ``center``,
        ``scale``, ``poly`` and splines take means, knots and the rest from them.
    missing : "drop" or mapping of str to number or text
        What a formula takes for an entry that is missing or impossible, a level that is not
        declared say, by column. Other rows with one count as nothing: `invalid_rows` is ``"zero"``.
    unit : str or array_like of shape (n,), optional
        As of `dpmc.fit`: a column of the table, or of the data frame `x`, or identifiers.
    **params
        Of a named method, as of `dpmc.fit`.

    Returns
    -------
    Fit
        With ``"linear"``, ``"student_t"`` and ``"weibull"`` the last component is the logarithm
        of the standard deviation, or scale; with ``"gamma"`` and ``"negative_binomial"`` that of
        shape and dispersion; with ``"ordinal"`` the last ones are thresholds. With `group` there
        are the intercepts of all levels beside that of all, and the logarithm of their standard
        deviation, before it. `Fit.predict` has responses, means and probabilities of new rows.

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
    checks.one_of("likelihood", likelihood, (*MODELS, *LIKELIHOODS))
    checks.flag("intercept", intercept)
    checks.one_of("covariance", covariance, COVARIANCES)
    checks.positive("degrees_of_freedom", degrees_of_freedom)
    checks.one_of("neighbours", neighbours, tuple(NEIGHBOURS))
    group_name = getattr(group, "name", None) or "group"
    group, level_names = _columns.group_of(group, levels)
    shifted = offset is not None or exposure is not None
    own = likelihood in MODELS and group is None and weights is None
    # A model of its own has no offset, which a search of its own takes beside it.
    own = own and (automatic or not shifted or likelihood in SCALED)
    beside = {
        "offset": offset,
        "exposure": exposure,
        "trials": trials,
        "event": event,
        "group": group,
        "weights": weights,
    }
    _columns.check_beside(likelihood, beside, classes)
    if not own:
        _columns.check_general(
            likelihood, group is not None, method=method, start=start, prior_mean=prior_mean
        )
    if prior_mean is not None and (prior_sd is None or not automatic):
        raise DpmcError("`prior_mean` must come with `prior_sd`, and without a `method`")
    if not automatic:
        refuse_unit(unit)
    if isinstance(unit, str):
        x, identifiers = without(x, unit)
        unit = Column(unit, identifiers)
    frames.check_index("unit", unit, "x", x)
    behind = partial(_columns.behind, likelihood, invalid_rows, classes)
    hidden = neighbours == "add_remove"
    if hidden and unit is not None:
        raise DpmcError(PERSONS)
    hidden = hidden or unit is not None
    dataset, columns = _arrays.rows_of(x, y, invalid_rows, names, behind, beside, hidden)
    rows: Dataset | Persons = dataset
    if unit is not None:
        whose = column_of(unit)
        rows = Persons.of(dataset, whose.entries, whose.name)
    intercept = intercept and likelihood != ORDINAL
    coefficients = (*(("intercept",) if intercept else ()), *columns)
    grouped = tuple(f"{group_name}[{level}]" for level in level_names)
    spread = () if group is None else (f"sd[{group_name}]",)
    scale = _columns.others(likelihood, classes)
    others = (*grouped, *(f"log_{one}" for one in spread), *scale)
    named = coefficients = _arrays.named(names, coefficients, others)
    if likelihood == MULTINOMIAL and classes is not None:
        named = tuple(f"{name}[{k}]" for k in range(1, classes) for name in named)
    named = (*named, *others)
    point: Array | None = None
    if automatic:
        sds = means = None
        if prior_sd is not None:
            sds = _columns.of_coefficients("prior_sd", prior_sd, (*coefficients, *spread))
            checks.positive_scales("prior_sd", sds.tolist())
        if prior_mean is not None:
            means = _columns.of_coefficients("prior_mean", prior_mean, coefficients, 0.0)
        if start is not None:
            point = chains.start_points(checks.real_array("start", start), len(named), 1)[0]
        count, seed, noise = checked(
            num_chains, NUM_DRAWS if num_draws is None else num_draws, seed, noise
        )
        check_epsilon(epsilon)
        delta = check_delta(delta, "the automatic method")
    freedom = float(degrees_of_freedom)
    asked = general.Columns(
        likelihood,
        len(columns),
        intercept,
        classes=classes or 0,
        freedom=freedom,
        groups=len(grouped),
        weighted=weights is not None,
    )
    said: dict[str, Any] = {"name": likelihood, "intercept": intercept}
    said |= {} if classes is None else {"classes": int(classes)}
    said |= {} if likelihood != STUDENT_T else {"degrees_of_freedom": freedom}
    said |= {} if group is None else {"levels": list(level_names)}
    if not automatic:
        one_sd: Any = PRIOR_SD if prior_sd is None else prior_sd
        if not is_real(one_sd):
            raise DpmcError(f"`prior_sd` must be one number beside a `method`, got {one_sd!r}")
        if covariance != "auto":
            raise DpmcError(f"`covariance` must be 'auto' beside a `method`, got {covariance!r}")
        checks.positive("prior_sd", one_sd)
        units = asked.in_units()
        if own:
            model = built(likelihood, len(columns), intercept, prior_sd=one_sd, freedom=freedom)
        else:
            model = asked.model(prior_sd=one_sd)
            dataset = replace(dataset, x=units.rows(dataset.x, asked))
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
            neighbours=neighbours,
            **params,
        )
        if likelihood == ORDINAL and fitted.draws is not None:
            fitted = replace(fitted, draws=units.back(asked, fitted.draws))
        return _told(fitted, said, x, shifted)
    with progress_bar.shown(progress, "% of the budget") as report:
        shared: dict[str, Any] = {
            "prior_sd": sds,
            "prior_mean": means,
            "robust": covariance == "robust",
            "num_chains": count[0],
            "num_draws": count[1],
            "start": point,
            "seed": seed,
            "noise": noise,
            "names": named,
            "neighbours": neighbours,
            "progress": report,
        }
        if own:
            fitted = run.fit(
                rows,
                likelihood,
                float(epsilon),
                delta,
                intercept=intercept,
                offset=shifted and likelihood not in SCALED,
                freedom=freedom,
                **shared,
            )
        else:
            fitted = general.fit(rows, asked, float(epsilon), delta, **shared)
    fitted = _arrays.finished(fitted, fitted.remarks, fitted.plan.details["num_rows"])
    return _told(fitted, said, x, shifted)


def _told(fitted: Fit, likelihood: Mapping[str, Any], x: Any, shifted: bool) -> Fit:
    """Fit whose plan says how responses arise."""
    told = _arrays.with_columns(likelihood, x) | ({"offset": True} if shifted else {})
    return replace(fitted, plan=replace(fitted.plan, family="regression", likelihood=told))


def built(
    likelihood: str, num_features: int, intercept: bool, *, prior_sd: float, freedom: float
) -> Model:
    """Model of a regression with a search of its own."""
    more = {"degrees_of_freedom": freedom} if likelihood == STUDENT_T else {}
    params = MODELS[likelihood].Params(num_features, intercept=intercept, prior_sd=prior_sd, **more)
    return MODELS[likelihood].build(params)  # type: ignore[no-any-return]
