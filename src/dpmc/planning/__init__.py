"""What a budget buys, before any private row is touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from dpmc import checks
from dpmc.families._columns import check_beside
from dpmc.families.likelihoods import ALL
from dpmc.fitting import AUTOMATIC, columns_of, is_automatic, refuse_beside_auto
from dpmc.mcmc.clip_shares import Diagnostics
from dpmc.planning import methods
from dpmc.planning.made_up import RATES
from dpmc.planning.methods import MethodPlan
from dpmc.planning.simulated import Plan, Simulation
from dpmc.types import (
    NEIGHBOURS,
    Array,
    DpmcError,
    Model,
    Neighbours,
    as_numbers,
    check_delta,
    check_epsilon,
    is_real,
)

# Options of `dpmc.regression` that a plan of one takes.
OF_REGRESSIONS = (
    "intercept", "prior_sd", "degrees_of_freedom", "covariance", "classes", "trials"
)  # fmt: skip


@overload
def plan(
    model: Model | str,
    shape: tuple[int, int],
    *,
    epsilon: float,
    delta: float,
    rows: Any = ...,
    rate: float | None = ...,
    neighbours: Neighbours = ...,
    **params: Any,
) -> Plan: ...
@overload
def plan(
    model: Model,
    shape: tuple[int, int],
    *,
    epsilon: float,
    delta: float,
    method: Any,
    num_chains: int = ...,
    accountant: str | None = ...,
    max_iterations: int | None = ...,
    diagnostics: Diagnostics = ...,
    **params: Any,
) -> Any: ...
def plan(
    model: Model | str,
    shape: tuple[int, int],
    *,
    epsilon: float,
    delta: float,
    rows: Any = None,
    rate: float | None = None,
    neighbours: Neighbours = "replace",
    method: Any = AUTOMATIC,
    num_chains: int = 4,
    accountant: str | None = None,
    max_iterations: int | None = None,
    diagnostics: Diagnostics | None = None,
    **params: Any,
) -> Plan | MethodPlan:
    """Plan of a fit: what a budget is expected to buy, by fits of public rows.

    No private row is needed: the automatic method is run on public ones, whose posterior without
    privacy is computed beside it.

    Parameters
    ----------
    model : Model or str
        A model of `dpmc.fit`, or a likelihood of `dpmc.regression`, such as ``"logistic"``.
    shape : (int, int)
        Number of private rows n, and of their columns, the response among them.
    epsilon, delta : float
        The budget.
    rows : array_like of shape (k, columns), data frame, or callable, optional
        Public rows, made up or older, to draw n from; for a regression the response is the last
        column, or left out and made up. A function ``(rng, n) -> ndarray of shape (n, columns)``
        simulates them, with parameters that it draws from a prior or another guess. By default rows
        of regressions are made up, with correlated columns and with responses that spread more than
        the likelihood says, as in many tables; those of models are their `example_rows`, or
        standard normal.
    rate : float, optional
        A public guess of the mean of made-up responses: the share of ones, or of successes (0.2 by
        default), or the mean count (1).
    method, num_chains, accountant, max_iterations, diagnostics
        As of `dpmc.fit`.
    **params
        Of the automatic regression: `intercept`, `prior_sd`, `degrees_of_freedom`, `covariance`,
        `classes`, and `trials`, one number for all rows. No time of ``"weibull"`` is censored.
        Otherwise parameters of a method. What is left out is chosen along the way, and expected
        here for a posterior that is equally wide in all directions.

    Returns
    -------
    Plan or MethodPlan
        Of the automatic method: quantiles of errors and widths, and `Plan.curve` of them over
        budgets and numbers of rows. Of another one: iterations, parameters, releases.

    Raises
    ------
    DpmcError
        If an argument is refused, or the model is on public probes.

    Examples
    --------
    >>> planned = plan("logistic", (20_000, 4), epsilon=1, delta=1e-6, rate=0.1)
    >>> 0.5 < planned.error < 5
    True
    >>> from dpmc.models import logistic
    >>> model = logistic.build(logistic.Params(3))
    >>> chains = plan(model, (100_000, 4), epsilon=1, delta=1e-6, method="dp_penalty")
    >>> chains.num_iterations > 1000, chains.chosen
    (True, ('proposal_sd', 'ratio_noise_multiplier', 'ratio_clip_bound'))
    """
    if not isinstance(model, Model) and not (isinstance(model, str) and model in ALL):
        got = repr(model) if isinstance(model, str) else type(model).__name__
        raise DpmcError(f"`model` must be a dpmc.Model or one of {', '.join(ALL)}, got {got}")
    num_rows, num_columns = _shape(shape)
    if isinstance(model, str):
        checks.at_least("shape[1]", num_columns, 2)
    elif (wanted := columns_of(model)) not in (None, num_columns):
        raise DpmcError(
            f"`shape[1]` must be {wanted}, the columns of model {model.name!r}, got {num_columns}"
        )
    check_epsilon(epsilon)
    delta = check_delta(delta)
    checks.at_least("num_chains", num_chains, 1)
    checks.one_of("neighbours", neighbours, tuple(NEIGHBOURS))
    if not is_automatic(method):
        if isinstance(model, str):
            raise DpmcError(f"`model` must be a dpmc.Model beside a `method`, got {model!r}")
        beside = {"rows": rows is not None, "rate": rate is not None}
        beside["neighbours"] = neighbours != "replace"
        for name, given_ in beside.items():
            if given_:
                raise DpmcError(f"`{name}` must be left out beside a `method`")
        return methods.plan(
            model,
            num_rows,
            num_columns,
            epsilon,
            delta,
            method,
            num_chains=num_chains,
            accountant=accountant,
            max_iterations=max_iterations,
            diagnostics=diagnostics,
            params=params,
        )
    options = {name: params[name] for name in OF_REGRESSIONS if name in params}
    options = options if isinstance(model, str) else {}
    if isinstance(model, str):
        trials, classes = options.get("trials"), options.get("classes")
        check_beside(model, {"trials": trials}, classes)
        if trials is not None:
            checks.at_least("trials", trials, 1)
    others = {"accountant": accountant, "max_iterations": max_iterations}
    others |= {"diagnostics": diagnostics}
    given = [name for name, value in others.items() if value is not None]
    refuse_beside_auto([*given, *(name for name in params if name not in options)], plan)
    public = None if rows is None else rows if callable(rows) else _public(model, num_columns, rows)
    simulation = Simulation(model, num_columns, delta, public, rate, options, neighbours)
    _check_rate(simulation)
    return simulation.plan(num_rows, float(epsilon))


def _shape(shape: Any) -> tuple[int, int]:
    pair = isinstance(shape, Sequence) and not isinstance(shape, str) and len(shape) == 2
    if not pair:
        got = repr(shape) if isinstance(shape, int | tuple | str) else type(shape).__name__
        raise DpmcError(
            f"`shape` must be a number of rows and one of columns, as `rows.shape` is, got {got}"
        )
    for k in range(2):
        checks.at_least(f"shape[{k}]", shape[k], 1)
    return int(shape[0]), int(shape[1])


def _public(model: Model | str, num_columns: int, rows: Any) -> Array:
    """Public rows as an array, after a look at their columns and responses."""
    found = as_numbers("`rows`", rows, "refuse")
    wanted = (num_columns,) if isinstance(model, Model) else (num_columns, num_columns - 1)
    if found.ndim != 2 or not len(found) or found.shape[1] not in wanted:
        raise DpmcError(
            f"`rows` must have {' or '.join(map(str, wanted))} columns, and rows, got shape "
            f"{found.shape}"
        )
    if isinstance(model, str) and found.shape[1] == num_columns:
        likelihood = ALL[model]
        if not likelihood.allowed(found[:, -1]).all():
            raise DpmcError(
                f"`rows` must have a last column of responses, {likelihood.wanted}, got others"
            )
    return found


def _check_rate(simulation: Simulation) -> None:
    """Refuse a mean of made-up responses that they cannot have."""
    rate, what = simulation.rate, simulation.what
    if rate is None:
        return
    if simulation.whole or what not in RATES:
        raise DpmcError("`rate` must be left out where no shares of ones, or counts, are made up")
    most = RATES[str(what)][1]
    if not (is_real(rate) and 0 < rate < most):
        raise DpmcError(f"`rate` must be between 0 and {most:g}, got {rate!r}")
