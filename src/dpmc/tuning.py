"""Parameters that a user leaves out, chosen from what a search under the same budget released.

A share of the budget finds centre and shape of the posterior, as :mod:`dpmc.automatic` does; the
chains begin at the centre with steps on that scale, and have the rest. The search goes through a
ledger that is a filter, so that however it went, it costs no more than one Gaussian release of its
share.

Noise and number of the releases of the chains are chosen after the search. Where all of them are
Gaussian and of all rows, whatever is chosen adds up in mu^2 with the search, whose release is in
the plan of the chains. Releases from batches do not: two choices with the same delta at one epsilon
have different ones at others, and what the search said may favour the worse of them. There search
and chains have budgets of their own. Epsilons and deltas of mechanisms add up even if the later one
is chosen by the earlier [Dwork and Roth 2014, appendix B].
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from types import ModuleType
from typing import Any

import numpy as np

from dpmc import registry
from dpmc.automatic import bounds, counted
from dpmc.automatic.centre import Centre, locate
from dpmc.automatic.noise_aware import NoiseAware
from dpmc.automatic.prior import NormalPrior, Prior, starting_point
from dpmc.automatic.purse import Purse
from dpmc.automatic.whitened import WhitenedRows
from dpmc.mcmc.clip_shares import Diagnostics
from dpmc.mcmc.fit import Apart, Search, allocate
from dpmc.mcmc.own_methods import name_of
from dpmc.mcmc.scale import Scale
from dpmc.privacy import events
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.calibration import TooSmallError
from dpmc.privacy.ledger import Ledger, Noise
from dpmc.privacy.spending import told
from dpmc.rng import Streams
from dpmc.rows import model_checks, row_functions
from dpmc.types import Array, Dataset, DpmcError, Guarantee, Model

# Share of mu^2 for a search, where the releases of the chains are Gaussian and of all rows.
SHARE = 0.25
# Share of epsilon and of delta for a search before chains that see batches.
APART = 1 / 3
# Length that is next to none: of deviations and gradients at which chains are cheapest.
TINY = 1e-3
# Least length of a row's gradient, over the inverse of the largest deviation: that of 1e10
# rows that all say the same.
FLAT = 1e-5


@dataclass(frozen=True)
class Shares:
    """Parts of a budget for a search and for the chains after it.

    Parameters
    ----------
    search : GaussianBudget
        Of the search.
    mu : float
        Gaussian budget that chains are scaled by: all of theirs, if they are Gaussian.
    apart : Apart or None
        How epsilon and delta are divided, where the two have budgets of their own.
    """

    search: GaussianBudget
    mu: float
    apart: Apart | None

    @property
    def event(self) -> events.Event:
        """One release that costs as much as the search may."""
        return events.gaussian(1 / self.search.mu)

    def spent(self, delta: float) -> Guarantee:
        """Cost of the search, at a delta where it has none of its own."""
        if self.apart is None:
            return self.search.guarantee(delta)
        return Guarantee(self.apart.search_epsilon, self.apart.search_delta, accountant="gaussian")


def shares(module: ModuleType, epsilon: float, delta: float) -> Shares:
    """Parts of a budget for a search for a method, and for its chains."""
    if module.ROW_ORDER == "features":
        mu = GaussianBudget.of(epsilon, delta).mu
        return Shares(GaussianBudget(math.sqrt(SHARE) * mu), math.sqrt(1 - SHARE) * mu, None)
    apart = Apart(epsilon, delta, APART * epsilon, APART * delta)
    search = GaussianBudget.of(apart.search_epsilon, apart.search_delta)
    return Shares(search, GaussianBudget.of(*apart.rest).mu, apart)


def lacks(module: ModuleType, params: Mapping[str, Any]) -> bool:
    """Whether a method that can choose is left without a parameter that it needs."""
    if not hasattr(module, "tuned"):
        return False
    needed = [one.name for one in fields(module.Params) if one.default is MISSING]
    return any(name not in params for name in needed)


# What a search has in common with the chains after it.
SHARED = "accountant", "diagnostics", "noise", "num_chains", "seed"


def tuned(
    module: ModuleType,
    params: Mapping[str, Any],
    model: Model,
    dataset: Dataset,
    epsilon: float,
    delta: float,
    *,
    num_chains: int,
    start: Array | None,
    seed: int | None,
    noise: Noise,
    accountant: str | None = None,
    diagnostics: Diagnostics = "private",
) -> tuple[dict[str, Any], Search]:
    """All parameters of a method, and the search that told those that were left out.

    Parameters
    ----------
    module : module
        A method with ``tuned``.
    params : mapping
        Parameters that are given; they stay as they are.
    model, dataset, epsilon, delta
        As of `dpmc.fit`.
    num_chains, start, seed, noise, accountant, diagnostics
        As of `dpmc.fit`; the search begins at `start`.
    """
    method = name_of(module)
    chains = _Chains(module, delta, num_chains, accountant, diagnostics)
    easiest = dict(params)
    if hasattr(module, "cheapest"):
        easiest = module.cheapest(dataset.num_rows) | easiest
    least = chains.least(epsilon, _easiest(model, num_chains, dataset.num_rows), easiest)
    if least is not None:
        raise too_small(method, num_chains, epsilon, least)
    parts = shares(module, epsilon, delta)
    checked = row_functions.without_errors(model)
    model_checks.check(checked, dataset.x.shape[1], dataset.bounds, dataset.invalid_rows == "zero")
    prior = Prior.of(checked)
    ledger, streams = Ledger(parts.search, noise), Streams.of(seed, f"search for {method}", 0)
    point = starting_point(checked, prior, start)
    spent = parts.spent(delta)
    with told(spent, ledger.records):
        rows, purse = WhitenedRows(checked, dataset), Purse(ledger, streams.noise)
        if dataset.invalid_rows == "zero":
            some = counted.believed(bounds.count_valid(rows, purse, point)[0])
            rows.num_rows = min(int(some), rows.num_rows)
        centre = locate(rows, prior, purse, point)
        shared = prior, checked, parts.mu, num_chains, dataset.num_rows
        lost = centre.silent or rows.num_rows < bounds.fewest_rows(parts.search.mu)
        scale = _of_prior(point, *shared) if lost else _scale(centre, *shared)
        chosen = {**module.tuned(scale), **params}
        if chains.least(epsilon, scale, params) is not None:
            chosen = {**chosen, **easiest}
    return chosen, Search(scale.centre, parts.event, ledger.records(), spent, parts.apart)


@dataclass(frozen=True)
class _Chains:
    """Request for chains after a search, as `dpmc.fit` has it."""

    module: ModuleType
    delta: float
    num_chains: int
    accountant: str | None
    diagnostics: Diagnostics

    def least(self, epsilon: float, scale: Scale, params: Mapping[str, Any]) -> float | None:
        """Epsilon that buys an iteration, None where the one that is given does.

        Parameters
        ----------
        epsilon : float
            Of search and chains together.
        scale : Scale
            What parameters that are left out would be chosen by.
        params : mapping
            The others.
        """
        found = None
        while True:
            at = epsilon if found is None else found
            parts = shares(self.module, at, self.delta)
            try:
                self._allocate(parts, at, replace(scale, mu=parts.mu), params)
            except TooSmallError as error:
                rest = at if parts.apart is None else parts.apart.rest[0]
                # Some of the noise depends on the budget: beyond what would do at this one.
                found = max(at, error.least * at / rest) * (1 + 1e-3)
            else:
                return found

    def _allocate(
        self, parts: Shares, epsilon: float, scale: Scale, params: Mapping[str, Any]
    ) -> None:
        settings = registry.parameters(self.module, {**self.module.tuned(scale), **params})
        if parts.apart is None:
            made = map(events.noise_of, self.module.releases(settings, scale.num_rows).counts(1, 1))
            if any(noise is None or noise[1] < 1 for noise in made):
                raise DpmcError(
                    f"`ROW_ORDER` of {name_of(self.module)} must be 'rows', got 'features': it "
                    "releases what is not Gaussian or not of all rows"
                )
        budget = (epsilon, self.delta) if parts.apart is None else parts.apart.rest
        allocate(
            self.module,
            settings,
            scale.num_rows,
            self.num_chains,
            None,
            *budget,
            self.accountant,
            max_iterations=1,
            diagnostics=self.diagnostics,
            before=((parts.event, 1),) if parts.apart is None else (),
        )


def too_small(method: str, num_chains: int, epsilon: float, least: float) -> DpmcError:
    """Error of an epsilon that buys no iteration beside a search."""
    return DpmcError(
        f"`epsilon` must be at least {least:.6g} for one iteration of {num_chains} chain(s) of "
        f"{method} after the search for its parameters, got {epsilon:g}"
    )


def _easiest(model: Model, num_chains: int, num_rows: int) -> Scale:
    """Scale at which chains are as cheap as they can be: rows hardly matter."""
    covariance = TINY**2 * np.eye(model.dim)
    return Scale(np.zeros(model.dim), covariance, TINY, 1.0, num_chains, num_rows, model.tempering)


def _of_prior(
    point: Array, prior: Prior, model: Model, mu: float, num_chains: int, num_rows: int
) -> Scale:
    """Scale where rows have said nothing: that of the prior, of which they might know as much."""
    normal = NormalPrior.of(prior, point)
    covariance = np.linalg.inv(normal.precision).astype(np.float64)
    found = Scale(normal.mean, covariance, 1.0, mu, num_chains, num_rows, model.tempering)
    return replace(found, row_gradient=1 / (found.largest * math.sqrt(num_rows)))


def _scale(
    centre: Centre, prior: Prior, model: Model, mu: float, num_chains: int, num_rows: int
) -> Scale:
    step, _ = NoiseAware.of(centre, prior).approximation()
    theta = centre.theta + centre.basis @ step
    precision = centre.curvature.for_steps() + (
        centre.basis.T @ prior.precision(theta) @ centre.basis
    )
    inverse = np.linalg.pinv(precision, rcond=1e-12, hermitian=True)
    covariance = centre.basis @ inverse @ centre.basis.T
    # Whitened gradients are basis.T @ gradient.
    bound = centre.gradient_bound / float(np.linalg.svd(centre.basis, compute_uv=False)[-1])
    if model.lipschitz is not None:
        bound = min(bound, model.lipschitz)
    found = Scale(theta, covariance, bound, mu, num_chains, num_rows, model.tempering)
    # Where rows have no gradients to speak of: multipliers would be beyond what grids resolve.
    return replace(found, row_gradient=max(bound, FLAT / found.largest))
