"""Regressions: the posterior of coefficients given what a budget lets know of the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.automatic import counted
from dpmc.automatic.counted import Counted
from dpmc.automatic.glm import kernels, units, unseen
from dpmc.automatic.glm.normal import Normal
from dpmc.automatic.glm.person_rows import PersonRows
from dpmc.automatic.glm.prior import LOG_SCALE, NARROWER, Frame
from dpmc.automatic.glm.remarks import Judged, remarks
from dpmc.automatic.glm.rows import Rows
from dpmc.automatic.glm.search import Found, Search
from dpmc.automatic.glm.till import Till
from dpmc.automatic.glm.units import Offset, Units
from dpmc.automatic.statement import Cost, nothing_known
from dpmc.fits import Fit
from dpmc.fits.remarks import few
from dpmc.privacy.audit import audit
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.clipped import row_count
from dpmc.privacy.events import parse
from dpmc.privacy.ledger import Ledger, Noise, noise_of
from dpmc.privacy.spending import telling, told
from dpmc.progress import Progress, silent
from dpmc.rng import Streams
from dpmc.rows.persons import Persons
from dpmc.types import LOW_BITS, ROW, SEED, Array, Dataset, Guarantee, Neighbours, Plan

NAME = "regression"
KINDS = {
    "linear": kernels.LINEAR,
    "student_t": kernels.STUDENT_T,
    "logistic": kernels.LOGISTIC,
    "poisson": kernels.POISSON,
}
SCALED = (kernels.LINEAR, kernels.STUDENT_T)


@telling
def fit(
    dataset: Dataset | Persons,
    likelihood: str,
    epsilon: float,
    delta: float,
    *,
    intercept: bool = True,
    offset: bool = False,
    prior_sd: Array | None = None,
    prior_mean: Array | None = None,
    freedom: float = 4.0,
    robust: bool = False,
    num_chains: int = 4,
    num_draws: int = 2000,
    start: Array | None = None,
    seed: int | None = None,
    noise: Noise | None = None,
    names: Sequence[str] = (),
    neighbours: Neighbours = "replace",
    progress: Progress = silent,
) -> Fit:
    """Draws from the posterior of a regression.

    Parameters
    ----------
    dataset : Dataset or Persons
        Private: features, the offset if there is one, and the response in the last column.
    likelihood : {"linear", "student_t", "logistic", "poisson"}
    epsilon, delta : float
        The budget: all of it is spent.
    intercept : bool
    offset : bool
        Whether a column behind the features is a known part of the linear predictor.
    prior_sd, prior_mean : ndarray of shape (d,), optional
        Of the coefficients, the mean 0 if it is not given; without `prior_sd` the prior is in units
        of the columns.
    freedom : float
        Of the Student-t distribution.
    robust : bool
        Whether widths follow the variance of gradients, and not that of the model; those of persons
        always do.
    num_chains, num_draws : int
        Chains, and draws of each; they cost no privacy.
    start : ndarray of shape (d,), optional
        A public point to begin at; by default the search begins at the null model.
    seed, noise
        As of `dpmc.fit`.
    names : sequence of str
        Of the coefficients, and of the logarithm of the scale.
    neighbours : {"replace", "add_remove"}
        Relation that the budget is for.
    progress : callable
        Told after each release how many hundredths of the budget are spent.

    Returns
    -------
    Fit
    """
    noise = noise_of(noise, published=seed is not None)
    budget = GaussianBudget.of(epsilon, delta)
    streams = Streams.of(seed, NAME, 0)
    ledger = Ledger(budget, noise, neighbours)
    till = Till(ledger, streams.noise)
    outside = [] if dataset.bounds_source == "public" else ["bounds taken from the data"]
    outside += [] if seed is None else [SEED]
    outside += [] if noise == "discrete" else [LOW_BITS]
    of_persons = isinstance(dataset, Persons)
    unit = dataset.unit if isinstance(dataset, Persons) else ROW
    robust = robust or of_persons
    guarantee = Guarantee(epsilon, delta, neighbours, "gaussian", tuple(outside), unit, noise)
    num_columns = dataset.num_columns if isinstance(dataset, Persons) else dataset.x.shape[1]
    kind = KINDS[likelihood]
    checks.room("num_draws", (num_draws, num_chains, num_columns + intercept))
    with told(guarantee, ledger.records):
        rows = rows_counted(till, dataset, streams.batches)
        if neighbours == "add_remove" and rows[1].number < unseen.fewest(budget.mu, counted.SHARE):
            return _unseen(
                till, int(rows[1].number), guarantee, num_columns - 1 - offset, intercept,
                kind in SCALED, prior_sd, prior_mean, (num_draws, num_chains, streams.chain), names,
            )  # fmt: skip
        found, frame, units_, prior = search(
            till, dataset, kind, intercept, prior_sd, freedom, robust, start, progress,
            offset, prior_mean, rows,
        )  # fmt: skip
    mean, covariance = posterior(found, frame, prior_sd is not None)
    without = _without(found, frame, prior, of_persons)
    widening = np.sqrt(np.diag(covariance)[: len(without)] / np.diag(without))
    displaced = _displaced(found, frame, without)
    sigma = _sigma(found, frame, prior_sd is not None)
    if sigma is not None:
        widening = np.append(widening, math.sqrt(sigma[1] / sigma[2]))
    draws = _draws(mean, covariance, num_draws, num_chains, streams.chain)
    num_rows = dataset.num_rows if neighbours == "replace" else int(found.num_rows)
    cost = Cost(
        np.maximum(widening, 1.0), 1 / displaced, budget.mu, delta, num_rows,
        "persons" if of_persons else "rows",
    )  # fmt: skip
    records = ledger.records()
    coefficients = frame.outside(prior)
    plan = Plan(
        method="noise-aware regression",
        epsilon=epsilon,
        delta=delta,
        accountant="gaussian",
        mu=budget.mu,
        stages=tuple(till.stages),
        clip_bound=found.reach * found.bound,
        effective_draws=cost.effective_draws,
        widening=tuple(cost.widening.tolist()),
        acceptance=1.0,
        statement=cost.statement(),
        prior=_prior(coefficients, frame, kind, prior_sd is not None),
        audit=replace(audit(parse(records), delta), neighbours=neighbours, unit=unit),
        details={
            "units": {"location": units_.location.tolist(), "scale": units_.scale.tolist()},
            "dispersion": found.dispersion[0],
            "checks": [list(one) for one in found.checks],
            "steps": found.steps,
            "num_rows": num_rows,
        },
    )
    judged = Judged(
        found, units_, cost, coefficients, mean[: len(coefficients.mean)],
        np.sqrt(np.diag(_outside(found.wide, found, frame)[1])), names, intercept, kind,
        prior_sd is not None, robust,
    )  # fmt: skip
    return Fit(
        draws=draws,
        info={},
        totals={},
        status="complete",
        ledger=records,
        guarantee=guarantee,
        plan=plan,
        names=tuple(names),
        remarks=(*remarks(judged), *few(draws)),
    )


def _unseen(
    till: Till,
    num_rows: int,
    guarantee: Guarantee,
    num_features: int,
    intercept: bool,
    scaled: bool,
    prior_sd: Array | None,
    prior_mean: Array | None,
    how_many: tuple[int, int, np.random.Generator],
    names: Sequence[str],
) -> Fit:
    """Draws from the prior, where noise hides the number of rows."""
    frame = unseen.frame_of(num_features, intercept)
    mean, covariance = unseen.prior_of(frame, intercept, scaled, prior_sd, prior_mean)
    draws, records = _draws(mean, covariance, *how_many), till.ledger.records()
    epsilon, delta, mu = guarantee.epsilon, guarantee.delta, math.sqrt(till.total)
    plan = replace(
        unseen.plan_of(mean, covariance, num_rows),
        epsilon=epsilon,
        delta=delta,
        accountant="gaussian",
        mu=mu,
        stages=tuple(till.stages),
        audit=replace(audit(parse(records), delta), neighbours=guarantee.neighbours),
    )
    remarks_ = (nothing_known(num_rows, mu, 1.0, delta), *few(draws))
    return Fit(draws, {}, {}, "complete", records, guarantee, plan, names=tuple(names),
               remarks=remarks_)  # fmt: skip


def search(
    till: Till,
    dataset: Dataset | Persons,
    kind: int,
    intercept: bool,
    prior_sd: Array | None,
    freedom: float,
    robust: bool,
    start: Array | None = None,
    progress: Progress = silent,
    offset: bool = False,
    prior_mean: Array | None = None,
    rows_of: tuple[Array, Counted, float] | None = None,
) -> tuple[Found, Frame, Units, Normal]:
    """Outcome of a search: all that is computed from rows and not released by others.

    `rows_of` is what `rows_counted` gives, where rows are counted already.
    """
    persons = dataset if isinstance(dataset, Persons) else None
    x, size, num_rows = rows_of or rows_counted(till, dataset, None)
    scaled = kind in SCALED
    num_features = x.shape[1] - 1 - offset
    found_units = units.find(till, size, x[:, : num_features + scaled], intercept)
    known = Offset.find(till, size, x, num_features * offset, intercept)
    features = slice(0, num_features)
    location, scale = found_units.location[features], found_units.scale[features]
    response = (found_units.location[-1], found_units.scale[-1]) if scaled else (-known.centre, 1.0)
    frame = Frame.of(location, scale, response, intercept)
    priors: tuple[Normal, ...] = frame.usual(intercept)
    if prior_sd is not None:
        priors = frame.given(
            np.zeros_like(prior_sd) if prior_mean is None else prior_mean, prior_sd
        )
    rows = Rows(x, location, scale, intercept, kind, size, till.neighbours)
    if persons is not None:
        rows = PersonRows(
            x, location, scale, intercept, kind, size, till.neighbours, persons=persons
        )
    if start is not None:
        count = rows.dim
        away = start[:count] - frame.offset
        start = np.asarray(np.linalg.solve(frame.matrix, away), dtype=np.float64)
    one = Search(rows, found_units, till, priors, freedom, robust, num_rows, progress, known)
    return one.run(start), frame, found_units, priors[0]


def rows_counted(
    till: Till, dataset: Dataset | Persons, coins: np.random.Generator | None
) -> tuple[Array, Counted, float]:
    """Rows to be read, how many they are, and how many of these are valid, as users may know it.

    Of persons it is one row of each. Where their number is private, rows that are invalid are
    nowhere read.
    """
    x = dataset.one_each() if isinstance(dataset, Persons) else dataset.x
    zero = dataset.invalid_rows == "zero"
    if till.neighbours == "add_remove":
        x = x[np.isfinite(x).all(axis=1)] if zero else x
        noisy = _counted(till, "rows", len(x), counted.SHARE)
        size = Counted(counted.believed(noisy), coins)
        return x, size, size.number
    num_rows = float(len(x))
    size = Counted(num_rows)
    if zero:
        noisy = _counted(till, "valid rows", int(np.isfinite(x).all(axis=1).sum()), 0.002)
        num_rows = min(max(noisy, 1.0), num_rows)
    return x, size, num_rows


def _counted(till: Till, name: str, number: int, share: float) -> float:
    """Number of rows with noise, for a share of the budget."""
    count = row_count(number, till.neighbours)
    noisy, deviation = till.release(name, count, share * till.total)
    till.stages[-1] |= {"count": noisy, "standard_error": deviation}
    return noisy


def posterior(found: Found, frame: Frame, given: bool) -> tuple[Array, Array]:
    """Mean and covariance as a user has them, the logarithm of the scale last.

    `given` is whether the prior is.
    """
    mean, covariance = _outside(found.posterior, found, frame)
    sigma = _sigma(found, frame, given)
    if sigma is None:
        return mean, covariance
    return np.append(mean, sigma[0]), _joined(covariance, sigma[1])


def _outside(phi: Normal, found: Found, frame: Frame) -> tuple[Array, Array]:
    """Mean and covariance of coefficients in the units of the rows."""
    matrix = frame.matrix @ found.basis
    return matrix @ phi.mean + frame.offset, matrix @ phi.covariance() @ matrix.T


def _without(found: Found, frame: Frame, prior: Normal, of_persons: bool) -> Array:
    """Covariance as it would be with neither noise nor weights; of persons, as it varies."""
    phi = prior.through(found.basis, np.zeros(len(prior.mean)))
    observed = found.observed
    # Noise may hide a curvature that second moments let expect.
    curvature = (observed.curvature + observed.inferred(observed.point)) / 2
    if of_persons and observed.robust is not None:
        varied = np.linalg.pinv(observed.robust, rcond=1e-13, hermitian=True)
        curvature = observed.curvature @ varied @ observed.curvature
    whole = Normal(phi.mean, curvature / found.kept + phi.precision)
    matrix = frame.matrix @ found.basis
    return np.asarray(matrix @ whole.covariance() @ matrix.T, dtype=np.float64)


def _displaced(found: Found, frame: Frame, without: Array) -> float:
    """Mean square displacement of a mean by noise, in posterior deviations."""
    observed, dim = found.observed, len(found.basis)
    rows = observed.share * observed.curvature + observed.noise**2 * np.eye(dim)
    pull = found.posterior.covariance() @ observed.curvature @ np.linalg.inv(rows)
    matrix = frame.matrix @ found.basis @ pull
    moved = observed.noise**2 * np.einsum("ij,ij->i", matrix, matrix)
    return max(float(np.mean(moved / np.diag(without))), 1e-12)


def _sigma(found: Found, frame: Frame, given: bool) -> tuple[float, float, float] | None:
    """Mean and variance of the log scale, and the variance without privacy."""
    if found.sigma is None:
        return None
    value, rows, whole = found.sigma
    likelihood = value + frame.log_scale
    centre = 0.0 if given else frame.log_scale
    precision = 1 / whole + LOG_SCALE**-2
    mean = (likelihood / whole + centre * LOG_SCALE**-2) / precision
    return mean, 1 / precision, 1 / (1 / rows + LOG_SCALE**-2)


def _prior(coefficients: Normal, frame: Frame, kind: int, given: bool) -> dict[str, Any]:
    """Widest prior as a user has it, that of the logarithm of the scale last."""
    mean, precision = coefficients.mean, coefficients.precision
    if kind in SCALED:
        mean = np.append(mean, 0.0 if given else frame.log_scale)
        precision = _joined(precision, LOG_SCALE**-2)
    said = {"mean": mean.tolist(), "precision": precision.tolist()}
    # Slopes have one of several deviations, each as likely: the widest, and these shares of it.
    return said if given else said | {"narrower": NARROWER.tolist()}


def _joined(covariance: Array, variance: float) -> Array:
    out = np.zeros((len(covariance) + 1, len(covariance) + 1))
    out[:-1, :-1], out[-1, -1] = covariance, variance
    return out


def _draws(
    mean: Array, covariance: Array, num_draws: int, num_chains: int, rng: np.random.Generator
) -> Array:
    size = np.sqrt(np.diag(covariance))
    size = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(size, size))
    root = size[:, None] * (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    normal = rng.standard_normal((num_chains, num_draws, len(mean)))
    return np.asarray(mean + normal @ root.T)
