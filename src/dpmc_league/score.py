"""The worth of draws, measured from draws and ledger alone."""

from __future__ import annotations

import functools
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dpmc.diagnostics.convergence import bulk_ess
from dpmc.diagnostics.mmd import Reference
from dpmc.rng import stream
from dpmc.types import Array, DpmcError, swapped
from dpmc_league import gate, measures
from dpmc_league.submission import Records
from dpmc_league.task import Task

SCORED = "scored"
COMPARED = 2000  # draws of the reference that discrepancies are taken to


@dataclass(frozen=True)
class Score:
    """What one submission is worth.

    Parameters
    ----------
    status : str
        ``"scored"``, or why it is not.
    epsilon : float
        That its ledger comes to by a second accountant, at the delta of the task.
    mu : float
        The same in Gaussian differential privacy; NaN where it is not that.
    outside : tuple of str
        Uses of the rows that the ledger does not have, as the method tells.
    mmd, sliced_wasserstein : float
        Discrepancies, see :mod:`dpmc_league.measures`.
    mean_error, worst_mean_error : float
        Root mean square and largest error of the means, in posterior standard deviations.
    deviation_ratio : float
        Geometric mean of standard deviations over those of the posterior.
    worst_deviation : float
        The largest absolute logarithm of these ratios.
    effective_draws : float
        1 over the square of `mean_error`: exact independent draws with such an error.
    per_mu2 : float
        The same over mu^2.
    bulk_ess : float
        Effective size of the draws as chains, by rank-normalised autocorrelation.
    predictive : float
        Mean log predictive density of fresh rows, less that of the reference.
    coverage_50, coverage_90 : float
        Shares of exact draws within the central intervals of the draws, over all components. Their
        means over repeats are 0.5 and 0.9 where a method knows its own noise.
    releases : int
        In the ledger.
    passes : float
        Over the rows that these take, at least.
    normal_distance : float
        Sliced distance of the normal law that has mean and covariance of the posterior.
    attack_epsilon, attack_claim : float
        Lower bound on the epsilon of the method from the attack of the gate, and what its ledger
        claims there (:mod:`dpmc_league.attack`). NaN where it was not attacked.
    """

    status: str
    epsilon: float = math.nan
    mu: float = math.nan
    outside: tuple[str, ...] = ()
    mmd: float = math.nan
    sliced_wasserstein: float = math.nan
    mean_error: float = math.nan
    worst_mean_error: float = math.nan
    deviation_ratio: float = math.nan
    worst_deviation: float = math.nan
    effective_draws: float = math.nan
    per_mu2: float = math.nan
    bulk_ess: float = math.nan
    predictive: float = math.nan
    coverage_50: float = math.nan
    coverage_90: float = math.nan
    releases: int = 0
    passes: float = math.nan
    normal_distance: float = math.nan
    attack_epsilon: float = math.nan
    attack_claim: float = math.nan

    @property
    def scored(self) -> bool:
        """Whether there are scores."""
        return self.status == SCORED

    def columns(self) -> dict[str, Any]:
        """Score as tables have it: ``ledger_epsilon``, and ``outside`` as text."""
        names = {"epsilon": "ledger_epsilon"}
        values = {names.get(name, name): value for name, value in asdict(self).items()}
        return values | {"outside": "; ".join(self.outside)}


def score(
    task: Task,
    draws: object,
    ledger: Records | None,
    *,
    epsilon: float | None = None,
    outside: tuple[str, ...] = (),
) -> Score:
    """Score draws and the ledger that paid for them; nothing else that a method says counts.

    Parameters
    ----------
    task : Task
    draws : ndarray of shape (chains, draws, d), as `Fit.kept` has it, or (draws, d)
        After warm-up.
    ledger : sequence of (str, int)
        As ``Fit.ledger`` has it.
    epsilon : float, optional
        The budget; a ledger that comes to more is not scored.
    outside : tuple of str
        Uses of the rows that the ledger does not have.

    Returns
    -------
    Score
        Its status says why there is no score, if there is none.

    Examples
    --------
    >>> from dpmc_league.task import task
    >>> one = task("circle-v1")
    >>> ledger = [("gaussian(2.0)", 4)]
    >>> exact = score(one, one.reference(2000), ledger, epsilon=6)
    >>> exact.status, exact.mu, exact.mmd < 0.1
    ('scored', 1.0, True)
    >>> score(one, one.reference(2000), ledger, epsilon=2).status
    '`ledger` must come to epsilon 2 at most, got 4.887'
    """
    by_draw = swapped(draws) if isinstance(draws, np.ndarray) and draws.ndim == 3 else draws
    return scored(task, by_draw, ledger, epsilon, outside)


def scored(
    task: Task,
    draws: object,
    ledger: Records | None,
    epsilon: float | None,
    outside: tuple[str, ...],
) -> Score:
    """Score of what a method of the league handed in: draws of shape (draws, chains, d)."""
    try:
        passed = gate.ledger(ledger, task.delta, epsilon)
    except DpmcError as error:
        return Score(str(error), outside=outside)
    try:
        chains = gate.draws(draws, task.dim)
    except DpmcError as error:
        return Score(str(error), passed.epsilon, passed.mu, outside)
    reference, compared, normal = _reference(task)
    flat = chains.reshape(-1, task.dim)
    errors = measures.mean_errors(flat, reference)
    ratios = np.log(np.maximum(measures.deviation_ratios(flat, reference), 1e-300))
    effective = measures.effective_draws(errors)
    return Score(
        SCORED,
        passed.epsilon,
        passed.mu,
        outside,
        measures.mmd(flat, compared),
        measures.sliced_wasserstein(flat, compared),
        float(np.sqrt(np.mean(errors**2))),
        float(np.abs(errors).max()),
        float(np.exp(ratios.mean())),
        float(np.abs(ratios).max()),
        effective,
        effective / passed.mu**2,
        bulk_ess(chains),
        math.nan
        if task.fresh is None
        else measures.predictive(task.model, flat, reference, task.fresh),
        measures.coverage(flat, reference, 0.5),
        measures.coverage(flat, reference, 0.9),
        passed.releases,
        passed.passes,
        normal,
    )


@functools.lru_cache(maxsize=4)
def _reference(task: Task) -> tuple[Array, Reference, float]:
    """All reference draws, those that discrepancies are taken to, and how far a normal law is."""
    draws = task.reference()
    compared = Reference.of(draws[:COMPARED])
    rng = stream(1, "league", "normal law", task.dim)
    normal = rng.multivariate_normal(draws.mean(axis=0), np.cov(draws, rowvar=False), len(draws))
    return draws, compared, measures.sliced_wasserstein(normal, compared)
