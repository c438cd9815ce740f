"""The plan of an automatic fit: what to expect of a budget before any row is touched."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from dpmc import checks
from dpmc.automatic import bounds
from dpmc.automatic.statement import WORTH_HAVING
from dpmc.automatic.whitened import WhitenedRows
from dpmc.privacy.accountants import gaussian
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.events import gaussian as release
from dpmc.rows import probes
from dpmc.rows.wide_gradients import slope_of
from dpmc.types import Dataset, DpmcError, Model

# Gradients that settle in the end are about so large a part of mu^2.
GRADIENTS = 0.7
# What clip bounds found by bisection and the pull of clipped rows add to the noise: measured on
# regressions, where it is 1.2 to 2.1.
OVERHEAD = 1.6
# Stages of a search that begins at the prior, as a rule.
STAGES = 15
# What a stage takes, in passes that compute gradients, beside what it takes for each parameter: two
# passes for curvature are d products of vectors, or 2d gradients where a model has no slope.
# Measured at d = 4, 10 and 30, where the times that follow were 0.9 to 1.7 times what fits took.
PASSES = 14
# Rows on which a pass is timed.
TIMED_ROWS = 20_000


@dataclass(frozen=True)
class Expectation:
    """What `dpmc.fit` is expected to give for a well-specified model.

    Parameters
    ----------
    mu : float
        Of Gaussian differential privacy: what epsilon and delta allow.
    effective_draws : float
        k: privacy displaces means as if they were those of k exact draws.
    displacement : float
        Root mean square error of a mean from privacy, in posterior standard deviations.
    widening : float
        Width of intervals over those without privacy.
    clip_bound : float
        Of whitened row gradients.
    row_gradients : int
        Gradients of single rows, or what takes as long.
    seconds : float
        On this machine, compiling left out.
    enough_epsilon, enough_rows : float and int
        Epsilon, or number of rows, at which widening is 2.
    uses_rows : bool
        Whether the budget is large enough for anything to be learned: the fit is the prior if not.
    """

    mu: float
    effective_draws: float
    displacement: float
    widening: float
    clip_bound: float
    row_gradients: int
    seconds: float
    enough_epsilon: float
    enough_rows: int
    uses_rows: bool

    def __str__(self) -> str:
        lines = [
            f"Privacy is expected to displace means by {self.displacement:.2g} posterior standard "
            f"deviations and to widen intervals by a factor of {self.widening:.3g}, if the model "
            "fits the rows.",
            f"About {self.row_gradients:.2g} row gradients, {self.seconds:.2g} seconds here.",
        ]
        if not self.uses_rows:
            lines = ["No row would be used: noise hides how many they are, and the prior is left."]
        if self.widening > WORTH_HAVING:
            lines.append(
                f"The budget does not carry this posterior: about epsilon {self.enough_epsilon:.2g}"
                f", or {self.enough_rows:,} rows, would widen intervals by {WORTH_HAVING:g}."
            )
        return "\n".join(lines)


def plan(model: Model, shape: tuple[int, int], *, epsilon: float, delta: float) -> Expectation:
    """Return what a budget is expected to buy; no row is needed.

    Parameters
    ----------
    model : Model
    shape : (int, int)
        Number of rows n, and of their columns.
    epsilon, delta : float
        The budget.

    Returns
    -------
    Expectation
        For rows that the model describes: whitened row gradients are then about normal, and their
        squared norms chi-squared over n. Rows of high leverage, or spread wider than the model
        says, cost more: `fit` finds out.

    Raises
    ------
    DpmcError
        If an argument is refused, or the model is on public probes.

    Examples
    --------
    >>> from dpmc.models import logistic
    >>> model = logistic.build(logistic.Params(3))
    >>> expected = plan(model, (100_000, 4), epsilon=1, delta=1e-6)
    >>> 1 < expected.widening < 1.2
    True
    """
    if not isinstance(model, Model):
        raise DpmcError(f"`model` must be a dpmc.Model, got {type(model).__name__}")
    num_rows, num_columns = shape
    checks.at_least("shape[0]", num_rows, 1)
    checks.at_least("shape[1]", num_columns, 1)
    mu = GaussianBudget.of(epsilon, delta).mu
    noise = expected_displacement(num_rows, model.dim, mu)
    most = math.sqrt(WORTH_HAVING**2 - 1)
    enough_mu = _least(lambda m: expected_displacement(num_rows, model.dim, m), mu, most)
    enough_rows = _least(lambda n: expected_displacement(n, model.dim, mu), num_rows, most)
    at_least = gaussian.epsilon({release(1 / enough_mu): 1}, delta)
    passes = STAGES * (4 * model.dim + 2 if slope_of(model) is None else PASSES + model.dim)
    return Expectation(
        mu=mu,
        effective_draws=noise**-2,
        displacement=noise,
        widening=math.hypot(1, noise),
        clip_bound=expected_bound(num_rows, model.dim, mu),
        row_gradients=passes * num_rows,
        seconds=passes * num_rows * _seconds_per_row(model, num_columns),
        enough_epsilon=max(at_least, epsilon),
        enough_rows=math.ceil(enough_rows),
        uses_rows=num_rows >= bounds.fewest_rows(mu),
    )


def expected_displacement(num_rows: float, dim: int, mu: float) -> float:
    """Return the root mean square error of a mean from privacy, in posterior deviations."""
    return OVERHEAD * 2 * expected_bound(num_rows, dim, mu) / (mu * math.sqrt(GRADIENTS))


def _least(displacement: Callable[[float], float], start: float, most: float) -> float:
    """Return the least value from `start` on at which a displacement is at most `most`."""
    low = high = start
    while displacement(high) > most:
        low, high = high, 2 * high
    while high > low * (1 + 1e-6):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if displacement(middle) > most else (low, middle)
    return high


def expected_bound(num_rows: float, dim: int, mu: float) -> float:
    """Return the norm that as many rows exceed as the last search for a clip bound aims at."""
    last = (1 - bounds.EXPLORE) * mu**2
    counts = bounds.GRADIENT_COUNTS * bounds.LAST_COUNTS * last
    target = max(
        2 * math.sqrt(dim / last),
        bounds.LAST_CLEAR * math.sqrt(bounds.LAST_BISECTIONS / counts),
    )
    share = min(max(target, 1.0) / num_rows, 0.25)
    return math.sqrt(float(stats.chi2.isf(share, dim)) / num_rows)


def _seconds_per_row(model: Model, num_columns: int) -> float:
    """Return the time of a whitened gradient of one row, measured on public probes."""
    public = probes.rows(model, num_columns)
    x = np.resize(public, (TIMED_ROWS, num_columns))
    rows = WhitenedRows(model, Dataset.of("probes", x, "zero"))
    theta, basis = np.zeros(model.dim), np.eye(model.dim)
    rows.gradients_beyond(theta, basis, [1.0])  # compiles
    started = time.perf_counter()
    rows.gradients_beyond(theta, basis, [1.0])
    return (time.perf_counter() - started) / TIMED_ROWS
