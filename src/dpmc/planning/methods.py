"""Plans of methods with a name: iterations, parameters, releases and time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from html import escape
from types import ModuleType
from typing import Any

import numpy as np
from scipy import stats

from dpmc import checks, registry, tuning
from dpmc.automatic import bounds
from dpmc.fits.remarks import FEW_ITERATIONS
from dpmc.fitting import check_accountant, chosen
from dpmc.mcmc.clip_shares import CHOICES, Diagnostics
from dpmc.mcmc.fit import allocate
from dpmc.mcmc.own_methods import name_of
from dpmc.mcmc.posterior import Posterior
from dpmc.mcmc.scale import Scale
from dpmc.privacy import events
from dpmc.privacy.calibration import TooSmallError
from dpmc.privacy.events import Event
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.rows import model_checks, probes, row_functions
from dpmc.types import Dataset, DpmcError, Model

# Rows, or rows of a batch, and iterations that a method is timed on.
TIMED_ROWS, TIMED_ITERATIONS = 20_000, 10
UNCLIPPED, SHORT = 1e6, 1e-12
# Of the clip bound that a search with a quarter of a budget ends with, over that of rows whose
# gradients are normal: the geometric mean of 48 fits of regressions, where it is 0.8 to 3.7.
BOUND_OVERHEAD = 1.7
# Gradients that settle in a search are about so large a part of mu^2, and clip bounds found by
# bisection and the pull of clipped rows add so much to their noise: 1.2 to 2.1 on regressions.
GRADIENTS, OVERHEAD = 0.7, 1.6


@dataclass(frozen=True)
class MethodPlan:
    """What chains of one method are, if `dpmc.fit` runs them.

    Parameters
    ----------
    method : str
        Its name.
    num_iterations, num_chains : int
        Iterations of each chain, and chains.
    params : mapping of str to object
        Parameters of the method. Those that are `chosen` are what is expected, with lengths in
        posterior standard deviations.
    chosen : tuple of str
        Parameters that are left out, and chosen from a search under the same budget.
    releases : mapping of str to int
        What is released and how often, by all chains together.
    epsilon, delta : float
        The guarantee, at most the budget.
    displacement : float
        Distance of the start from the posterior mean because of privacy noise, in each direction
        and in posterior standard deviations, if the model fits the rows; NaN without a search.
    seconds : float
        Of processor time on this machine, all chains together; compiling left out.

    Examples
    --------
    >>> MethodPlan("dp_penalty", 2000, 4, {}, (), {"gaussian(20.0)": 8000}, 1.0, 1e-6, 0.5, 3.0)
    2,000 iterations of each of 4 chains of dp_penalty, in about 3 seconds of processor time here.
    Releases: 8,000 gaussian(20.0), which is (1, 1e-06)-DP.
    Privacy is expected to displace the start by 0.5 posterior standard deviations, if the model \
fits the rows.
    """

    method: str
    num_iterations: int
    num_chains: int
    params: Mapping[str, Any]
    chosen: tuple[str, ...]
    releases: Mapping[str, int]
    epsilon: float
    delta: float
    displacement: float
    seconds: float

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        yield (
            f"{self.num_iterations:,} iterations of each of {self.num_chains} chains of "
            f"{self.method}, in about {self.seconds:.2g} seconds of processor time here."
        )
        if self.num_iterations < FEW_ITERATIONS:
            yield (
                "These are too few for any sampler: a larger epsilon, fewer chains or larger noise "
                "multipliers buy more."
            )
        released = ", ".join(f"{count:,} {text}" for text, count in self.releases.items())
        searched = " after the search" if self.chosen else ""
        yield f"Releases: {released}{searched}, which is ({self.epsilon:.4g}, {self.delta:.3g})-DP."
        if self.chosen:
            values = ", ".join(f"{name} {_shown(self.params[name])}" for name in self.chosen)
            yield f"Chosen along the way, about, in posterior standard deviations: {values}."
        if not math.isnan(self.displacement):
            yield (
                f"Privacy is expected to displace the start by {self.displacement:.2g} posterior "
                "standard deviations, if the model fits the rows."
            )

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in self._lines())


def plan(
    model: Model,
    num_rows: int,
    num_columns: int,
    epsilon: float,
    delta: float,
    method: Any,
    *,
    num_chains: int,
    accountant: str | None,
    max_iterations: int | None,
    diagnostics: Diagnostics | None,
    params: Mapping[str, Any],
) -> MethodPlan:
    """What chains of a method are for a budget; arguments are as of `dpmc.plan`."""
    module = chosen(method, params, plan)
    assert module is not None  # the automatic method is planned by fits
    diagnostics = "private" if diagnostics is None else diagnostics
    checks.one_of("diagnostics", diagnostics, CHOICES)
    if accountant is not None:
        check_accountant(accountant)
    fixed, name = params, name_of(module)
    try:
        found: dict[str, Any] = {}
        before: tuple[tuple[Event, int], ...] = ()
        displacement, apart = math.nan, None
        if tuning.lacks(module, fixed):
            parts = tuning.shares(module, epsilon, delta)
            search, apart = parts.search.mu, parts.apart
            displacement = _displacement(num_rows, model.dim, search)
            rules = module.tuned(_scale(model, num_rows, parts.mu, num_chains))
            found = {key: value for key, value in rules.items() if key not in fixed}
            before = () if apart is not None else ((events.gaussian(1 / search), 1),)
        settings = registry.parameters(module, {**found, **fixed})
        made, iterations = allocate(
            module,
            settings,
            num_rows,
            num_chains,
            None,
            *((epsilon, delta) if apart is None else apart.rest),
            accountant,
            max_iterations,
            diagnostics,
            before,
        )
        assert made is not None  # a method without privacy is refused
        # What a search chooses is no number to quote: the budget holds.
        budget = (epsilon, delta) if found else (made.guarantee.epsilon, made.guarantee.delta)
        seconds = iterations * num_chains * _seconds(module, settings, model, num_rows, num_columns)
    except DpmcError as error:
        if isinstance(error, TooSmallError) and apart is not None:
            least = error.least * epsilon / apart.rest[0] * (1 + 1e-3)
            error = tuning.too_small(name, num_chains, epsilon, least)
        raise error from None
    values = {one.name: getattr(settings, one.name) for one in fields(settings)}
    return MethodPlan(
        method=name,
        num_iterations=iterations,
        num_chains=int(num_chains),
        params=values,
        chosen=tuple(found),
        releases={events.text(event): count for event, count in made.counts.items()},
        epsilon=budget[0],
        delta=budget[1],
        displacement=displacement,
        seconds=seconds,
    )


def _scale(model: Model, num_rows: int, mu: float, num_chains: int) -> Scale:
    """What chains are scaled by if all directions are one posterior deviation wide."""
    bound = BOUND_OVERHEAD * _bound(num_rows, model.dim, mu)
    identity = np.eye(model.dim)
    centre = np.zeros(model.dim)
    return Scale(centre, identity, bound, mu, int(num_chains), num_rows, model.tempering)


def _displacement(num_rows: int, dim: int, mu: float) -> float:
    """Root mean square error of a start, in posterior deviations.

    Of rows that the model describes: whitened row gradients are then about normal.
    """
    return OVERHEAD * 2 * _bound(num_rows, dim, mu) / (mu * math.sqrt(GRADIENTS))


def _bound(num_rows: int, dim: int, mu: float) -> float:
    """Norm that as many rows exceed as the last search for a clip bound aims at."""
    last = (1 - bounds.EXPLORE) * mu**2
    counts = bounds.GRADIENT_COUNTS * bounds.LAST_COUNTS * last
    target = max(
        2 * math.sqrt(dim / last),
        bounds.LAST_CLEAR * math.sqrt(bounds.LAST_BISECTIONS / counts),
    )
    share = min(max(target, 1.0) / num_rows, 0.25)
    return math.sqrt(float(stats.chi2.isf(share, dim)) / num_rows)


def _seconds(
    module: ModuleType, settings: Any, model: Model, num_rows: int, num_columns: int
) -> float:
    """Time of one iteration of one chain, measured on public rows."""
    checked = row_functions.without_errors(model)
    model_checks.check(checked, num_columns, {}, False)
    # Parameters are not on the scale of made-up rows: chains that stay where they are, and clip
    # nothing, take about as long as those of the plan.
    names = [one.name for one in fields(settings)]
    still = {name: UNCLIPPED for name in names if name.endswith("clip_bound")}
    still |= {name: SHORT for name in names if name == "step_size"}
    settings = replace(settings, **still)
    batch = getattr(settings, "batch_size", None)
    if batch is not None:
        timed = min(batch, TIMED_ROWS)
        settings, times = replace(settings, batch_size=timed), batch / timed
        timed = min(num_rows, 2 * timed)
    else:
        timed = min(num_rows, TIMED_ROWS)
        times = num_rows / timed
    # Examples alone: between two of them a row may be none, which takes longer.
    public = probes.rows(checked, num_columns) if model.example_rows is None else model.example_rows
    x = np.resize(public, (timed, num_columns))
    run = module.sampler(Posterior(checked, Dataset.of("probes", x, "zero")), settings)
    start = np.zeros((1, model.dim))
    for iterations in (1, TIMED_ITERATIONS):  # the first compiles
        streams = Streams.of(0, "plan", iterations)
        begun = time.process_time()
        run(start, iterations, [streams], Ledger())
        spent = time.process_time() - begun
    return float(times * spent / TIMED_ITERATIONS)


def _shown(value: Any) -> str:
    """Parameter in few digits; of equal numbers one."""
    try:
        numbers = np.unique(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        return str(value)
    if len(numbers) == 2 and numbers[0] == 0 and np.ndim(value) == 2:
        return f"{numbers[1]:.3g} I"
    return f"{numbers[0]:.3g}" if len(numbers) == 1 else str(value)
