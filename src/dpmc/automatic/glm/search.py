"""The search: units, whitening, a null model, and a few noisy Newton steps from there.

No bound follows the point. A row moves the gradient, a sum of w rho u, by at most R b: features are
whitened and shortened by a weight that depends on them alone, and the residual score is bounded by
what is public of it, or by released counts of residuals. Weights are known, and rows have a score
of mean zero whatever their features are: a model that is right keeps its parameters. So one
gradient with noise 2 R b / mu displaces the mean by 2 R b / (mu sqrt(n v)) posterior standard
deviations, v being the mean of the variances of residual scores: p (1 - p) for a probability p.

Sensitivities, under substitution of one row with the number of rows public; and, behind a slash,
under addition or removal, where that number is a count with noise, see `dpmc.automatic.counted`:

- counts of rows in bins, of lengths and of residuals: one bin less, another more, sqrt(2) / one bin
  more or less, 1;
- second moments, clipped to length L: sqrt(2) L^2, see `row_matrices` / L^2;
- gradients: |w u rho| is at most G = R b, and for normal models bounded by G itself: 2 G / G;
- curvatures: w |u|^2 |h| is at most R T c, where c bounds h: sqrt(2) R T c / R T c. In the last
  stage of a Student-t model h is from -c/8 to c: two rows of one sign are as far apart as others,
  and two of opposite signs by 9/8 R T c at most;
- squares of gradients: sqrt(2) G^2 / G^2;
- scores of the scale, between 0 and a limit, and counts of all kinds: the limit, and 1, under both;
- checks: the ends of the interval in which each term lies, twice / once.

Of persons who may have several rows each, all of this is of one row of each, but the gradient and
the curvature: sums over the rows of a person, clipped to C and to a Frobenius norm B. They are as
those of rows with bounds C and B, but that in the last stage of a Student-t model two curvatures
of opposite signs are 2 B apart; squares are of the clipped gradients. See `person_rows`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from dpmc.automatic import curvature as curvatures
from dpmc.automatic.glm import checks, kernels, units
from dpmc.automatic.glm.counts import RATES, clipped_counts, dispersion
from dpmc.automatic.glm.kernels import LINEAR, LOGISTIC, POISSON, STUDENT_T
from dpmc.automatic.glm.normal import Normal, Observed, positive, posterior
from dpmc.automatic.glm.person_rows import PersonRows, clip_bound, most_rows
from dpmc.automatic.glm.residuals import EDGES, MEDIAN, Residuals
from dpmc.automatic.glm.rows import Rows
from dpmc.automatic.glm.shape import Lengths, Whitening
from dpmc.automatic.glm.till import Till
from dpmc.automatic.glm.units import Offset, Units
from dpmc.fits.check import Check
from dpmc.progress import Progress
from dpmc.types import Array

# Squared length at which features in their units are clipped for second moments, over d.
LONG = 2.0
# Exploring stages: most of them, and shares of the budget.
STAGES = 6
# each; share that all before the last may have.
LEAST, MOST, EXPLORE = 0.006, 0.08, 0.35
# Change of a curvature over a step of length 1 of the linear predictor, as a share, and the length
# of a step that is taken at once.
BEND = {LINEAR: 0.0, STUDENT_T: 0.1, LOGISTIC: 0.25, POISSON: 0.4}
TRUST = {LINEAR: math.inf, STUDENT_T: 3.0, LOGISTIC: 2.0, POISSON: 1.0}
# Error of a curvature that is inferred from second moments, as a share.
INFERRED = {LINEAR: 0.35, STUDENT_T: 0.35, LOGISTIC: 0.2, POISSON: 0.35}
# Shares of a stage that its curvature may have.
SHARES = (0.01, 0.02, 0.04, 0.07, 0.1, 0.14, 0.2, 0.27, 0.35, 0.45)
# Rows whose lengths are counted, at least, and the noise of a count that shows few of them.
SEEN, FINE = 1 << 18, 64.0
# Length of weighted features over sqrt(d), about; rows that a stage reads at least, and the share
# of the budget that fewer rows may cost it.
USUAL, FEWEST, WORTH = 1.5, 1 << 15, 0.03
# Bound on residuals of a normal model that the longest rows have at least, in deviations.
ROOM = 1.5
# Scale of responses, in their units, below which squares of it would lose the prior's digits.
SMALLEST = 1e-4
# Shares of the last stage: the scale of responses, squares of gradients, the check behind it.
SCALE, MEAT, CHECK = 0.08, 0.05, 0.02
# Deviations of its noise that a count of far residuals has to exceed, and a ratio of variances; by
# how much that exceeds 1 at least, to widen.
CLEAR, DISPERSED = 3.0, 0.1
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True)
class Found:
    """Findings of a search, in whitened coordinates phi: ``beta = basis @ phi`` in units.

    Parameters
    ----------
    observed : Observed
        The last stage.
    posterior : Normal
        Of phi.
    wide : Normal
        The same under the widest of the priors.
    basis : ndarray of shape (d, d)
    kept : float
        Share of the curvature that weights leave.
    sigma : tuple of float, optional
        Mean, and variance over rows alone and of all, of the logarithm of the scale of responses.
    dispersion : tuple of float
        Variance of gradients over what the model says, and its noise.
    remaining : float
        Mean residual at the centre, in standard deviations that it should have.
    reach, longest, bound : float
        Bounds of the last stage: R, T, and that of residual scores.
    steps : list of float
        Lengths of the steps, of the linear predictor.
    settled : bool
    num_rows : float
        Rows that count, as users may know it.
    ones : float
        Mean response of the null model, of which the variance of a score follows.
    whitening : Whitening
    heavy : bool
        Whether residuals of a normal model have heavier tails.
    checks : tuple of Check
    """

    observed: Observed
    posterior: Normal
    wide: Normal
    basis: Array
    kept: float
    sigma: tuple[float, float, float] | None
    dispersion: tuple[float, float]
    remaining: float
    reach: float
    longest: float
    bound: float
    steps: list[float]
    settled: bool
    num_rows: float
    ones: float
    whitening: Whitening
    heavy: bool
    checks: tuple[Check, ...]


@dataclass
class Search:
    """A search under way.

    Parameters
    ----------
    rows : Rows
    units : Units
    till : Till
    priors : tuple of Normal
        Of ``beta`` in units, one as likely as another, the widest first.
    freedom : float
        Of the Student-t distribution.
    robust : bool
        Whether the variance of gradients is released.
    num_rows : float
        Rows that are valid.
    progress : Callable
    offset : Offset
    """

    rows: Rows
    units: Units
    till: Till
    priors: tuple[Normal, ...]
    freedom: float
    robust: bool
    num_rows: float
    progress: Progress
    offset: Offset = field(default_factory=Offset)
    numbers: Array = field(default_factory=lambda: np.zeros(kernels.NUMBERS))
    variance: float = 1.0
    tails: Residuals | None = None
    counted: tuple[Array, float, float] = field(init=False)
    kept: float = 1.0
    dispersed: float = 0.0
    distance: float = 1.0
    # Rows of a person, on average, and how many few have more than.
    each: float = 1.0
    most: float = 1.0
    # Share of the slope of gradients of persons that their clip bound leaves.
    steady: float = 1.0

    def run(self, start: Array | None) -> Found:
        """Findings, with all of the budget."""
        kind, dim = self.rows.kind, self.rows.dim
        alpha, mean = self._null()
        moments = self.rows.moments(math.sqrt(LONG * dim))
        noise_at_one = moments.sensitivity * math.sqrt(2 * dim)
        cost = self.till.part(noise_at_one, 0.008 * self.num_rows, 0.001, 0.04)
        noisy, noise = self.till.matrix("second moments", moments, cost)
        self._tell()
        white = Whitening.of(noisy, noise, self.num_rows)
        some = self.rows.one_of(max(int(self.rows.counted.number) // SEEN, 1), STAGES)
        aim, lengths_ = min(0.004 * some.counted.number, FINE), some.lengths(white.basis)
        cost = self.till.part(lengths_.sensitivity, aim, 0.0005, 0.01)
        counts, noise = self.till.release("lengths", lengths_, cost)
        self._tell()
        lengths = Lengths.of(counts, noise, dim)
        if isinstance(self.rows, PersonRows):
            cost = self.till.part(math.sqrt(2), aim, 0.0005, 0.01)
            sizes, noise = self.till.release("rows of persons", self.rows.sizes(), cost)
            self.most = most_rows(sizes, noise)
            cost = self.till.part(self.most, 0.02 * self.num_rows, 0.0005, 0.01)
            total, noise = self.till.release("rows of persons", self.rows.total(self.most), cost)
            self.each = max(min(total / self.num_rows, self.most), 1.0)
        root = np.asarray(np.linalg.inv(white.basis), dtype=np.float64)
        priors = [one.through(white.basis, np.zeros(dim)) for one in self.priors]
        phi: Array = np.zeros(dim)
        if start is not None:
            phi = np.asarray(root @ start, dtype=np.float64)
        elif self.rows.constant:
            phi = root[:, 0] * alpha
        known: list[Observed] = []
        steps, settled, growth, total = [], False, 1.0, self.till.total
        whole, valid, stride = self.rows, self.num_rows, self._stride()
        for stage in range(STAGES):
            self.rows, self.num_rows = whole.one_of(stride, stage), valid / stride
            self._bounds(phi, white, lengths, 0.004)
            target = self._target(valid)
            per_row = self.num_rows * self.each * self.variance * self.kept
            wanted = self.till.moved * self._gradient_bound() * math.sqrt(dim) / per_row
            most = max(min(MOST, self.till.left / total - 1 + EXPLORE), LEAST)
            cost = self.till.part(
                wanted * self.numbers[kernels.SIGMA] * growth, target / 3, LEAST, most
            )
            self.numbers[kernels.SAFE] = 1.0
            observed = self._stage(phi, white, lengths, cost).of_more(stride)
            known.append(observed)
            # Under the widest prior: where the likelihood is, and not what a prior makes of it.
            found = posterior(known, priors[:1])
            step = found.mean - phi
            size = math.sqrt(float(step @ step))
            reach = TRUST[kind]
            phi = phi + step * min(1.0, reach / max(size, 1e-12))
            steps.append(size)
            noise = math.sqrt(float(np.trace(found.covariance())))
            self.distance = min(noise, 1.0)
            alone = posterior([observed], priors[:1])
            spread = math.sqrt(float(np.trace(alone.covariance())))
            far = float(np.linalg.norm(alone.mean - observed.point))
            near = far <= max(2.0 * target, 2.0 * spread)
            if near and max(size, noise) <= min(reach, 1.5 * target):
                settled = True
                break
            if noise > target:
                growth *= 2.0
            if self.till.left <= (1 - EXPLORE) * total:
                break
        self.rows, self.num_rows = whole, valid
        self._bounds(phi, white, lengths, 0.0005)
        self.numbers[kernels.SAFE] = 0.0
        check = CHECK * self.till.total
        scaled = SCALE * self.till.left if kind in (LINEAR, STUDENT_T) else 0.0
        observed = self._stage(phi, white, lengths, self.till.left - check - scaled, last=True)
        known.append(observed)
        found = posterior(known, priors)
        sigma = self._sigma(observed, found, white, scaled)
        if sigma is not None:
            # The likelihood of coefficients is that of the scale as it is known now.
            observed = observed.times((self.numbers[kernels.SIGMA] / math.exp(sigma[0])) ** 2)
            known[-1] = observed
            found = posterior(known, priors)
            self.numbers[kernels.SIGMA] = math.exp(sigma[0])
        steps.append(float(np.linalg.norm(found.mean - phi)))
        kept, _ = lengths.kept(self.numbers[kernels.LENGTH], self.numbers[kernels.LONGEST], dim)
        dispersed, remaining, heavy = self._check(found, white, observed)
        ratio, deviation = dispersed
        if ratio > 1 + max(DISPERSED, CLEAR * deviation):
            observed = known[-1] = replace(observed, share=observed.share * ratio)
            found = posterior(known, priors)
        self._tell()
        return Found(
            observed, found, posterior(known, priors[:1]), white.basis, kept, sigma, dispersed,
            remaining, self.numbers[kernels.LENGTH], self.numbers[kernels.LONGEST],
            self.numbers[kernels.RESIDUAL], steps, settled, self.num_rows, mean, white,
            heavy, tuple(self._checks(dispersed, remaining)),
        )  # fmt: skip

    def _checks(self, dispersed: tuple[float, float], remaining: float) -> Iterator[Check]:
        """Releases about the model beside the posterior."""
        yield from checks.of_gradients(dispersed, remaining)
        if self.rows.kind in (LINEAR, STUDENT_T):
            counts, noise, sigma = self.counted
            unit = sigma / float(self.numbers[kernels.SIGMA])
            freedom = self.freedom if self.rows.kind == STUDENT_T else None
            yield from checks.of_residuals(counts, noise, unit, self.num_rows, freedom)

    def _tell(self) -> None:
        total = self.till.total
        self.progress(
            round(100 * (total - self.till.left) / total), 100, self.till.stages[-1]["release"]
        )

    def _null(self) -> tuple[float, float]:
        """Linear predictor of the null model, and its mean response."""
        kind, numbers = self.rows.kind, self.numbers
        numbers[kernels.SIGMA], numbers[kernels.Y_INVERSE] = 1.0, 1.0
        numbers[kernels.FREEDOM] = self.freedom
        numbers[[kernels.OFFSET, kernels.CENTRE]] = self.offset.column, self.offset.centre
        n = self.num_rows
        if kind == LOGISTIC:
            cost = self.till.part(1.0, 0.002 * n, 0.0005, 0.01)
            count, noise = self.till.release("mean response", self.rows.ones(), cost)
            rate = min(max(count, noise, 0.5), n - max(noise, 0.5)) / n
            if not 0 < rate < 1:
                rate = 0.5
            numbers[kernels.RESIDUAL], numbers[kernels.CURVATURE] = 1.0, 0.25
            self.variance = rate * (1 - rate)
            return math.log(rate / (1 - rate)) - self.offset.middle, rate
        if kind == POISSON:
            cost = self.till.part(1.0, 0.003 * n, 0.0005, 0.01)
            cap = units.upper(self.till, self.rows.counted, self.rows.x[:, -1], 0.01, cost)
            cost = self.till.part(cap, 0.01 * n, 0.0005, 0.01)
            noisy, noise = self.till.release("mean response", self.rows.responses(cap), cost)
            mean = max(noisy, noise, 1.0) / n
            self.variance = numbers[kernels.RATE] = mean
            # A normal offset multiplies the mean by the exponential of half its variance.
            usual = self.offset.middle + min(self.offset.spread**2 / 2, TRUST[POISSON])
            return math.log(mean) - usual, mean
        numbers[kernels.Y_LOCATION] = self.units.location[-1]
        numbers[kernels.Y_INVERSE] = 1 / self.units.scale[-1]
        if kind == LINEAR:
            numbers[kernels.CURVATURE] = 1.0
        else:
            numbers[kernels.CURVATURE] = (self.freedom + 1) / self.freedom
            self.variance = (self.freedom + 1) / (self.freedom + 3)
        return 0.0, 0.0

    def _bounds(self, phi: Array, white: Whitening, lengths: Lengths, aim: float) -> None:
        """Choose the bounds of a stage, from counts of residuals at its point."""
        kind, numbers, dim = self.rows.kind, self.numbers, self.rows.dim
        noise = self.till.moved / math.sqrt(0.8 * self.till.left * self.each)
        if kind != LOGISTIC:
            unit = math.sqrt(max(self.variance, 1e-3)) if kind == POISSON else 1.0
            counts = self.rows.residuals(white.basis @ phi, numbers, unit)
            cost = self.till.part(counts.sensitivity, aim * self.num_rows, 0.0005, 0.02)
            noisy, deviation = self.till.release("residuals", counts, cost)
            self.counted = noisy, deviation, float(numbers[kernels.SIGMA])
            self.tails = tails = Residuals.of(noisy, deviation, unit)
            if kind != POISSON and (median := tails.median()) > 0:
                usual = MEDIAN if kind == LINEAR else _median_t(self.freedom)
                factor = max(median / usual, SMALLEST / float(numbers[kernels.SIGMA]))
                numbers[kernels.SIGMA] *= factor
                tails = replace(tails, sizes=tails.sizes / factor)
                self.tails = tails
            if kind == POISSON:
                _, _, _, centre, along = self._predictors(phi, white)
                self.dispersed = dispersion(
                    noisy, deviation, EDGES * unit, self.variance, centre, along
                )
            reach = numbers[kernels.LENGTH] or 1.5 * math.sqrt(dim)
            if kind == STUDENT_T:
                numbers[kernels.RESIDUAL] = min(
                    (self.freedom + 1) / (2 * math.sqrt(self.freedom)), 5.0
                )
            else:
                varied = self.variance * (1 + self.dispersed * self.variance)
                least = 2.0 if kind == LINEAR else max(1.0, 3 * math.sqrt(varied))
                most = max(32.0 * least, least)
                if kind == LINEAR:
                    reach = math.sqrt(dim)
                numbers[kernels.RESIDUAL] = tails.bound(
                    reach * noise, dim, least, most, self._usual_excess
                )
            if kind == POISSON:
                numbers[kernels.CURVATURE] = max(1.0, numbers[kernels.RESIDUAL] ** 2 / 4)
                self.rows.table[:] = clipped_counts(
                    float(numbers[kernels.RESIDUAL]), self.variance, self.dispersed
                )
        distance = self.distance / float(numbers[kernels.SIGMA])
        curved = 0.5 * distance * float(numbers[kernels.CURVATURE])

        def of_both(reach: float, longest: float) -> float:
            # The noise of the gradient, and about that of the curvature over the distance: the
            # best shares of a budget for the two have the noise of their sum.
            return noise * (self._steepest(reach) + curved * reach * longest)

        reach, longest = lengths.bounds(round(self.num_rows), dim, self.variance, of_both)
        numbers[kernels.LENGTH], numbers[kernels.LONGEST] = reach, longest
        self.kept, _ = lengths.kept(reach, longest, dim)
        numbers[kernels.GRADIENT] = self._steepest(reach)
        if kind == LINEAR:
            # Of a row of usual length; shorter ones may have larger residuals.
            numbers[kernels.RESIDUAL] *= 2.0
        if isinstance(self.rows, PersonRows):
            cost = self.till.part(math.sqrt(2), aim * self.num_rows, 0.0005, 0.02)
            counts = self.rows.lengths_of_persons(white.basis, phi, numbers)
            noisy, deviation = self.till.release("gradients of persons", counts, cost)
            steepest, noise = float(numbers[kernels.GRADIENT]), 2 / math.sqrt(0.8 * self.till.left)
            found = clip_bound(noisy, deviation, noise, steepest, dim, self.each)
            numbers[kernels.PERSON], self.steady = found
            curved = reach * longest * float(numbers[kernels.CURVATURE])
            numbers[kernels.PERSON_CURVED] = max(self.most / 2, 1.0) * curved

    def _steepest(self, reach: float) -> float:
        """Bound on gradients of rows whose weighted features have length `reach`."""
        bound = float(self.numbers[kernels.RESIDUAL])
        if self.rows.kind == LINEAR:
            return max(math.sqrt(self.rows.dim) * bound, ROOM * reach)
        return reach * bound

    def _usual_excess(self, bound: float) -> tuple[float, float]:
        """Residuals of the null model beyond a bound: those above less those below, and all.

        In all rows; of counts, whose residuals are skewed, nearly all is above.
        """
        if self.rows.kind != POISSON:
            density = math.exp(-(bound**2) / 2) * math.sqrt(2 / math.pi)
            return 0.0, self.num_rows * (density - bound * math.erfc(bound / math.sqrt(2)))
        rate = np.array([min(math.log(self.variance), float(RATES[-1]))])
        mean = clipped_counts(bound, self.variance, self.dispersed, rate)
        above = -self.num_rows * float(mean[0, 0])
        return above, abs(above)

    def _gradient_bound(self) -> float:
        """Bound on what is clipped: the gradient of a row, or of a person."""
        return float(self.numbers[kernels.PERSON] or self.numbers[kernels.GRADIENT])

    def _target(self, num_rows: float) -> float:
        """Distance, in the linear predictor, within which the last stage should begin.

        There the bend of the likelihood costs less than the noise of the last gradient.
        """
        rows = num_rows * self.each * self.variance
        information = math.sqrt(rows) / self.numbers[kernels.SIGMA]
        noise = (
            self.till.moved
            * self._gradient_bound()
            / math.sqrt(0.7 * self.till.total * rows)
            / self.kept
        )
        worth = 0.4 * max(0.2, noise) * math.sqrt(self.rows.dim)
        return math.sqrt(worth / (max(BEND[self.rows.kind], 0.1) * information))

    def _stride(self) -> int:
        """Of how many rows a stage before the last reads one.

        With a small share of the budget a stage is as near then as it should be, by noise and by
        sampling. It depends on what was released, and a row is among those that are read or not:
        sums over these have the sensitivity of sums over all, under either relation.
        """
        dim, numbers = self.rows.dim, self.numbers
        if isinstance(self.rows, PersonRows):
            return 1
        # Before there are counts of residuals.
        usual = numbers[kernels.RESIDUAL] or max(1.0, 4 * math.sqrt(self.variance))
        numbers[kernels.GRADIENT] = USUAL * math.sqrt(dim) * usual
        near = self._target(self.num_rows) / 3
        noise = self.till.moved * self._gradient_bound() / math.sqrt(WORTH * self.till.total)
        enough = max(noise / near, math.sqrt(dim) / near**2) * math.sqrt(dim) / self.variance
        fastest = int(self.num_rows) // SEEN
        return max(int(self.num_rows / max(enough, FEWEST)), min(fastest, 4), 1)

    def _stage(
        self,
        phi: Array,
        white: Whitening,
        lengths: Lengths,
        cost: float,
        last: bool = False,
    ) -> Observed:
        """Releases at a point."""
        kind, dim, numbers = self.rows.kind, self.rows.dim, self.numbers
        sigma = float(numbers[kernels.SIGMA])
        robust = self.robust and last
        sums = self.rows.scores(white.basis, phi, numbers, True, robust)
        bound = self._gradient_bound()
        rest = cost
        if robust:
            rest -= cost * MEAT
            noisy, meat = self.till.matrix("squares", sums.squares, cost * MEAT)
        first, second = lengths.kept(numbers[kernels.LENGTH], numbers[kernels.LONGEST], dim)
        inferred = self._inferred(phi, white) * self.num_rows * self.each * first
        expected = INFERRED[kind] * float(np.trace(inferred)) / dim
        bent = sums.curvature.sensitivity
        share = min(
            SHARES,
            key=lambda one: (
                (self.till.moved * bound) ** 2 / (1 - one)
                + (self.distance / sigma) ** 2 / (expected**-2 + 2 * one * rest / bent**2)
            ),
        )
        second_of = (1.0, 1.0)
        if kind == LINEAR:
            second_of = _clipped_normal(float(numbers[kernels.GRADIENT]) / math.sqrt(dim))
        curved, wrong = self.till.matrix("curvature", sums.curvature, share * rest)
        slope, noise = self.till.release("gradient", sums.gradient, (1 - share) * rest)
        slope, noise = slope / self.steady, noise / self.steady
        self._tell()
        known = expected**2 / (expected**2 + wrong**2 / 2)
        shrunk = positive(inferred + known * (curved - inferred))
        error = math.sqrt(known**2 * wrong**2 / 2 + (1 - known) ** 2 * expected**2)
        if robust:
            spread = positive(noisy)
            if isinstance(self.rows, PersonRows):
                spread = curvatures.spread(noisy, meat, shrunk) / self.steady**2
        level = float(np.trace(shrunk)) / max(float(np.trace(inferred)), 1e-300)
        level *= self.num_rows * self.each * first / sigma**2
        return Observed(
            phi, slope / sigma, noise / sigma, shrunk / sigma**2, error / sigma**2,
            second * second_of[0] / second_of[1],
            spread / sigma**2 if robust else None, BEND[kind],
            lambda place: level * self._inferred(place, white),
        )  # fmt: skip

    def _inferred(self, phi: Array, white: Whitening) -> Array:
        """Curvature of a row as second moments and normal features let expect."""
        kind = self.rows.kind
        if kind in (LINEAR, STUDENT_T):
            usual = 1.0 if kind == LINEAR else (self.freedom + 1) / (self.freedom + 3)
            if kind == STUDENT_T and self.numbers[kernels.SAFE]:
                usual = 1.0
            return np.asarray(usual * white.whitened, dtype=np.float64)
        centre, spread, along, middle, deviation = self._predictors(phi, white)
        eta = middle + deviation * NODES
        if kind == LOGISTIC:
            small = np.exp(-np.abs(eta))
            values = small / (1 + small) ** 2
        else:
            rates = np.exp(np.minimum(eta, 50.0))
            sizes = np.maximum(1.0, np.sqrt(rates / self.variance))
            values = np.minimum(rates / sizes, self.numbers[kernels.CURVATURE])
        zero, one, two = (float(WEIGHTS @ (values * NODES**k)) for k in range(3))
        both = np.outer(centre, along)
        return np.asarray(
            zero * (spread + np.outer(centre, centre))
            + one * (both + both.T)
            + (two - zero) * np.outer(along, along),
            dtype=np.float64,
        )

    def _predictors(self, phi: Array, white: Whitening) -> tuple[Array, Array, Array, float, float]:
        """Mean and spread of whitened features, what of it is along phi, and predictors.

        Of these mean and standard deviation.
        """
        centre = np.zeros(self.rows.dim)
        if self.rows.constant:
            centre = white.basis @ white.moments[:, 0]
        spread = positive(white.whitened - np.outer(centre, centre))
        along = spread @ phi
        deviation = math.sqrt(max(float(phi @ along) + self.offset.spread**2, 1e-12))
        middle = float(centre @ phi) + self.offset.middle
        return centre, spread, along / deviation, middle, deviation

    def _sigma(
        self, observed: Observed, found: Normal, white: Whitening, cost: float
    ) -> tuple[float, float, float] | None:
        """Logarithm of the scale at the centre, its variance over rows, and in all."""
        kind, n, numbers = self.rows.kind, self.num_rows, self.numbers
        if kind not in (LINEAR, STUDENT_T):
            return None
        limit, lost = self.freedom + 1, 0.0
        if kind == LINEAR:
            assert self.tails is not None
            limit, lost = self.tails.score_bound(1 / math.sqrt(cost), n)
        numbers[kernels.SCORE] = limit
        scale = self.rows.scores(white.basis, found.mean, numbers, False).scale
        noisy, noise = self.till.release("scale", scale, cost)
        # Residuals at a centre that noise has displaced are larger than those at the mode.
        displaced = float(np.trace(observed.curvature @ found.covariance())) - self.rows.dim
        displaced /= self.each
        displaced = min(max(displaced, 0.0), 0.5 * n)
        total = noisy + lost - displaced
        before = math.log(numbers[kernels.SIGMA])
        if kind == LINEAR:
            total = max(total, noise, 0.05 * n)
            rows = 1 / (2 * n)
            unsure = noise / (2 * total)
            variance = unsure**2 * (1 + 16 * unsure**2) + (0.25 * (lost + displaced) / total) ** 2
            return before + 0.5 * math.log(total / n), rows, rows + variance
        information = 2 * n * self.freedom / (self.freedom + 3)
        move = min(max((total - n) / information, -1.0), 1.0)
        rows = 1 / information
        variance = (noise / information) ** 2 + (0.12 * move) ** 2 + (0.25 * displaced / n) ** 2
        return before + move, rows, rows + variance

    def _check(
        self, found: Normal, white: Whitening, observed: Observed
    ) -> tuple[tuple[float, float], float, bool]:
        """Dispersion of gradients and its noise, what is left of the residual, tails."""
        numbers = self.numbers
        sums = self.rows.scores(white.basis, found.mean, numbers, False)
        left = self.till.left
        linear = self.rows.kind == LINEAR
        part = (0.3 if linear else 0.5) * left
        spread, noise = self.till.release("check of variance", sums.dispersion, part)
        heavy = False
        if linear:
            far, far_noise = self.till.release("check of tails", sums.far, 0.5 * left)
            heavy = far > 1e-3 * self.num_rows + CLEAR * far_noise
        rest, rest_noise = self.till.release("check of mean", sums.mean, self.till.left)
        scale = numbers[kernels.SIGMA] ** 2
        usual = max(float(np.trace(observed.curvature)) * scale, 1e-12) * observed.share
        usual /= self.each
        if linear:
            bound = float(numbers[kernels.GRADIENT])
            squares, inside = _clipped_normal(bound / math.sqrt(self.rows.dim))
            spread -= (squares - inside) / squares * usual
        deviation = math.sqrt(
            rest_noise**2
            + self.num_rows * self.variance
            + (observed.noise / self.each) ** 2 * scale
        )
        return (1 + spread / usual, noise / usual), rest / deviation, heavy


def _clipped_normal(bound: float) -> tuple[float, float]:
    """Mean square of a normal number clipped to a bound, and how often it is within."""
    outside = math.erfc(bound / math.sqrt(2))
    density = math.exp(-(bound**2) / 2) / math.sqrt(2 * math.pi)
    return 1 - outside - 2 * bound * density + bound**2 * outside, 1 - outside


def _median_t(freedom: float) -> float:
    from scipy.stats import t

    return float(t.ppf(0.75, freedom))
