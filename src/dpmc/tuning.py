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
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

import numpy as np

from dpmc import registry
from dpmc.automatic.centre import Centre, locate
from dpmc.automatic.noise_aware import NoiseAware
from dpmc.automatic.prior import Prior, starting_point
from dpmc.automatic.purse import Purse
from dpmc.automatic.whitened import WhitenedRows
from dpmc.mcmc.batch_ratios import penalised_sensitivity
from dpmc.mcmc.clip_shares import Diagnostics
from dpmc.mcmc.fit import Apart, Search, allocate
from dpmc.privacy import events
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.calibration import TooSmallError
from dpmc.privacy.ledger import Ledger, Noise
from dpmc.privacy.spending import told
from dpmc.rng import Streams
from dpmc.rows import model_checks, row_functions
from dpmc.types import Array, Dataset, DpmcError, Guarantee, Model

# Methods whose releases are Gaussian and of all rows.
GAUSSIAN = frozenset({"dp_penalty", "dp_hmc", "dp_mala"})
# Of mu^2, for the search of these; of epsilon and of delta, for that of others.
SHARE, APART = 0.25, 1 / 3
# Standard deviation of the noise in a decision, at which a walk of small steps is most efficient:
# an accepted share of 2 Phi(-s / 2), at 1 / s^2 of the budget a decision, has its largest product
# with s^2 at 2.38.
DECISION = 2.38
# Iterations of a chain that steps are made small for, and the longest step of a walk, in posterior
# standard deviations over sqrt(d).
ITERATIONS, LONGEST_STEP = 2000, 1.0
# Of Hamiltonian dynamics: the same, steps of a trajectory, and the standard deviation that gradient
# noise gives the energy along one.
TRAJECTORIES, LONGEST_LEAPFROG, LEAPFROG_STEPS, ENERGY_NOISE = 200, 0.3, 5, 1.0
# Of Langevin dynamics without a test, at which a step h widens the posterior by a share of h / 4:
# the step in units of the smallest variance, of the thermostat in units of the smallest standard
# deviation, and the fewest iterations that steps are made small for. The share of the rows in a
# batch: drawing many more without replacement takes longer than reading them.
DRIFT, SPIN, FEWEST, HALF = 0.1, 0.05, 200, 0.5
# Of a decision from a batch: the variance that the batch itself may have, and the smallest share.
BATCH_VARIANCE, SMALLEST = 0.25, 0.02
# The method whose noise is bounded by its batch; and a length that is none.
BARKER, TINY = "dp_barker", 1e-3
# Least length of a row's gradient, over the inverse of the largest deviation: that of 1e10
# rows that all say the same.
FLAT = 1e-5


@dataclass(frozen=True)
class Shares:
    """What a search and the chains after it may cost.

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
        """Return what the search costs, at a delta where it has none of its own."""
        if self.apart is None:
            return self.search.guarantee(delta)
        return Guarantee(self.apart.search_epsilon, self.apart.search_delta, accountant="gaussian")


def shares(method: str, epsilon: float, delta: float) -> Shares:
    """Return what a budget gives to a search for a method, and to its chains."""
    if method in GAUSSIAN:
        mu = GaussianBudget.of(epsilon, delta).mu
        return Shares(GaussianBudget(math.sqrt(SHARE) * mu), math.sqrt(1 - SHARE) * mu, None)
    apart = Apart(epsilon, delta, APART * epsilon, APART * delta)
    search = GaussianBudget.of(apart.search_epsilon, apart.search_delta)
    return Shares(search, GaussianBudget.of(*apart.rest).mu, apart)


@dataclass(frozen=True)
class Scale:
    """What chains are scaled by, all of it released or public.

    Parameters
    ----------
    centre : ndarray of shape (d,)
        Where they begin.
    covariance : ndarray of shape (d, d)
        Of the posterior without privacy noise.
    row_gradient : float
        Length that gradients of few rows exceed: the Lipschitz constant, or less.
    mu, num_chains, num_rows : float, int, int
        Gaussian budget and number of the chains, and number of rows.
    tempering : float
        Of the model.
    """

    centre: Array
    covariance: Array
    row_gradient: float
    mu: float
    num_chains: int
    num_rows: int
    tempering: float

    @property
    def smallest(self) -> float:
        """Smallest standard deviation in any direction."""
        return math.sqrt(float(np.linalg.eigvalsh(self.covariance)[0]))

    @property
    def largest(self) -> float:
        """Largest standard deviation in any direction."""
        return math.sqrt(float(np.linalg.eigvalsh(self.covariance)[-1]))

    @property
    def diffusion(self) -> float:
        """Time that Langevin dynamics whose noise is the privacy noise may run.

        A step e with noise of variance 2e on the sum of row gradients costs 2 e c^2 of mu^2, c the
        clip bound and 2c the sensitivity; a batch costs as much as all rows.
        """
        return self.mu**2 / (2 * self.row_gradient**2 * self.num_chains)

    @property
    def deviations(self) -> Array:
        """Posterior standard deviations of the components."""
        deviations: Array = np.sqrt(np.diag(self.covariance))
        return deviations

    def decision_multiplier(self, length: float) -> float:
        """Return the noise multiplier of a decision on a move of a length."""
        return DECISION / (2 * self.row_gradient * length * self.tempering)


def _walk(scale: Scale) -> tuple[float, float]:
    """Return the step of a walk in posterior standard deviations, and the length of a step of 1."""
    spread = float(np.linalg.norm(scale.deviations))
    at_one = scale.mu**2 * scale.decision_multiplier(spread) ** 2 / scale.num_chains
    step = min(LONGEST_STEP / math.sqrt(len(scale.centre)), math.sqrt(at_one / ITERATIONS))
    return step, spread


def penalty(scale: Scale) -> dict[str, Any]:
    """Return parameters of DP-penalty: small steps, each decision as noisy as pays best."""
    step, spread = _walk(scale)
    return {
        "proposal_sd": (step * scale.deviations).tolist(),
        "noise_multiplier": scale.decision_multiplier(step * spread),
        "clip_bound": scale.row_gradient,
    }


def hamiltonian(scale: Scale, num_steps: int = LEAPFROG_STEPS) -> dict[str, Any]:
    """Return parameters of DP-HMC: the mass is the precision, so that all scales are alike.

    Both multipliers are inverse to the step size, and the iterations to its square: it is as small
    as the budget asks for.
    """
    spread = float(np.linalg.norm(scale.deviations))
    # At a step size of 1: of a decision, and of gradients whose kicks move the energy by as much.
    ratio = scale.decision_multiplier(num_steps * spread)
    gradient = ENERGY_NOISE / math.sqrt(num_steps)
    gradient /= 2 * scale.row_gradient * spread * scale.tempering
    cost = (1 / ratio**2 + (num_steps + 1) / gradient**2) * scale.num_chains
    step = min(LONGEST_LEAPFROG, scale.mu / math.sqrt(cost * TRAJECTORIES))
    return {
        "step_size": step,
        "num_leapfrog_steps": num_steps,
        "ratio_noise_multiplier": ratio / step,
        "gradient_noise_multiplier": gradient / step,
        "gradient_clip_bound": scale.row_gradient,
        "ratio_clip_bound": scale.row_gradient,
        "mass": np.linalg.inv(scale.covariance).tolist(),
    }


def langevin(scale: Scale) -> dict[str, Any]:
    """Return parameters of DP-MALA: those of DP-HMC with one step."""
    one = hamiltonian(scale, 1)
    del one["num_leapfrog_steps"]
    return one


def batch_penalty(scale: Scale) -> dict[str, Any]:
    """Return parameters of the minibatch penalty: the steps of DP-penalty, for as much of a budget.

    Of b of n rows the variance of the estimated ratio is n / b times the squared whitened length
    of the move; the batch is as large as keeps it small.
    """
    step, spread = _walk(scale)
    length = scale.tempering * step**2 * len(scale.centre)
    batch = _batch(scale, length / BATCH_VARIANCE)
    largest = scale.num_rows / batch * scale.tempering * scale.row_gradient * step * spread
    change = penalised_sensitivity(largest, batch)
    return {
        "proposal_sd": (step * scale.deviations).tolist(),
        "batch_size": batch,
        "noise_multiplier": DECISION / change,
        "clip_bound": scale.row_gradient,
        "finite_population": True,
    }


def barker(scale: Scale) -> dict[str, Any]:
    """Return parameters of DP-Barker: steps whose row ratios fit below its clip bound.

    Row ratios are clipped at sqrt(b) / n. Of a variance of 2 the batch may have 1, and at least 1
    is noise: an iteration costs 4 b / n^2 of mu^2. Few row ratios exceed 2 / sqrt(d) times clip
    bound and length of the move.
    """
    dim, rows = len(scale.centre), scale.num_rows
    ratio = scale.row_gradient * float(np.linalg.norm(scale.deviations))
    ratio *= scale.tempering * min(1.0, 2 / math.sqrt(dim))
    # The share of the rows that a step of 1 would take.
    share = max(scale.tempering * dim / BATCH_VARIANCE, rows * ratio**2)
    affordable = scale.mu**2 * rows / (4 * share * scale.num_chains * ITERATIONS)
    step = min(LONGEST_STEP / math.sqrt(dim), math.sqrt(min(affordable, HALF / share)))
    return {
        "proposal_sd": (step * scale.deviations).tolist(),
        "batch_size": _batch(scale, step**2 * share),
    }


def _batch(scale: Scale, share: float) -> int:
    """Return the size of a batch that has about a share of the rows."""
    return math.ceil(min(max(share, SMALLEST), HALF) * scale.num_rows)


def gradient_langevin(scale: Scale) -> dict[str, Any]:
    """Return parameters of DP-SGLD: its only noise is the privacy noise."""
    step = min(DRIFT * scale.smallest**2, scale.diffusion / FEWEST)
    return {
        "batch_size": _batch(scale, HALF),
        "clip_bound": scale.row_gradient,
        "step_size": step * scale.num_rows,
    }


def thermostat(scale: Scale) -> dict[str, Any]:
    """Return parameters of DP-SGNHT: critically damped in the widest direction.

    With friction A a step e costs 2 e c^2 / A of mu^2.
    """
    friction = max(2 / scale.largest, 2 * SPIN / scale.smallest)
    step = min(SPIN * scale.smallest, friction * scale.diffusion / FEWEST)
    return {
        "batch_size": _batch(scale, HALF),
        "clip_bound": scale.row_gradient,
        "step_size": step * scale.num_rows,
        "friction": friction,
    }


RULES: Mapping[str, Callable[[Scale], dict[str, Any]]] = {
    "dp_penalty": penalty,
    "dp_hmc": hamiltonian,
    "dp_mala": langevin,
    "minibatch_penalty": batch_penalty,
    "dp_barker": barker,
    "dp_sgld": gradient_langevin,
    "dp_sgnht": thermostat,
}


def lacks(module: Any, params: Mapping[str, Any]) -> bool:
    """Return whether a method that has rules is left without a parameter that it needs."""
    if module.__name__.rpartition(".")[2] not in RULES:
        return False
    needed = [one.name for one in fields(module.Params) if one.default is MISSING]
    return any(name not in params for name in needed)


# What a search has in common with the chains after it.
SHARED = "accountant", "diagnostics", "noise", "num_chains", "seed"


def tuned(
    method: str,
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
    """Return all parameters of a method, and the search that told those that were left out.

    Parameters
    ----------
    method : str
        One of `RULES`.
    params : mapping
        Parameters that are given; they stay as they are.
    model, dataset, epsilon, delta
        As of `dpmc.fit`.
    num_chains, start, seed, noise, accountant, diagnostics
        As of `dpmc.fit`; the search begins at `start`.

    Raises
    ------
    DpmcError
        If the budget or the model is refused, before any row is used; a budget that buys no
        iteration of the method whatever a search finds is one of these.
    """
    chains = _Chains(method, delta, num_chains, accountant, diagnostics)
    easiest = dict(params)
    if method == BARKER:
        easiest = {"batch_size": math.ceil(SMALLEST * dataset.num_rows), **params}
    least = chains.least(epsilon, _easiest(model, num_chains, dataset.num_rows), easiest)
    if least is not None:
        raise too_small(method, num_chains, epsilon, least)
    parts = shares(method, epsilon, delta)
    checked = row_functions.without_errors(model)
    model_checks.check(checked, dataset.x.shape[1], dataset.bounds, dataset.invalid_rows == "zero")
    prior = Prior.of(checked)
    ledger, streams = Ledger(parts.search, noise), Streams.of(seed, f"search for {method}", 0)
    point = starting_point(checked, prior, start)
    spent = parts.spent(delta)
    with told(spent, ledger.records):
        centre = locate(WhitenedRows(checked, dataset), prior, Purse(ledger, streams.noise), point)
        scale = _scale(centre, prior, checked, parts.mu, num_chains, dataset.num_rows)
        chosen = {**RULES[method](scale), **params}
        if chains.least(epsilon, scale, params) is not None:
            chosen = {**chosen, **easiest}
    return chosen, Search(scale.centre, parts.event, ledger.records(), spent, parts.apart)


@dataclass(frozen=True)
class _Chains:
    """What chains after a search are asked for, as `dpmc.fit` has it."""

    method: str
    delta: float
    num_chains: int
    accountant: str | None
    diagnostics: Diagnostics

    def least(self, epsilon: float, scale: Scale, params: Mapping[str, Any]) -> float | None:
        """Return an epsilon that buys an iteration, None where the one that is given does.

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
            parts = shares(self.method, at, self.delta)
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
        module = registry.load("method", self.method)
        settings = registry.parameters(module, {**RULES[self.method](scale), **params})
        budget = (epsilon, self.delta) if parts.apart is None else parts.apart.rest
        allocate(
            module,
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
    """Return the error of an epsilon that buys no iteration beside a search."""
    return DpmcError(
        f"`epsilon` must be at least {least:.6g} for one iteration of {num_chains} chain(s) of "
        f"{method} after the search for its parameters, got {epsilon:g}"
    )


def _easiest(model: Model, num_chains: int, num_rows: int) -> Scale:
    """Return a scale at which chains are as cheap as they can be: rows hardly matter."""
    covariance = TINY**2 * np.eye(model.dim)
    return Scale(np.zeros(model.dim), covariance, TINY, 1.0, num_chains, num_rows, model.tempering)


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
