"""Exact posteriors of regressions, without privacy, and what can be wrong with one on some rows.

Posteriors are found by Newton steps, then importance sampling.

Families are those of `dpmc.regression`: theta has the coefficients, that of the constant first, and
for ``linear`` and ``student_t`` the logarithm of the scale last. Priors are normal.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, gammaln, logsumexp

from dpmc.families.regression import LINEAR, LOGISTIC, POISSON, SCALED
from dpmc.rng import stream
from dpmc.types import Array, DpmcError

FREEDOM = 4.0
# Draws of importance sampling, for as many rows as it takes seconds for.
DRAWS, MOST_ROWS = 1000, 20_000
# With fewer effective draws the normal approximation is kept.
FEWEST_EFFECTIVE = 100.0
SCORED_ROWS, SCORED_DRAWS = 20_000, 200
# Largest logarithm of a rate: that of a search that has run away.
LARGEST = 40.0
MOST_STEPS = 200

BUDGET, RARE_CLASS, RARE_FEATURE = "budget", "rare class", "rare feature"
COLLINEAR, PRIOR, TAILS, VARIANCE = "collinear columns", "prior", "heavy tails", "variance"
# What a remark that names a cause has in it.
WORDS = {
    BUDGET: r"budget|epsilon|more rows|few rows",
    RARE_CLASS: r"rare|few (ones|zeros|counts|events)",
    RARE_FEATURE: r"rare|few rows",
    COLLINEAR: r"collinear|constant|combination|depend",
    PRIOR: r"prior_sd|units",
    TAILS: r"tail|outl|student_t",
    VARIANCE: r"var(y|ies|ia)|dispers|robust",
}
# A search that ended early is true of every fit that is far off.
SEARCH = r"search|arrived"
# Displacement by noise at best from which on the budget is a cause, in posterior deviations.
FAR = 1
# Shares of ones, and of rows with a binary feature, that are rare.
FEW_ONES, FEW_FEATURES = 0.05, 0.02
# Condition number of standardised features.
CONDITION = 30
# Prior deviations of the mode.
PRIOR_DEVIATIONS = 3
# Deviations of a feature that one row in a thousand exceeds.
LONG = 8
# Variance of a score over that of the model, or the other way round.
RATIO = 1.5
# Deviations of residuals that one row in a thousand exceeds, where the model has no such tails.
LONG_RESIDUALS = {LINEAR: 5, POISSON: 8}


@dataclass(frozen=True, eq=False)
class Prior:
    """A normal prior of theta.

    Parameters
    ----------
    mean : ndarray of shape (d,)
    precision : ndarray of shape (d, d)
    """

    mean: Array
    precision: Array

    @classmethod
    def fixed(cls, family: str, dim: int, sd: float = 10.0, log_scale_sd: float = 3.0) -> Prior:
        """The prior with one standard deviation of coefficients in raw units."""
        sds = np.full(dim, sd)
        if family in SCALED:
            sds[-1] = log_scale_sd
        return cls(np.zeros(dim), np.diag(sds**-2.0))

    @classmethod
    def in_units(cls, family: str, x: Array, y: Array) -> Prior:
        """A weak prior in the units of rows, read off them without privacy.

        A standard deviation of a feature moves the predictor by 2.5 (times the standard deviation
        of the response, where it has a unit); the predictor at mean features has 10 of these.
        """
        unit, middle = (y.std(), y.mean()) if family in SCALED else (1.0, 0.0)
        centre, spread = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-12)
        coefficients = 1 + x.shape[1]
        dim = coefficients + (family in SCALED)
        # theta to predictor at the mean, change by a standard deviation, logarithm of the scale.
        moved = np.eye(dim)
        moved[0, 1:coefficients] = centre
        moved[range(1, coefficients), range(1, coefficients)] = spread
        wide, mean = np.full(dim, 2.5 * unit), np.zeros(dim)
        wide[0], mean[0] = 10 * unit, middle
        if family in SCALED:
            wide[-1], mean[-1] = 3.0, math.log(unit)
        scaled = moved / wide[:, None]
        return cls(np.linalg.solve(moved, mean), scaled.T @ scaled)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Mean, standard deviations and covariance of theta, and draws.

    Parameters
    ----------
    mean, sd : ndarray of shape (d,)
    covariance : ndarray of shape (d, d)
    draws : ndarray of shape (k, d)
    """

    mean: Array
    sd: Array
    covariance: Array
    draws: Array


@dataclass(frozen=True, eq=False)
class Slopes:
    """Derivatives of the log likelihood of each row, by the predictor and the log scale.

    Parameters
    ----------
    slope, curvature : ndarray of shape (n,)
        Second derivatives have the sign of a precision.
    scale_slope, scale_curvature, cross : ndarray of shape (n,) or None
    """

    slope: Array
    curvature: Array
    scale_slope: Array | None = None
    scale_curvature: Array | None = None
    cross: Array | None = None


def _parts(family: str, theta: Array, design: Array) -> tuple[Array, float]:
    """The predictor of each row, and the logarithm of the scale."""
    log_scale = float(theta[-1]) if family in SCALED else 0.0
    return design @ theta[: design.shape[1]], log_scale


def values(family: str, theta: Array, design: Array, y: Array) -> Array:
    """The log likelihood of each row."""
    predictor, log_scale = _parts(family, theta, design)
    if family == LOGISTIC:
        return y * predictor - np.logaddexp(0, predictor)
    if family == POISSON:
        return y * predictor - np.exp(np.minimum(predictor, LARGEST)) - gammaln(y + 1)
    squares = ((y - predictor) * math.exp(-log_scale)) ** 2
    if family == LINEAR:
        return -log_scale - 0.5 * squares - 0.5 * math.log(2 * math.pi)
    v = FREEDOM
    constant = math.lgamma((v + 1) / 2) - math.lgamma(v / 2) - 0.5 * math.log(v * math.pi)
    return constant - log_scale - 0.5 * (v + 1) * np.log1p(squares / v)


def slopes(family: str, theta: Array, design: Array, y: Array) -> Slopes:
    """The derivatives of the log likelihood of each row."""
    predictor, log_scale = _parts(family, theta, design)
    if family == LOGISTIC:
        chance = expit(predictor)
        return Slopes(y - chance, chance * (1 - chance))
    if family == POISSON:
        rate = np.exp(np.minimum(predictor, LARGEST))
        return Slopes(y - rate, rate)
    inverse = math.exp(-log_scale)
    residual = (y - predictor) * inverse
    square = residual**2
    if family == LINEAR:
        flat = np.full_like(y, inverse**2)
        return Slopes(residual * inverse, flat, square - 1, 2 * square, 2 * residual * inverse)
    v = FREEDOM
    ratio, factor = 1 + square / v, (v + 1) / v
    return Slopes(
        factor * residual * inverse / ratio,
        factor * inverse**2 * (2 - ratio) / ratio**2,
        factor * square / ratio - 1,
        2 * factor * square / ratio**2,
        2 * factor * residual * inverse / ratio**2,
    )


def precision_of(found: Slopes, design: Array) -> Array:
    """Minus the second derivative of the log likelihood, shape (d, d)."""
    inner = (design.T * found.curvature) @ design
    if found.cross is None or found.scale_curvature is None:
        return inner
    side = design.T @ found.cross
    return np.block([[inner, side[:, None]], [side[None], found.scale_curvature.sum()]])


def row_gradients(found: Slopes, design: Array) -> Array:
    """The gradient of each row, shape (n, d)."""
    inner = design * found.slope[:, None]
    return inner if found.scale_slope is None else np.column_stack([inner, found.scale_slope])


def null_start(family: str, y: Array, dim: int) -> Array:
    """Theta of the model that knows the mean response alone."""
    theta = np.zeros(dim)
    if family == LOGISTIC:
        share = np.clip(y.mean(), 0.5 / len(y), 1 - 0.5 / len(y))
        theta[0] = math.log(share / (1 - share))
    elif family == POISSON:
        theta[0] = math.log(max(y.mean(), 0.5 / len(y)))
    else:
        theta[0], theta[-1] = np.median(y), math.log(max(y.std(), 1e-12))
    return theta


def mode(family: str, design: Array, y: Array, prior: Prior) -> tuple[Array, Array]:
    """The mode given rows of a design with a constant first, and a root of the covariance.

    Newton steps are in standardised features: raw units make second derivatives singular.
    """
    dim, columns = len(prior.mean), design.shape[1]
    centre, spread = design.mean(axis=0), np.maximum(design.std(axis=0), 1e-12)
    centre[0], spread[0] = 0.0, 1.0
    moved = np.eye(dim)
    moved[range(columns), range(columns)] = 1 / spread
    moved[0, 1:columns] = -centre[1:] / spread[1:]
    standard = (design - centre) / spread
    inside = Prior(np.linalg.solve(moved, prior.mean), moved.T @ prior.precision @ moved)
    theta = np.linalg.solve(moved, null_start(family, y, dim))
    for _ in range(MOST_STEPS):
        found = slopes(family, theta, standard, y)
        slope = row_gradients(found, standard).sum(axis=0)
        slope -= inside.precision @ (theta - inside.mean)
        precision = precision_of(found, standard) + inside.precision
        sizes, vectors = np.linalg.eigh(precision)
        step = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(sizes), 1e-10))
        before = log_density(family, theta, standard, y, inside)
        slack = 1e-9 * abs(before)
        while log_density(family, theta + step, standard, y, inside) < before - slack:
            step /= 2
        theta = theta + step
        if np.abs(step @ precision @ step) < 1e-10:
            root = np.linalg.inv(np.linalg.cholesky(precision)).T
            return moved @ theta, moved @ root
    raise DpmcError(f"`rows` must have a posterior whose mode {MOST_STEPS} Newton steps find")


def log_density(family: str, theta: Array, design: Array, y: Array, prior: Prior) -> float:
    """The log density of the posterior up to a constant."""
    away = theta - prior.mean
    return float(values(family, theta, design, y).sum() - 0.5 * away @ prior.precision @ away)


def exact(family: str, design: Array, y: Array, prior: Prior) -> Posterior:
    """The posterior given rows of a design with a constant first."""
    top, root = mode(family, design, y, prior)
    half = stream(0, "exact", family, len(top), len(y)).standard_normal((DRAWS // 2, len(top)))
    # Both signs: nothing of a normal posterior's mean is left to chance.
    normal = np.concatenate([half, -half])
    draws = top + normal @ root.T
    if len(y) <= MOST_ROWS:
        densities = [log_density(family, draw, design, y, prior) for draw in draws]
        logs = np.array(densities) + 0.5 * np.sum(normal**2, axis=1)
        weights = np.exp(logs - logsumexp(logs))
        if 1 / np.sum(weights**2) >= FEWEST_EFFECTIVE:
            mean = weights @ draws
            away = draws - mean
            covariance = away.T @ (weights[:, None] * away)
            again = stream(1, "exact", family, len(top), len(y)).choice(DRAWS, DRAWS, p=weights)
            return Posterior(mean, np.sqrt(np.diag(covariance)), covariance, draws[again])
    covariance = root @ root.T
    return Posterior(top, np.sqrt(np.diag(covariance)), covariance, draws)


def log_score(family: str, draws: Array, design: Array, y: Array) -> float:
    """The mean log predictive density of rows under draws of theta, shape (k, d)."""
    design, y = design[:SCORED_ROWS], y[:SCORED_ROWS]
    some = draws[:: max(1, len(draws) // SCORED_DRAWS)]
    logs = np.array([values(family, theta, design, y) for theta in some])
    return float(np.mean(logsumexp(logs, axis=0) - math.log(len(some))))


def limit(family: str, posterior: Posterior, design: Array, y: Array, mu: float) -> float:
    """By how much noise displaces a mean at best, in posterior deviations.

    One release of the gradient at the exact mean, whitened by the exact covariance: substitution of
    a row moves it by 2 c, where c is the norm that 99.9 % of the rows do not exceed, so that noise
    displaces means by 2 c / mu in each direction.
    """
    root = np.linalg.cholesky(posterior.covariance)
    gradients = row_gradients(slopes(family, posterior.mean, design, y), design)
    norms = np.linalg.norm(gradients @ root, axis=1)
    return 2 * float(np.quantile(norms, 0.999)) / mu


def limit_of_rare(family: str, posterior: Posterior, design: Array, y: Array, mu: float) -> float:
    """By how much noise displaces a mean where sensitivity does not follow the point.

    A row whose whitened features have the norm R, and whose residual is b at most whatever theta
    is, moves a whitened gradient by 2 R b under substitution. Rows with mean curvature w then have
    means displaced by 2 R b / (mu sqrt(n w)) of their deviations; of a logistic regression with a
    share p of ones b is 1 and w is p (1 - p). R is what 99.9 % of the rows need: at a rare feature,
    in a share q of them, it grows as 1 / sqrt(q). A bound b on counts clips those beyond: means
    move by the root of their squared excess over n w, too, and b is where both are least.
    """
    moments = design.T @ design / len(y)
    sizes, vectors = np.linalg.eigh(moments)
    norms = np.linalg.norm(design @ (vectors / np.sqrt(sizes)), axis=1)
    found = slopes(family, posterior.mean, design, y)
    information = len(y) * float(found.curvature.mean())
    noise = 2 * float(np.quantile(norms, 0.999)) / (mu * math.sqrt(information))
    if family == LOGISTIC:
        return noise
    sizes = np.abs(found.slope)
    bounds = np.quantile(sizes, 1 - np.geomspace(1e-6, 0.1, 40))
    lost = [float((np.maximum(sizes - bound, 0.0) ** 2).sum()) / information for bound in bounds]
    return math.sqrt(float(np.min((noise * bounds) ** 2 + lost)))


def causes(
    family: str, posterior: Posterior, prior: Prior, design: Array, y: Array, limit: float
) -> list[str]:
    """What is true of these rows, of the most general kind first."""
    found = []
    if limit > FAR:
        found.append(BUDGET)
    share = min(y.mean(), 1 - y.mean()) if family == LOGISTIC else y.mean()
    if family in (LOGISTIC, POISSON) and share < FEW_ONES:
        found.append(RARE_CLASS)
    x = design[:, 1:]
    binary = ((x == x.min(axis=0)) | (x == x.max(axis=0))).all(axis=0)
    shares = (x > x.min(axis=0)).mean(axis=0)
    if np.any(binary & (np.minimum(shares, 1 - shares) < FEW_FEATURES)):
        found.append(RARE_FEATURE)
    spread = x.std(axis=0)
    standard = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1)
    if (spread == 0).any() or np.linalg.cond(standard) > CONDITION:
        found.append(COLLINEAR)
    away = posterior.mean - prior.mean
    if away @ prior.precision @ away > PRIOR_DEVIATIONS**2 * len(away):
        found.append(PRIOR)
    parts = slopes(family, posterior.mean, design, y)
    residuals = parts.slope / max(float(parts.slope.std()), 1e-300)
    long = bool((np.quantile(np.abs(standard[:, ~binary]), 0.999, axis=0) > LONG).any())
    if long or np.quantile(np.abs(residuals), 0.999) > LONG_RESIDUALS.get(family, np.inf):
        found.append(TAILS)
    gradients = row_gradients(parts, design)
    whole = np.linalg.cholesky(posterior.covariance)
    ratio = float(np.mean(np.sum((gradients @ whole) ** 2, axis=0)))
    if not 1 / RATIO <= ratio <= RATIO:
        found.append(VARIANCE)
    return found


def named(remarks: str, true: list[str]) -> bool:
    """Whether remarks name one of the causes."""
    words = [SEARCH, *(WORDS[cause] for cause in true if cause)]
    return any(re.search(one, remarks, re.IGNORECASE) for one in words)
