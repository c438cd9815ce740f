"""DP-SEP on a mixture with a clip bound that is fixed, or found under the same budget.

[vinaroz2022dpsep, section 7] asks for the latter. Each of the K = T N steps releases theta with
noise of multiplier z, computed from one row drawn afresh; a search adds Gaussian counts. Numbers of
releases and multipliers are public, so that both kinds of run have one dominating pair, composed
numerically. What is found sets the unit of later noise, never its multiplier.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmc.ep.mixture import engine
from dpmc.ep.mixture.loops import COUNTERS, MixtureLoopSettings, shared_pass
from dpmc.ep.mixture.model import MixtureFit, MixtureModel
from dpmc.ep.mixture.settings import MixtureSettings
from dpmc.ep.mixture.states import JOINT, MixtureScratch, MixtureState, MixtureTarget
from dpmc.privacy import events
from dpmc.privacy.accountants import subsampled
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.clipped import Clipped, row_count
from dpmc.privacy.ledger import Ledger
from dpmc.types import Array, Budget

# Share of mu^2 that counts have, log2 of the interval that they bisect, and damping of DP-SEP over
# all passes, as its method has it.
COUNT_SHARE = 0.05
LOW, HIGH = -6.0, 10.0
STEP = 0.1
# Relative precision of the noise multiplier.
PRECISION = 1e-3


@dataclass
class Run:
    """What a run may release, what it has released, and the bound that it used last.

    Parameters
    ----------
    ledger : Ledger
        Refuses what is not planned.
    noise_multiplier : float
        Of each step.
    counts : int
    count_multiplier : float
        Of each count; infinite without any.
    bound : float
    """

    ledger: Ledger
    noise_multiplier: float
    counts: int
    count_multiplier: float
    bound: float = math.nan


def begin(num_rows: int, num_passes: int, counts: int, budget: Budget) -> Run:
    """Run of so many passes and counts that spends a budget."""
    steps, count = _noise(num_rows, num_passes, counts, budget.epsilon, budget.delta)
    plan = {events.sampled_gaussian(steps, 1, num_rows): num_passes * num_rows}
    if counts:
        plan[events.gaussian(count)] = counts
    return Run(Ledger(plan), steps, counts, count)


@functools.lru_cache(maxsize=64)
def _noise(
    num_rows: int, num_passes: int, counts: int, epsilon: float, delta: float
) -> tuple[float, float]:
    """Least noise multiplier of steps, and that of counts."""
    mu = GaussianBudget.of(epsilon, delta).mu
    count = math.sqrt(counts / COUNT_SHARE) / mu if counts else math.inf
    searched = {events.gaussian(count): counts} if counts else {}

    def spent(multiplier: float) -> float:
        steps = events.sampled_gaussian(multiplier, 1, num_rows)
        return subsampled.delta({**searched, steps: num_passes * num_rows}, epsilon)

    low = high = math.log1p(num_rows / num_passes * mu**2) ** -0.5  # the limit of many steps
    while spent(high) > delta:
        low, high = high, 1.1 * high
    while spent(low) <= delta:
        low, high = low / 1.1, low
    while high / low > 1 + PRECISION:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if spent(middle) > delta else (low, middle)
    return high, count


def passes(
    rows: Array, model: MixtureModel, run: Run, num: int, bound: float, rng: np.random.Generator
) -> MixtureFit:
    """Run DP-SEP from the prior for so many of the passes of a run."""
    run.bound = bound
    settings = MixtureSettings(
        num_passes=num,
        step=STEP / num,
        clip="joint",
        clip_bound=bound,
        noise_multiplier=run.noise_multiplier,
        order="independent",
        repair="noise",
        debias=True,
    )
    return engine.fit(rows, model, settings, rng, ledger=run.ledger)


def longer(rows: Array, model: MixtureModel, place: MixtureFit, length: float) -> Clipped[float]:
    """Number of rows that have a factor longer than this, private.

    The cavity is that of SEP at a released fit, which steps of size 0 leave as it is.
    """
    num, dim = model.num_components, model.dim
    prior = MixtureTarget.of(model)
    state = MixtureState(place.h - prior.prior_h, place.precision - prior.prior_precision)
    settings = MixtureLoopSettings(0.0, 1 / len(rows), JOINT, float(length), False, 0.0)
    counters = np.zeros(len(COUNTERS), dtype=np.int64)
    order, none = np.arange(len(rows)), np.zeros((0, 1))
    scratch = MixtureScratch.of(num, dim)
    shared_pass(rows, order, none, np.zeros(len(rows)), prior, settings, state, counters, scratch)
    return row_count(int(counters[COUNTERS.index("clipped")]))


def search(
    number: Callable[[float], Clipped[float]], target: float, run: Run, rng: np.random.Generator
) -> float:
    """Length that about `target` rows exceed, by bisection with noisy counts."""
    low, high = LOW, HIGH
    for _ in range(run.counts):
        middle = (low + high) / 2
        count = run.ledger.release(number(2.0**middle), run.count_multiplier, rng)
        low, high = (middle, high) if count > target else (low, middle)
    return float(2.0 ** ((low + high) / 2))
