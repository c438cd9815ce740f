"""Centre and shape of a posterior by noisy Newton steps, with noise chosen along the way.

A stage finds clip bounds by noisy counts and releases the curvature and the gradient of the
log-likelihood at one point, in coordinates whitened by what is known so far. All releases together
tell where the mode is (:mod:`dpmc.automatic.knowledge`). If the step to it is mostly signal, it is
taken, shortened by its share of noise and held back by a line search; if it is mostly noise, more
is spent at the same point, where linear algebra adds releases up without an error.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field

import numpy as np

from dpmc.automatic import curvature as curvatures
from dpmc.automatic import knowledge
from dpmc.automatic.curvature import Curvature, NoisyCurvature
from dpmc.automatic.federated import FederatedRows
from dpmc.automatic.knowledge import Estimate, Measurement
from dpmc.automatic.normal_prior import NormalPrior
from dpmc.automatic.prior import Prior
from dpmc.automatic.purse import WIDEST, Purse, count_noise, search
from dpmc.automatic.tail import Tail
from dpmc.automatic.whitened import WhitenedRows
from dpmc.progress import Progress, silent
from dpmc.rows.vectors import unpack
from dpmc.types import Array

# Share of the budget that stages before the last may spend, and of what is left of it that one may.
EXPLORE = 0.5
PORTION = 1 / 3
# Shares of the budget at which the rest of it is explored in one stage, or not at all.
WHOLE, NOTHING = 0.075, 0.03
# Share of what is left for a stage between them, where noise of the curvature over the distance
# that is left would do more to the mode than so large a share of the noise of the last gradient.
SETTLE, UNSETTLED = 0.35, 0.7
# How much more is spent where a step is mostly noise.
GROWTH = 4.0
MOST_STAGES = 60
# Noise of the first gradient, as a share of what all rows together could contribute at the bound.
FIRST_NOISE = 1 / 30
# Noise of the first counts, as a share of the rows.
FIRST_COUNTS = 1 / 16
# Shares of a stage, and of the last: counts, curvature; a line search before the last alone.
COUNTS, LAST_COUNTS = 0.15, 0.1
CURVATURE, LAST_CURVATURE = 0.25, 0.12
LINE = 0.08
LAST_GRADIENT = 0.68
# Of the counts, for the clip bound of gradients; the rest is for that of curvatures.
GRADIENT_COUNTS = 0.75
TRIALS, TRIALS_PAID = 7, 3
# Bisections of the first search, from 1e-30 to 1e30, and of later ones, a factor 2**1.5 each way.
FIRST_BISECTIONS, BISECTIONS, REACH = 7, 3, 1.5
# Standard deviations of a count that the rows to clip lie above zero; 1 at the last stage.
CLEAR = 2.5
# Share of a stage for the tail of row gradients, of which a part is for counts; how far below the
# clip bound it begins, twice: a factor; and the share of the budget that such a stage has.
TAIL, TAIL_COUNTS, TAIL_RATIO = 0.1, 0.4, 2**0.75
TAIL_WORTH = 0.03
# Rows that a search for a bound clips, as a share of those that it aims at; of the last one.
CLIPPED, LAST_CLIPPED = 0.75, 1.2
# Least curvature over the largest: below are rounding errors.
ROUNDING = 1e-14
# A step is taken if at least half of its squared length is signal.
SIGNAL = 0.5
# Noise of a line search that a slope must fall below zero by, for the step to be too long.
TOO_FAR = 4.0
# Longest step in deviations of the prior, and how often one is halved that leaves its support.
FARTHEST_STEP, HALVINGS = 10.0, 60


@dataclass
class Centre:
    """What is known of a posterior after all stages.

    Parameters
    ----------
    theta : ndarray of shape (d,)
        Last point.
    basis : ndarray of shape (d, d)
        Whitening coordinates there: ``theta + basis @ z``.
    curvature : Curvature
        Of the log-likelihood, in these coordinates.
    estimate : Estimate
        Of the step to where the likelihood's score vanishes.
    gradient_bound : float
        Clip bound of whitened row gradients at the last stage.
    gradient_noise : float
        Standard deviation of the noise of the last whitened gradient.
    step, step_noise : float
        Length of the last step, in posterior standard deviations, and of its noise.
    stages : list of dict
        What each stage did, in released numbers.
    """

    theta: Array
    basis: Array
    curvature: Curvature
    estimate: Estimate
    gradient_bound: float
    gradient_noise: float
    step: float
    step_noise: float
    stages: list[dict[str, float]] = field(default_factory=list)


@dataclass
class _Bounds:
    """Log2 of the clip bounds of the last stage, in the units of the present basis."""

    gradient: float
    curvature: float


def locate(
    rows: WhitenedRows | FederatedRows,
    prior: Prior,
    purse: Purse,
    start: Array,
    progress: Progress = silent,
) -> Centre:
    """Return centre and shape, for all that the purse holds.

    Parameters
    ----------
    rows : WhitenedRows or FederatedRows
    prior : Prior
    purse : Purse
    start : ndarray of shape (d,)
        A public point.
    progress : callable
        Told after each stage how many hundredths of the purse are spent.
    """
    stages = _Search(rows, prior, purse, start)
    last = False
    while not last:
        last = stages.stage()
        spent = 100 if last else int(100 * (1 - purse.left / stages.total))
        progress(spent, 100, f"stage {len(stages.stages)}")
    return stages.centre()


class _Search:
    """The stages of one search."""

    def __init__(
        self, rows: WhitenedRows | FederatedRows, prior: Prior, purse: Purse, start: Array
    ) -> None:
        self.rows, self.purse = rows, purse
        self.exact_prior, self.prior = prior, NormalPrior.of(prior, start)
        self.dim, self.num_rows = rows.dim, rows.num_rows
        self.theta, self.basis = start, self.prior.basis
        self.total = purse.left
        self.cost = (math.sqrt(self.dim) / (FIRST_NOISE * self.num_rows)) ** 2
        self.bounds: _Bounds | None = None
        self.measurements: list[Measurement] = []
        self.released: list[NoisyCurvature] = []
        self.tail = Tail.unknown(self.dim, self.num_rows, TAIL_RATIO)
        self.stages: list[dict[str, float]] = []
        self.settled = False
        self.distance = math.inf

    def stage(self) -> bool:
        """Run one stage; return whether it was the last."""
        left = self.purse.left
        room = left - (1 - EXPLORE) * self.total
        explored = len(self.stages) == MOST_STAGES - 1 or room < NOTHING * self.total
        settling = explored and not self.settled and self._unsettled(left)
        last = explored and not settling
        most = room * PORTION if room > WHOLE * self.total else room
        cost = left if last else min(self.cost, most)
        if settling:
            self.settled, cost = True, SETTLE * left
        counts = self._count_cost(cost, last)
        line = 0.0 if last else LINE * cost
        curve = (LAST_CURVATURE if last else CURVATURE) * cost
        bounds, self.target = self._clip_bounds(counts, last, left)
        curvature_bound, self.bound = 2.0**bounds.curvature, 2.0**bounds.gradient
        packed, noise = self.purse.total(
            self.rows.curvature_sum(self.theta, self.basis, curvature_bound), curvature_bound, curve
        )
        self.released.append(NoisyCurvature(unpack(packed, self.dim), noise, self.basis))
        self.curvature = curvatures.combine(self.released)
        tail = TAIL * cost if cost >= TAIL_WORTH * self.total else 0.0
        if tail:
            self.tail = self._find_tail(tail)
        rest = self.purse.left if last else cost * (1 - COUNTS) - curve - line - tail
        score, self.noise = self.purse.total(
            self.rows.gradient_sum(self.theta, self.basis, self.bound), self.bound, rest
        )
        self._measure(score, last)
        step, noise_length = self._solve(for_inference=last)
        length = math.sqrt(float(step @ self.curvature.for_steps() @ step))
        self.step, self.step_noise = length, noise_length
        signal = 1 - (noise_length / length) ** 2 if noise_length < length else 0.0
        self._note(cost, length, noise_length)
        if last:
            return True
        self.distance = length
        if signal < SIGNAL:
            self.cost *= GROWTH
            self._whiten(bounds)
            return False
        taken = self._line_search(step, signal, line)
        self.distance = noise_length if taken > 0.9 * signal else length
        self.theta = self.theta + self.basis @ (taken * step)
        if taken < 0.9 * SIGNAL:
            self.measurements = []  # the model is not linear over such a distance
        self._whiten(bounds)
        return False

    def centre(self) -> Centre:
        """Return what is known after the last stage."""
        return Centre(
            self.theta,
            self.basis,
            self.curvature,
            self.estimate,
            self.bound,
            self.noise,
            self.step,
            self.step_noise,
            self.stages,
        )

    def _unsettled(self, left: float) -> bool:
        """Return whether the last gradient would be used over too long a distance."""
        curved = self.curvature.noise * self.distance
        return bool(curved > UNSETTLED * 2 * self.bound / math.sqrt(LAST_GRADIENT * left))

    def _count_cost(self, cost: float, last: bool) -> float:
        if self.bounds is not None:
            return (LAST_COUNTS if last else COUNTS) * cost
        # The first search is wrong by orders of magnitude if one count is.
        needed = 2 * FIRST_BISECTIONS / (FIRST_COUNTS * self.num_rows) ** 2
        return max(COUNTS * cost, min(needed, 0.3 * self.total))

    def _clip_bounds(self, cost: float, last: bool, left: float) -> tuple[_Bounds, float]:
        """Return log2 of the clip bounds, and how many row gradients the first may clip.

        The bias of m clipped rows is at most about m bounds, the noise of the gradient 2 / mu of
        them in each direction: m of 2 sqrt(d) / mu makes them alike.
        """
        found, targets = [], []
        known = self.bounds or _Bounds(0.0, 0.0)
        share = GRADIENT_COUNTS if self.bounds else 0.5
        for beyond, middle, part in (
            (self.rows.gradients_beyond, known.gradient, share * cost),
            (self.rows.curvatures_beyond, known.curvature, (1 - share) * cost),
        ):
            steps, reach = (BISECTIONS, REACH) if self.bounds else (FIRST_BISECTIONS, WIDEST)
            noise = self.purse.spread * count_noise(steps, part)
            targets.append(self._target(noise, last, left))
            counts = functools.partial(beyond, self.theta, self.basis)
            low, high = middle - reach, middle + reach
            bound = search(self.purse, counts, targets[-1], low, high, steps, part)
            found.append(math.log2(bound))
        return _Bounds(*found), targets[0]

    def _target(self, noise: float, last: bool, left: float) -> float:
        most = self.num_rows / 4
        if last:
            target = max(noise, 2 * math.sqrt(self.dim / left))
        else:
            # One wrong count of the first search is a wrong order of magnitude.
            target = CLEAR * noise if self.bounds else most
        return min(max(target, 1.0), most)

    def _find_tail(self, cost: float) -> Tail:
        each = TAIL_COUNTS * cost / 2
        low, high = self.bound / TAIL_RATIO**2, self.bound / TAIL_RATIO
        beyond_low, beyond_high, total = self.rows.large_sum(self.theta, self.basis, low, high)
        near, far = self.purse.count(beyond_high, each), self.purse.count(beyond_low, each)
        pull, noise = self.purse.total(total, 1.0, cost - 2 * each)
        return self.tail.seen(near, far, pull, noise, self.bound, self.basis, cost)

    def _measure(self, score: Array, last: bool) -> None:
        clipped = (LAST_CLIPPED if last else CLIPPED) * self.target
        inverse = curvatures.in_basis(self.basis, np.eye(self.dim))
        believed = inverse.T @ self.curvature.for_steps() @ inverse
        self.measurements.append(
            Measurement(self.theta, score, self.basis, self.noise, clipped, self.bound, believed)
        )

    def _solve(self, for_inference: bool) -> tuple[Array, float]:
        """Return the step to the posterior mean as it is known, and the length of its noise.

        Over one standard deviation the curvature of n rows changes by a share of about 1/sqrt(n):
        what is drawn in the end has to reckon with it, what is searched is looked at again.
        """
        curvature = self.curvature.for_inference() if for_inference else self.curvature.for_steps()
        steps = self.curvature.for_steps()
        prior_precision = self.basis.T @ self.prior.precision @ self.basis
        prior_slope = self.basis.T @ self.prior.gradient(self.theta)
        step: Array = np.zeros(self.dim)
        for _ in range(4):
            self.estimate = knowledge.combine(
                self.measurements,
                self.theta,
                self.basis,
                curvature,
                self.curvature.noise,
                step,
                self.tail,
                self.num_rows**-0.5 if for_inference else 0.0,
            )
            precision, weighted = likelihood(self.estimate, curvature)
            both, slope = precision + prior_precision, weighted + prior_slope
            step = np.asarray(np.linalg.lstsq(both, slope, rcond=1e-14)[0], dtype=np.float64)
        error = np.linalg.pinv(self.estimate.precision, rcond=1e-12, hermitian=True)
        return step, math.sqrt(max(0.0, float(np.sum(error * steps))))

    def _line_search(self, step: Array, share: float, cost: float) -> float:
        """Return the share of a step to take: as long as the slope at its end is not negative.

        No step is longer than the prior allows, or ends where the prior has no density.
        """
        share = min(share, FARTHEST_STEP / max(self.prior.length(self.basis @ step), 1e-300))
        for _ in range(HALVINGS):
            if np.isfinite(self.exact_prior.log_density(self.theta + self.basis @ (share * step))):
                break
            share /= 2
        direction = step / np.linalg.norm(step)
        along = self.basis @ direction
        for _ in range(TRIALS):
            end = self.theta + self.basis @ (share * step)
            slope, noise = self.purse.total(
                self.rows.slope_sum(end, along, self.bound), self.bound, cost / TRIALS_PAID
            )
            slope += float(along @ self.prior.gradient(end))
            if not slope < -TOO_FAR * noise:
                break
            share /= 4
        return share

    def _whiten(self, bounds: _Bounds) -> None:
        """Change to the basis in which the posterior, as it is known, is round."""
        precision = self.basis.T @ self.prior.precision @ self.basis
        values, vectors = np.linalg.eigh(self.curvature.for_steps() + precision)
        values = np.maximum(values, ROUNDING * values.max())
        self.basis = self.basis @ (vectors / np.sqrt(values))
        typical = math.log2(float(np.median(values)))
        self.bounds = _Bounds(bounds.gradient - 0.5 * typical, bounds.curvature - typical)

    def _note(self, cost: float, length: float, noise: float) -> None:
        self.stages.append(
            {
                "cost": cost,
                "gradient_clip_bound": self.bound,
                "step": length,
                "step_noise": noise,
            }
        )


def likelihood(estimate: Estimate, curvature: Array) -> tuple[Array, Array]:
    """Return precision, and precision times mean, of theta as the releases alone see it.

    The mode of the likelihood is theta with the error that the rows leave, of precision
    `curvature`, and what is released is the mode with the error of privacy noise: errors add up.
    """
    # (A^-1 + J^-1)^-1 = J (A + J)^-1 A, which needs no inverse of the singular A.
    # Where both are next to nothing so is the result, and the prior has the word.
    inverse = np.linalg.pinv(estimate.precision + curvature, rcond=1e-14, hermitian=True)
    both = inverse @ np.column_stack([estimate.precision, estimate.weighted])
    precision = curvature @ both[:, :-1]
    return 0.5 * (precision + precision.T), curvature @ both[:, -1]
