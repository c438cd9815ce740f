"""Run one method on one posterior under one budget."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from dpmc import checks, progress_bar, registry, types
from dpmc.fits import Fit
from dpmc.mcmc.chains import Run, Sampler, number_of_threads, threaded
from dpmc.mcmc.clip_shares import CHOICES, SHARE, Diagnostics, with_release, without_clip_counts
from dpmc.mcmc.clip_shares import release as released_diagnostics
from dpmc.mcmc.own_methods import is_own, name_of
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy import calibration
from dpmc.privacy.audit import audit
from dpmc.privacy.calibration import Plan
from dpmc.privacy.events import Event, parse, text
from dpmc.privacy.ledger import Ledger, Noise, noise_of
from dpmc.privacy.spending import Records, told
from dpmc.progress import Progress, silent
from dpmc.rng import Streams
from dpmc.rows import model_checks, row_functions
from dpmc.types import (
    CLIPS_OUTSIDE,
    LOW_BITS,
    NO_GUARANTEE,
    SEED,
    Array,
    Budget,
    Dataset,
    Diagnostic,
    DpmcError,
    Guarantee,
    Model,
    swapped,
)
from dpmc.types.results import first_half

# Relative margin where budgets are added or subtracted.
ROUNDING = 2.0**-50
# What proves a sum of epsilons and of deltas.
SUM = "composition"
# How chains run: arguments of `fit` that `dpmc.fit` takes beside a method.
OPTIONS = ("accountant", "num_iterations", "max_iterations", "num_threads", "diagnostics")
Release = Callable[[Run, Array, Ledger], Mapping[str, Diagnostic]]


@dataclass(frozen=True)
class Apart:
    """A budget of which a search and the chains after it have parts of their own.

    Parameters
    ----------
    epsilon, delta : float
        The whole.
    search_epsilon, search_delta : float
        What the search has, less.
    """

    epsilon: float
    delta: float
    search_epsilon: float
    search_delta: float

    @property
    def rest(self) -> tuple[float, float]:
        """Epsilon and delta of the chains, rounded down."""
        return (
            (self.epsilon - self.search_epsilon) * (1 - ROUNDING),
            (self.delta - self.search_delta) * (1 - ROUNDING),
        )

    @property
    def guarantee(self) -> Guarantee:
        """Of search and chains together."""
        return Guarantee(self.epsilon, self.delta, accountant=SUM)


@dataclass(frozen=True)
class Search:
    """Result of a search before the chains, under the same budget.

    Parameters
    ----------
    start : ndarray of shape (d,)
        Where chains begin, from released numbers.
    event : event
        One release that costs at least as much as all that were made.
    records : tuple of (str, int)
        What was released.
    spent : Guarantee
        Of all of it.
    apart : Apart or None
        How the budget is divided; None where `event` is in the plan of the chains.
    """

    start: Array
    event: Event
    records: Records
    spent: Guarantee
    apart: Apart | None = None


def fit(
    module: ModuleType,
    model: Model,
    dataset: Dataset,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    accountant: str | None = None,
    num_iterations: int | None = None,
    max_iterations: int | None = None,
    num_chains: int = 4,
    num_threads: int | None = None,
    start: Array | None = None,
    seed: int | None = None,
    noise: Noise | None = None,
    progress: bool = True,
    diagnostics: Diagnostics = "private",
    search: Search | None = None,
    **params: Any,
) -> Fit:
    """Chains of one method on one posterior, all released together under the one budget.

    :func:`dpmc.fitting.fit` is the way in for a user.

    Parameters
    ----------
    module : module
        The method, as `dpmc.mcmc.own_methods.resolve` makes it.
    model, dataset, epsilon, delta, num_chains, start, seed, noise, progress
        As of :func:`dpmc.fitting.fit`.
    accountant : str, optional
        What turns the budget into iterations; by default the tightest that is valid.
    num_iterations : int, optional
        Iterations per chain of a method without privacy; otherwise the budget decides.
    max_iterations : int, optional
        Iterations per chain of a private method to stop at, where its budget buys more.
        What is not run is not spent: the guarantee is better than the budget, unless a search
        chose parameters of the method.
    num_threads : int, optional
        Threads that chains run in, with the same results whatever their number; by default one for
        each processor where the rows are many, and a single one otherwise.
    diagnostics : {"private", "none", "exact"}
        How to report the shares of clipped rows: released with noise from one hundredth of the
        budget, in ``Fit.diagnostics``; not at all; or exact in ``Fit.info`` and ``Fit.totals``,
        which the guarantee then names as outside of it. A method without privacy has them exact.
    search : Search, optional
        What the budget has been spent on already.
    **params
        Of the method, as in its ``Params``.

    Returns
    -------
    Fit
        Draws, the ledger, and what the budget bought.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmc.mcmc.methods import dp_penalty
    >>> from dpmc.models import gaussian_mean
    >>> rows = np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = gaussian_mean.build(gaussian_mean.Params(2, [[1, 0], [0, 1]], prior_variance=100))
    >>> result = fit(
    ...     dp_penalty, model, Dataset("rows", rows), epsilon=4, delta=1e-6, num_chains=1,
    ...     max_iterations=20, progress=False, proposal_sd=0.05,
    ...     ratio_noise_multiplier=20, ratio_clip_bound=3.0,
    ... )
    >>> result.draws.shape
    (1, 20, 2)
    >>> result.guarantee.epsilon < 4
    True
    """
    method, noise = name_of(module), noise_of(noise, published=seed is not None)
    settings = registry.parameters(module, params)
    checks.at_least("num_chains", num_chains, 1)
    checks.one_of("diagnostics", diagnostics, CHOICES)
    before: tuple[tuple[Event, int], ...] = ()
    if search is not None and search.apart is not None:
        epsilon, delta = search.apart.rest
    elif search is not None:
        before = ((search.event, 1),)
    plan, iterations = allocate(
        module,
        settings,
        dataset.num_rows,
        num_chains,
        num_iterations,
        epsilon,
        delta,
        accountant,
        max_iterations,
        diagnostics,
        before,
    )
    starts = start_points(start if search is None else search.start, model.dim, num_chains)
    model = row_functions.without_errors(model)
    nan_rows = dataset.invalid_rows == "zero"
    model_checks.check_prior(model, starts)
    model_checks.check(model, dataset.x.shape[1], dataset.bounds, nan_rows)
    posterior = Posterior(model, dataset)
    threads = number_of_threads(num_threads, num_chains, dataset.x.size)
    sampler = threaded(lambda: module.sampler(posterior, settings), threads)
    outside = [] if dataset.bounds_source == "public" else ["bounds taken from the data"]
    release = None
    if plan is not None:
        outside += [CLIPS_OUTSIDE] if diagnostics == "exact" else []
        outside += [f"what {method} does besides its ledger"] if is_own(module) else []
        outside += [] if seed is None else [SEED]
        outside += [] if noise == "discrete" else [LOW_BITS]
        release = _releaser(module, settings, posterior, plan, seed, method, diagnostics)
    streams = [Streams.of(seed, method, chain) for chain in range(num_chains)]
    with progress_bar.shown(progress, "it") as report:
        found = run(
            sampler, plan, iterations, starts, streams, outside, report, release, noise, search
        )
    return replace(found, plan=replace(found.plan, method=method))


def _releaser(
    module: ModuleType,
    settings: Any,
    posterior: Posterior,
    plan: Plan,
    seed: int | None,
    method: str,
    diagnostics: str,
) -> Release | None:
    """Function that releases the shares of clipped rows in place of their counts."""
    if diagnostics == "exact":
        return None
    if diagnostics == "none":
        return lambda result, starts, ledger: {}
    streams = Streams.of(seed, method, "diagnostics")
    noise_multiplier = calibration.share_multiplier(plan.budget, SHARE)

    def release(result: Run, starts: Array, ledger: Ledger) -> dict[str, Diagnostic]:
        return released_diagnostics(
            module,
            settings,
            posterior,
            result,
            starts,
            noise_multiplier,
            ledger,
            streams.chain,
            streams.noise,
        )

    return release


def allocate(
    module: ModuleType,
    settings: Any,
    num_rows: int,
    num_chains: int,
    num_iterations: int | None,
    epsilon: float | None,
    delta: float | None,
    accountant: str | None = None,
    max_iterations: int | None = None,
    diagnostics: Diagnostics = "exact",
    before: tuple[tuple[Event, int], ...] = (),
) -> tuple[Plan | None, int]:
    """Plan that a budget buys, up to `max_iterations`, and the iterations of each chain.

    Private diagnostics, and what was released `before`, are paid for first.
    """
    name = module.__name__.rpartition(".")[2]
    releases = module.releases(settings, num_rows)
    if releases is None:
        if epsilon is not None or delta is not None:
            raise DpmcError(
                f"`epsilon` must be None for {name}, which has no privacy guarantee, got {epsilon}"
            )
        if max_iterations is not None:
            raise DpmcError(
                f"`max_iterations` must be None for {name}, which has no budget, got "
                f"{max_iterations}"
            )
        if num_iterations is None:
            raise DpmcError(
                f"`num_iterations` must be an integer of at least 1 for {name}, got None"
            )
        checks.at_least("num_iterations", num_iterations, 1)
        return None, num_iterations
    if epsilon is None or delta is None:
        which = "epsilon" if epsilon is None else "delta"
        raise DpmcError(f"`{which}` must be a number for {name}, which needs a budget, got None")
    if num_iterations is not None:
        raise DpmcError(
            f"`num_iterations` must be None, since the budget of {name} decides, got "
            f"{num_iterations}"
        )
    releases = replace(releases, once=(*releases.once, *before))
    budget = Budget(
        epsilon, delta, accountant or calibration.best_accountant(releases.counts(1, 1))
    )
    if diagnostics == "private":
        releases = with_release(releases, budget)
    plan = calibration.plan(releases, budget, num_chains, max_iterations)
    return plan, plan.num_iterations


def run(
    sampler: Sampler,
    plan: Plan | None,
    num_iterations: int,
    starts: Array,
    streams: Sequence[Streams],
    outside: Sequence[str],
    progress: Progress = silent,
    release: Release | None = None,
    noise: Noise = "continuous",
    search: Search | None = None,
) -> Fit:
    """Run the chains of one replicate under `plan` and say what privacy they have.

    Parameters
    ----------
    sampler : Sampler
        A method that knows its posterior.
    plan : Plan or None
        What the budget bought; ``None`` for a method without privacy.
    num_iterations : int
        Iterations of each chain.
    starts : ndarray of shape (chains, d)
        Start points.
    streams : sequence of Streams
        One for each chain.
    outside : sequence of str
        Uses of the private rows that no budget covers.
    progress : callable
        Told the iterations done and to do.
    release : callable ``(Run, starts, ledger) -> mapping of str to Diagnostic``, optional
        Releases diagnostics; the exact clip counts are then left out. Without it they stay.
    noise : {"continuous", "discrete"}
        See `fit`.
    search : Search, optional
        What was released before. The guarantee is then the budget: the noise of the chains was
        chosen by outputs, and so would be a smaller epsilon.
    """
    ledger = Ledger(plan, noise)
    before = () if search is None else search.records
    guarantee = replace(
        _guarantee(plan, search), outside=tuple(outside), noise="" if plan is None else noise
    )

    def records() -> Records:
        return _added(before, ledger.records())

    with told(guarantee, lambda: records() if ledger.counts else ()):
        result = sampler(starts, num_iterations, streams, ledger, progress)
        released: Mapping[str, Diagnostic] = {}
        if release is not None:
            released = release(result, starts, ledger)
        if plan is not None and result.status == "complete":
            _check_releases(plan, search, ledger.counts, result)
        if release is not None:
            result = without_clip_counts(result)
        bought = types.Plan(num_iterations=num_iterations, num_chains=len(starts))
        if plan is not None:
            bought = _bought(plan, search, ledger)
    return Fit(
        draws=None if result.draws is None else swapped(result.draws),
        info={name: swapped(values) for name, values in result.info.items()},
        totals=result.totals,
        status=result.status,
        ledger=records(),
        guarantee=guarantee,
        plan=bought,
        diagnostics=released,
        warm_up=0 if result.draws is None else first_half(len(result.draws)),
    )


def _guarantee(plan: Plan | None, search: Search | None) -> Guarantee:
    """Guarantee of a run before anything of it is known."""
    if plan is None:
        return NO_GUARANTEE
    if search is None:
        return plan.guarantee
    if search.apart is not None:
        return search.apart.guarantee
    return replace(plan.guarantee, epsilon=plan.budget.epsilon, delta=plan.budget.delta)


def _check_releases(
    plan: Plan, search: Search | None, counts: Mapping[Event, int], result: Run
) -> None:
    """Refuse a complete run that released less than its plan holds.

    A move that leaves the finite numbers ends before its last release, and nothing else does.
    """
    moves = plan.num_iterations * plan.num_chains
    diverged = int(np.sum(result.totals.get("diverged", 0)))
    for event, planned in plan.counts.items():
        if search is not None and event == search.event:
            planned -= search.apart is None  # released before
        made = counts.get(event, 0)
        if made * moves < planned * (moves - diverged):
            raise DpmcError(
                f"a complete run must make all {planned} releases of {text(event)} that its plan "
                f"holds through its ledger, got {made}"
            )


def _bought(plan: Plan, search: Search | None, ledger: Ledger) -> types.Plan:
    """Plan of the fit, with what the budget bought."""
    apart = None if search is None else search.apart
    records = ledger.records()
    if search is not None and apart is None:
        records = _added(search.records, records)
    audited = replace(_audited(records, plan.budget.delta), outside=())
    bought = types.Plan(
        epsilon=plan.budget.epsilon,
        delta=plan.budget.delta,
        accountant=plan.budget.accountant,
        num_chains=plan.num_chains,
        num_iterations=plan.num_iterations,
        releases={text(event): count for event, count in plan.counts.items()},
        audit=audited,
    )
    if apart is None:
        return bought
    together = (apart.search_epsilon + audited.epsilon) * (1 + ROUNDING)
    return replace(
        bought,
        epsilon=apart.epsilon,
        delta=apart.delta,
        search=(apart.search_epsilon, apart.search_delta),
        audit=Guarantee(together, apart.delta, accountant=SUM),
    )


def _added(first: Records, second: Records) -> Records:
    """Records of two ledgers, sorted as each of them is."""
    if not first:
        return second
    total = Counter(dict(first)) + Counter(dict(second))
    return tuple(sorted(total.items()))


@functools.cache
def _audited(records: Records, delta: float) -> Guarantee:
    """Audit what was released; replicates of one plan release the same and share it.

    Records are sorted: events in the order of their hashes would be composed in another
    order by another process, and the last digits of the result would differ.
    """
    return audit(parse(records), delta)


def start_points(start: Array | None, dim: int, num_chains: int) -> Array:
    """One start point for each chain, shape (chains, d)."""
    points = np.zeros(dim) if start is None else np.asarray(start, dtype=np.float64)
    if points.shape not in ((dim,), (num_chains, dim)) or not np.isfinite(points).all():
        raise DpmcError(
            f"`start` must be finite, of shape ({dim},) or ({num_chains}, {dim}), got "
            f"{points.shape}"
        )
    return np.broadcast_to(points, (num_chains, dim)).copy()
