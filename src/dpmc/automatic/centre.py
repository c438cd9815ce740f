"""Centre and shape of a posterior by noisy Newton steps, with noise chosen along the way.

A stage finds clip bounds by noisy counts and releases the curvature and the gradient of the
log-likelihood at one point, in coordinates whitened by what is known so far. All releases together
tell where the mode is (:mod:`dpmc.automatic.knowledge`). If the step to it is mostly signal, it is
taken, shortened by its share of noise and held back by a line search; if it is mostly noise, more
is spent at the same point, where linear algebra adds releases up without an error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dpmc.automatic import bounds, knowledge
from dpmc.automatic import curvature as curvatures
from dpmc.automatic.bounds import Bounds
from dpmc.automatic.curvature import Curvature, NoisyCurvature
from dpmc.automatic.federated import FederatedRows
from dpmc.automatic.knowledge import Estimate, Measurement
from dpmc.automatic.prior import NormalPrior, Prior
from dpmc.automatic.purse import Purse
from dpmc.automatic.tail import Tail
from dpmc.automatic.whitened import WhitenedRows
from dpmc.fits.check import Check
from dpmc.progress import Progress, silent
from dpmc.rows.vectors import unpack
from dpmc.types import Array

MOST_STAGES = 60
# Trials of a line search.
TRIALS = 7
# Trials that the cost of a line search is for.
TRIALS_PAID = 3
# Share of the cost of the tail that counts have.
TAIL_COUNTS = 0.4
# Ratio of the clip bound to where the tail begins, twice.
TAIL_RATIO = 2**0.75
# Rows that a search for a bound clips, as a share of those that it aims at.
CLIPPED = 0.75
# The same share in the last search.
LAST_CLIPPED = 1.2
# Least curvature over the largest: below are rounding errors.
ROUNDING = 1e-14
# A step is taken if at least so much of its squared length is signal.
SIGNAL = 0.35
# Noise of a line search that a slope must fall below zero by, for the step to be too long.
TOO_FAR = 4.0
# Share by which squared gradients must exceed what they should be.
MORE = 0.1
# By how much they may exceed it of a model that is right, clipping being what it is, for a check.
KNOWN = 0.05
# Deviations by which they must exceed it.
VARIED = 3.0
# Share of what they should be that they are clearly below where rows that count are clipped.
STILL = 0.5
# Longest step, in deviations of the prior.
FARTHEST_STEP = 10.0
# Halvings, at most, of a step that leaves the support of the prior.
HALVINGS = 60


@dataclass
class Centre:
    """Knowledge of a posterior after all stages.

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
    clipped : float
        Rows that this bound clips, by the counts that were released.
    step, step_noise : float
        Length of the last step, in posterior standard deviations, and of its noise.
    surprise : float
        Squared distance between what rows were seen to add up to at the posterior mean, under a
        bound that clips few, and what the last stage says of it, in deviations of both: about
        chi-squared of d degrees of freedom, if the search has found the posterior.
    dispersion : float
        Variance of gradients over what the model says, where it is clearly larger; else 1.
    still : bool
        Whether it is clearly less than half of that: rows that count are clipped, if the model is
        right.
    silent : bool
        Whether the first counts saw next to no row that contributes anything.
    spread : ndarray of shape (d, d), optional
        Covariance of the sum of gradients, where widths are to follow it and not the model.
    checks : list of Check
        Of the sums of gradients and of their squares.
    stages : list of dict
        What each stage did, in released numbers.
    """

    theta: Array
    basis: Array
    curvature: Curvature
    estimate: Estimate
    gradient_bound: float
    gradient_noise: float
    clipped: float
    step: float
    step_noise: float
    surprise: float
    dispersion: float
    still: bool
    silent: bool
    spread: Array | None
    checks: list[Check]
    stages: list[dict[str, float]] = field(default_factory=list)

    def of_rows(self, curvature: Array) -> Array:
        """Precision of the mode as rows leave it, without noise, for a curvature of these."""
        if self.spread is None:
            return curvature / self.dispersion
        return np.asarray(curvature @ np.linalg.solve(self.spread, curvature))


def locate(
    rows: WhitenedRows | FederatedRows,
    prior: Prior,
    purse: Purse,
    start: Array,
    progress: Progress = silent,
    *,
    robust: bool = False,
) -> Centre:
    """Centre and shape, for all that the purse holds.

    Parameters
    ----------
    rows : WhitenedRows or FederatedRows
    prior : Prior
    purse : Purse
    start : ndarray of shape (d,)
        A public point.
    progress : callable
        Told after each stage how many hundredths of the purse are spent.
    robust : bool
        Whether widths are to follow the variance of gradients, and not that of the model.
    """
    stages = _Search(rows, prior, purse, start, robust)
    last = False
    while not last:
        last = stages.stage()
        spent = 100 if last else int(100 * (1 - purse.left / stages.total))
        progress(spent, 100, f"stage {len(stages.stages)}")
    return stages.centre()


class _Search:
    """The stages of one search."""

    def __init__(
        self,
        rows: WhitenedRows | FederatedRows,
        prior: Prior,
        purse: Purse,
        start: Array,
        robust: bool,
    ) -> None:
        self.rows, self.purse, self.robust = rows, purse, robust
        self.exact_prior, self.prior = prior, NormalPrior.of(prior, start)
        self.dim, self.num_rows = rows.dim, rows.num_rows
        self.theta, self.basis = start, self.prior.basis
        self.total = purse.left
        self.kept = (bounds.CHECK + bounds.OUTER * robust) * self.total
        self.cost = (math.sqrt(self.dim) / (bounds.FIRST_NOISE * self.num_rows)) ** 2
        self.bounds: Bounds | None = None
        # Units of the first stage, and what clip bounds have been there: it may not fall.
        self.public, self.wide = self.basis, 0.0
        self.silent, self.surprise, self.dispersion, self.still = False, 0.0, 1.0, False
        self.spread: Array | None = None
        self.checks: list[Check] = []
        self.measurements: list[Measurement] = []
        self.released: list[NoisyCurvature] = []
        self.tail = Tail.unknown(self.dim, self.num_rows, TAIL_RATIO)
        self.stages: list[dict[str, float]] = []
        self.settled = False
        # To the mode, as it is expected: infinite if the model is not linear over a step taken.
        self.distance = self.length = math.inf

    def stage(self) -> bool:
        """Run one stage; return whether it was the last."""
        cost, last = self._next()
        found, self.target = bounds.find(
            self.rows,
            self.purse,
            (self.theta, self.basis),
            self.bounds,
            bounds.count_cost(self.bounds is not None, cost, last, self.num_rows, self.total),
            cost if last else None,
        )
        self.bound = 2.0**found.gradient
        change = curvatures.in_basis(self.basis, self.public)
        self.wide = max(self.wide, self.bound * float(np.linalg.norm(change, 2)))
        if not self.stages:
            self.silent = bounds.is_least(found)
        line = 0.0 if last else bounds.LINE * cost
        tail = bounds.TAIL * cost if cost >= bounds.TAIL_WORTH * self.total else 0.0
        counted = (bounds.LAST_COUNTS if last else bounds.COUNTS) * cost
        both = cost - counted - line - tail
        curve = self._share_of_curvature(2.0**found.curvature, last) * both
        self._bend(2.0**found.curvature, curve)
        if tail:
            self.tail = self._find_tail(tail)
        score, self.noise = self.purse.total(
            self.rows.gradient_sum(self.theta, self.basis, self.bound),
            self.purse.left - self.kept if last else both - curve,
        )
        self._measure(score, last)
        step, self.step_noise = self._solve(for_inference=last)
        self.length = math.sqrt(float(step @ self.curvature.for_steps() @ step))
        self._note(cost)
        if last:
            self.surprise = self._look(score, step)
            error = math.sqrt(2 / self.dim)
            usual = self.surprise / self.dim
            self.checks.append(
                Check("squared gradient at the mean, over its variance", usual, error, 1.0)
            )
        else:
            self._move(step, line)
            self._whiten(found)
        return last

    def _next(self) -> tuple[float, bool]:
        """Cost of the next stage, and whether it is the last."""
        left = self.purse.left - self.kept
        room = self.purse.left - (1 - bounds.EXPLORE) * self.total
        explored = (
            len(self.stages) == MOST_STAGES - 1
            or room < bounds.NOTHING * self.total
            or (
                self.distance <= bounds.NEAR * math.sqrt(self.dim)
                and not self._unsettled(left, bounds.SETTLED)
            )
        )
        if explored and (self.settled or not self._unsettled(left, bounds.UNSETTLED)):
            return left, True
        if explored:
            self.settled = True
            return bounds.SETTLE * left, False
        most = room * bounds.PORTION if room > bounds.WHOLE * self.total else room
        return min(self.cost, most), False

    def _share_of_curvature(self, curvature_bound: float, last: bool) -> float:
        if not self.stages:
            return bounds.of_curvature(1.0, last)
        distance = self.distance if math.isfinite(self.distance) else self.length
        return bounds.of_curvature(min(curvature_bound * distance / self.bound, 1e9), last)

    def _bend(self, bound: float, cost: float) -> None:
        """Release the curvature, and believe it with those that were released before."""
        packed, noise = self.purse.total(
            self.rows.curvature_sum(self.theta, self.basis, bound), cost
        )
        self.released.append(NoisyCurvature(unpack(packed, self.dim), noise, self.basis))
        self.curvature = curvatures.combine(self.released)

    def _move(self, step: Array, line: float) -> None:
        """Take a step if enough of it is signal; else spend more at the same point."""
        noise = self.step_noise
        signal = 1 - (noise / self.length) ** 2 if noise < self.length else 0.0
        self.distance = self.length
        if signal < SIGNAL:
            self.cost *= bounds.GROWTH
            return
        taken = self._line_search(step, signal, line)
        self.distance = noise if taken > 0.9 * signal else math.inf
        self.theta = self.theta + self.basis @ (taken * step)
        if taken < 0.9 * SIGNAL:
            self.measurements = []  # the model is not linear over such a distance

    def centre(self) -> Centre:
        """Knowledge after the last stage."""
        return Centre(
            self.theta,
            self.basis,
            self.curvature,
            self.estimate,
            self.bound,
            self.noise,
            self.tail.clipped(
                self.tail.size(self.bound, self.basis), self.measurements[-1].clipped
            ),
            self.length,
            self.step_noise,
            self.surprise,
            self.dispersion,
            self.still,
            self.silent,
            self.spread,
            self.checks,
            self.stages,
        )

    def _unsettled(self, left: float, most: float) -> bool:
        """True if the last gradient would be used over too long a distance.

        Over it the curvature is known up to its noise and changes, as `knowledge.combine` has it.
        """
        if not math.isfinite(self.distance):
            return True
        bent = 0.5 * self.num_rows**-0.5 * self.distance**2
        error = math.hypot(math.sqrt(0.5) * self.curvature.noise * self.distance, bent)
        noise = self.purse.moved * self.bound / math.sqrt(bounds.LAST_GRADIENT * left)
        return bool(error > most * noise)

    def _find_tail(self, cost: float) -> Tail:
        each = TAIL_COUNTS * cost / 2
        low, high = self.bound / TAIL_RATIO**2, self.bound / TAIL_RATIO
        beyond_low, beyond_high, total = self.rows.large_sum(self.theta, self.basis, low, high)
        near, far = self.purse.count(beyond_high, each), self.purse.count(beyond_low, each)
        pull, noise = self.purse.total(total, cost - 2 * each)
        return self.tail.seen(near, far, pull, noise, self.bound, self.basis, cost)

    def _measure(self, score: Array, last: bool) -> None:
        clipped = (LAST_CLIPPED if last else CLIPPED) * self.target
        inverse = curvatures.in_basis(self.basis, np.eye(self.dim))
        believed = inverse.T @ self.curvature.for_steps() @ inverse
        self.measurements.append(
            Measurement(self.theta, score, self.basis, self.noise, clipped, self.bound, believed)
        )

    def _solve(self, for_inference: bool) -> tuple[Array, float]:
        """Step to the posterior mean as it is known, and the length of its noise.

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

    def _look(self, score: Array, step: Array) -> float:
        """Distance of rows from what the last stage says of them, a step away.

        The clip bound is the largest of all stages, in units of the first: it covers rows that
        later ones may have clipped to where they do not count.
        """
        end = self.theta + self.basis @ step
        if not np.isfinite(self.exact_prior.log_density(end)):
            end, step = self.theta, np.zeros(self.dim)
        self._compare(end)
        seen, noise = self.purse.total(
            self.rows.gradient_sum(end, self.public, self.wide), self.purse.left
        )
        change = curvatures.in_basis(self.basis, self.public)
        squared, eye = float(step @ step), np.eye(self.dim)
        taken, apart = self.tail.taken(self.bound, self.basis, self.measurements[-1].clipped)
        error = (self.noise**2 + apart + (knowledge.UNSEEN_CHANGE**2) * squared) * eye
        error += 0.5 * self.curvature.noise**2 * (squared * eye + np.outer(step, step))
        error += (knowledge.UNCERTAINTY**2 + knowledge.UNCERTAIN_COUNT**2) * np.outer(taken, taken)
        away = seen - change.T @ (score + taken - self.curvature.matrix @ step)
        covariance = noise**2 * eye + change.T @ error @ change
        return float(away @ np.linalg.lstsq(covariance, away, rcond=1e-14)[0])

    def _compare(self, end: Array) -> None:
        """Look whether gradients vary as the curvature says, as they do under the model.

        Where they vary more widths follow, unless noise hides some of the curvature. What a clip
        bound takes from squares makes them smaller, and narrows nothing.
        """
        curvature, noise = self.curvature.for_steps(), 0.0
        expected = float(np.trace(curvature))
        if self.robust:
            outer = self.rows.outer_sum(end, self.basis, self.bound)
            cost = self.purse.left - (1 - bounds.SQUARES) * bounds.CHECK * self.total
            packed, entry = self.purse.total(outer, cost)
            products, noise = unpack(packed, self.dim), math.sqrt(self.dim) * entry
            seen = float(np.trace(products))
            self.spread = curvatures.spread(products, entry, curvature)
        else:
            squares = self.rows.squares_sum(end, self.basis, self.bound)
            seen, noise = self.purse.total(squares, bounds.SQUARES * self.kept)
        unsure = math.hypot(noise, math.sqrt(self.dim) * self.curvature.noise)
        known = self.curvature.values.min() > VARIED * self.curvature.reach
        if known and not self.robust and seen > (1 + MORE) * expected + VARIED * unsure:
            self.dispersion = seen / expected
        error = math.hypot(unsure / expected, KNOWN)
        # What is clear of noise says how much there is at least. Tempering leaves a share of it.
        values = self.curvature.values
        clear = float(values[values > VARIED * self.curvature.reach].sum())
        most = seen + VARIED * math.hypot(unsure, KNOWN * clear)
        self.still = most < STILL * self.rows.tempering * clear
        self.checks.append(Check("variance over that of the model", seen / expected, error, 1.0))

    def _line_search(self, step: Array, share: float, cost: float) -> float:
        """Share of a step to take: as long as the slope at its end is not negative.

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
                self.rows.slope_sum(end, along, self.bound), cost / TRIALS_PAID
            )
            slope += float(along @ self.prior.gradient(end))
            if not slope < -TOO_FAR * noise:
                break
            share /= 4
        return share

    def _whiten(self, found: Bounds) -> None:
        """Change to the basis in which the posterior, as it is known, is round."""
        precision = self.basis.T @ self.prior.precision @ self.basis
        values, vectors = np.linalg.eigh(self.curvature.for_steps() + precision)
        values = np.maximum(values, ROUNDING * values.max())
        # The symmetric root, which no sign and order of eigenvectors changes.
        self.basis = self.basis @ (vectors / np.sqrt(values) @ vectors.T)
        self.bounds = found.rescaled(math.log2(float(np.median(values))))

    def _note(self, cost: float) -> None:
        self.stages.append(
            {
                "cost": cost,
                "gradient_clip_bound": self.bound,
                "step": self.length,
                "step_noise": self.step_noise,
            }
        )


def likelihood(estimate: Estimate, curvature: Array) -> tuple[Array, Array]:
    """Precision, and precision times mean, of theta as the releases alone see it.

    The mode of the likelihood is theta with the error that the rows leave, of precision
    `curvature`, and what is released is the mode with the error of privacy noise: errors add up.
    """
    # (A^-1 + J^-1)^-1 = J (A + J)^-1 A, which needs no inverse of the singular A.
    # Where both are next to nothing so is the result, and the prior has the word.
    inverse = np.linalg.pinv(estimate.precision + curvature, rcond=1e-14, hermitian=True)
    both = inverse @ np.column_stack([estimate.precision, estimate.weighted])
    precision = curvature @ both[:, :-1]
    return 0.5 * (precision + precision.T), curvature @ both[:, -1]
