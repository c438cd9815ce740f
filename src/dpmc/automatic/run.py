"""The automatic method: centre and shape by noisy Newton steps, then a noise-aware posterior."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from dpmc import checks
from dpmc.automatic import bounds, counted
from dpmc.automatic.causes import Causes, nothing_said
from dpmc.automatic.centre import Centre, locate
from dpmc.automatic.federated import FederatedRows
from dpmc.automatic.noise_aware import NoiseAware
from dpmc.automatic.prior import Prior, starting_point
from dpmc.automatic.purse import Purse
from dpmc.automatic.statement import Cost, nothing_known
from dpmc.automatic.whitened import WhitenedRows
from dpmc.fits import Fit
from dpmc.fits.check import Check
from dpmc.fits.remarks import few
from dpmc.privacy.audit import audit
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.clipped import row_count
from dpmc.privacy.events import parse
from dpmc.privacy.ledger import Ledger, Noise, noise_of
from dpmc.privacy.spending import telling, told
from dpmc.progress import Progress, silent
from dpmc.rng import Streams
from dpmc.rows import model_checks, row_functions
from dpmc.rows.persons import Persons
from dpmc.rows.sources import Source
from dpmc.shards.federation import Federation
from dpmc.types import LOW_BITS, ROW, SEED, Array, Dataset, Guarantee, Model, Neighbours, Plan

NAME = "automatic"
# What a guarantee names as outside of it, of nodes.
SEVERAL = "a %s with rows at several nodes"
# What draws so many draws, of so many chains, from what was released, and the share accepted.
Draws = Callable[[NoiseAware, int, int, np.random.Generator], tuple[Array, float]]
# What checks a model at the mean of its posterior, given how far noise has displaced that.
Look = Callable[[Purse, Array, float], list[Check]]
# Share of the budget for it.
LOOK = 0.01
LOOKED = {"release": "check of responses", "share": LOOK}
# Longest last step, in standard deviations of its own noise.
FAR = 4.0
# Most standard deviations by which the curvature, which changes by a share of 1/sqrt(n) over one of
# them, may move the end of the last step.
BENT = 0.5


@telling
def fit(
    model: Model,
    dataset: Dataset | Source | Persons | Federation,
    epsilon: float,
    delta: float,
    *,
    num_chains: int = 4,
    num_draws: int = 2000,
    start: Array | None = None,
    seed: int | None = None,
    noise: Noise | None = None,
    names: tuple[str, ...] = (),
    neighbours: Neighbours = "replace",
    progress: Progress = silent,
    ledger: Ledger | None = None,
    num_rows: int | None = None,
    draws_of: Draws = NoiseAware.draws,
    varied: Dataset | None = None,
    robust: bool = False,
    look: Look | None = None,
) -> Fit:
    """Draws from the posterior given what a budget lets know of the rows.

    Parameters
    ----------
    model : Model
    dataset : Dataset, Source, Persons or Federation
        The private rows, in memory, in files, of persons, or at several nodes.
    epsilon, delta : float
        The budget: all of it is spent.
    num_chains, num_draws : int
        Chains, and draws of each; they cost no privacy.
    start : ndarray of shape (d,), optional
        A public point to begin at; the mode of the prior by default.
    seed : int, optional
        As of `dpmc.fit`.
    noise : {"continuous", "discrete"}, optional
        As of `dpmc.fit`.
    names : tuple of str
        Names of the components.
    neighbours : {"replace", "add_remove"}
        Relation that the budget is for.
    progress : callable
        Told after each stage how many hundredths of the budget are spent.
    ledger : Ledger, optional
        Of this budget and noise, where some of it is spent on these rows already.
    num_rows : int, optional
        Number of rows, where it is private and released already.
    draws_of : callable
        Draws from what was released, where the prior of `model` is that of the search alone.
    varied : Dataset, optional
        The rows as they are when it is looked how much their gradients vary.
    robust : bool
        Whether widths follow the variance of gradients, and not that of the model.
    look : callable, optional
        What looks at the rows in the end, for a share of the budget.

    Returns
    -------
    Fit
        Its `plan` says what was spent on what.
    """
    noise = noise_of(noise, published=seed is not None)
    budget = GaussianBudget.of(epsilon, delta)
    given, model = model, row_functions.without_errors(model)
    columns = dataset.x.shape[1] if isinstance(dataset, Dataset) else dataset.num_columns
    model_checks.check(model, columns, dataset.bounds, dataset.invalid_rows == "zero")
    prior = Prior.of(model)
    point = starting_point(model, prior, start)
    checks.room("num_draws", (num_draws, num_chains, len(point)))
    streams = Streams.of(seed, NAME, 0)
    ledger = Ledger(budget, noise, neighbours) if ledger is None else ledger
    rows: WhitenedRows | FederatedRows
    if isinstance(dataset, Federation):
        rows, nodes = FederatedRows(given, dataset), dataset.node_noise(seed, NAME)
    else:
        rows, nodes = WhitenedRows(given, dataset, neighbours, varied), None
    outside = [] if dataset.bounds_source == "public" else ["bounds taken from the data"]
    outside += [] if seed is None else [SEED]
    outside += [] if noise == "discrete" else [LOW_BITS]
    outside += [] if nodes is None else nodes.outside
    unit = unit_of(dataset)
    outside += [] if nodes is None or unit == ROW else [SEVERAL % unit]
    guarantee = Guarantee(epsilon, delta, neighbours, "gaussian", tuple(outside), unit, noise)
    what = "rows" if unit == ROW else "persons"
    kept = 0.0 if look is None else LOOK * budget.mu**2
    purse = Purse(ledger, streams.noise, nodes, kept)
    spent: Plan
    with told(guarantee, ledger.records):
        stages: list[dict[str, float]] = []
        if num_rows is None and neighbours == "replace":
            num_rows = dataset.num_rows
        elif num_rows is None:
            count = row_count(valid_rows(dataset), neighbours)
            noisy, deviation = purse.total(count, counted.SHARE * purse.left)
            stages.append({"count": noisy, "standard_error": deviation})
            num_rows = int(counted.believed(noisy))
        rows.num_rows = num_rows
        if dataset.invalid_rows == "zero":
            noisy, deviation = bounds.count_valid(rows, purse, point)
            stages.append({"count": noisy, "standard_error": deviation})
            rows.num_rows = min(int(counted.believed(noisy)), num_rows)
        if rows.num_rows < bounds.fewest_rows(budget.mu, purse.spread):
            nothing = NoiseAware.of_nothing(prior, point)
            draws, accepted = draws_of(nothing, num_draws, num_chains, streams.chain)
            spent = _nothing(model.dim)
            remarks = [nothing_known(num_rows, budget.mu, purse.spread, delta, what)]
            if num_rows >= bounds.fewest_rows(budget.mu, purse.spread):
                found = f" A noisy count found {rows.num_rows:,} of {num_rows:,} {what}."
                remarks = [nothing_said() + found]
        else:
            centre = locate(rows, prior, purse, point, progress, robust=robust)
            posterior = NoiseAware.of(centre, prior)
            if centre.silent:
                posterior = NoiseAware.of_nothing(prior, point)
            draws, accepted = draws_of(posterior, num_draws, num_chains, streams.chain)
            cost = Cost.of(centre, posterior, budget.mu, num_rows, delta, what)
            spent = _spent(centre, cost, rows.num_rows)
            seen = centre.checks
            if look is not None:
                seen = [*seen, *look(replace(purse, kept=0.0), *_looked_at(centre, posterior))]
                spent = replace(spent, stages=(*spent.stages, LOOKED))
            details = {**spent.details, "checks": [_rounded(one) for one in seen]}
            spent = replace(spent, details=details)
            remarks = [*_remarks(centre, Causes.of(centre, posterior), cost, names)]
        records = ledger.records()
        return Fit(
            draws=draws,
            info={},
            totals={},
            status="complete",
            ledger=records,
            guarantee=guarantee,
            plan=replace(
                spent,
                epsilon=epsilon,
                delta=delta,
                accountant="gaussian",
                mu=budget.mu,
                stages=(*stages, *spent.stages),
                acceptance=accepted,
                audit=replace(audit(parse(records), delta), neighbours=neighbours, unit=unit),
                details={**spent.details, "num_rows": num_rows},
            ),
            names=names,
            remarks=(*remarks, *_correlated(accepted), *few(draws)),
        )


def unit_of(dataset: Dataset | Source | Persons | Federation) -> str:
    """Unit of protection: a row, or what several rows belong to."""
    first = dataset.nodes[0] if isinstance(dataset, Federation) else dataset
    return first.unit if isinstance(first, Persons) else ROW


def valid_rows(dataset: Dataset | Source | Persons | Federation) -> int:
    """Number of rows, or persons, that count, private; in files that of all."""
    if isinstance(dataset, Dataset) and dataset.invalid_rows == "zero":
        return int(np.isfinite(dataset.x).all(axis=1).sum())
    return dataset.num_rows


def _rounded(check: Check) -> list[str | float]:
    """A check, without last digits, in which sums of the same rows may differ."""
    return [check.what, *(float(f"{number:.6g}") for number in check[1:])]


def _looked_at(centre: Centre, posterior: NoiseAware) -> tuple[Array, float]:
    """Mean of a posterior, and its squared displacement by noise in deviations that rows leave."""
    step, covariance = posterior.approximation()
    displaced = float(np.sum(centre.curvature.for_steps() * covariance)) - len(step)
    return centre.theta + centre.basis @ step, max(displaced, 0.0)


def _spent(centre: Centre, cost: Cost, num_rows: int) -> Plan:
    return Plan(
        method="noise-aware Laplace",
        stages=tuple(centre.stages),
        clip_bound=centre.gradient_bound,
        clipped_share=centre.clipped / num_rows,
        effective_draws=cost.effective_draws,
        widening=tuple(cost.widening.tolist()),
        statement=cost.statement(),
        details={"dispersion": centre.dispersion},
    )


def _nothing(dim: int) -> Plan:
    return Plan(
        method="prior",
        effective_draws=0.0,
        widening=(math.inf,) * dim,
        statement="These are draws from the prior.",
    )


def _remarks(centre: Centre, causes: Causes, cost: Cost, names: tuple[str, ...]) -> Iterator[str]:
    bent = 0.5 * centre.step**2 / math.sqrt(cost.num_rows)
    if centre.step > FAR * centre.step_noise and bent > BENT:
        yield (
            f"The search for the centre had not settled: its last step was {centre.step:.3g} "
            f"posterior standard deviations, with noise of {centre.step_noise:.2g}. Intervals may "
            "be too narrow. A public `start` nearer to the posterior, or a larger epsilon, helps."
        )
    if centre.dispersion > 1 and not causes.lost:  # else of another place
        alike = "" if cost.what == "rows" else "rows of one person are alike, or "
        yield (
            f"Gradients of rows vary {centre.dispersion:.2g} times as the model says: {alike}"
            "another variance, or another model, would describe the rows better. Intervals are "
            f"wider for it, by a factor of {math.sqrt(centre.dispersion):.2g} where privacy does "
            "not widen them."
        )
    yield from cost.remarks(causes, names)


def _correlated(accepted: float) -> Iterator[str]:
    if accepted < 0.2:
        yield (
            f"The prior is far from normal near the posterior (a share of {accepted:.2g} of "
            "independent proposals was accepted): draws are correlated."
        )
