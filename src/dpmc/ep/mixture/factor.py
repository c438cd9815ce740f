"""Factor of one row of a mixture, compiled.

It is computed without inverting a covariance. Of the tilted mixture of [vinaroz2022dpsep, section
6.1], Kalman update of the cavity N(m, Lambda^-1) with probability r, no update with 1 - r,
the precision is

    Lambda + G - r (1 - r) a a' / (1 + r (1 - r) u'a),

where u = (I + v Lambda)^-1 (x - m), v = sigma_x^2, a = (Lambda + G) u, and
G = r ((1 - r) I + v Lambda)^-1 Lambda. So a factor keeps its accuracy however small it is
relative to the cavity, where the difference of two inverses has none.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmc.ep.mixture.model import MixtureModel
from dpmc.ep.mixture.states import MixtureScratch, MixtureState, MixtureTarget
from dpmc.numerics.small_matrices import (
    cholesky,
    compiled,
    copy_vector,
    inner,
    log_determinant,
    multiply,
    shifted_cholesky,
    solve_lower,
    solve_lower_matrix,
    solve_upper,
    solve_upper_matrix,
)
from dpmc.types import Array

# Where nothing clips it, a factor with a larger entry counts as invalid: a square could overflow.
LARGEST = 1e100


@compiled
def component_score(row: Any, j: int, target: Any, scratch: Any) -> float:
    """Log w_j N(x; m, Lambda^-1 + v I) up to a constant; NaN without a cavity.

    Mean, u and Lambda u of the component are kept for its factor.
    """
    precision, mean, shift = scratch.cavity.precision[j], scratch.means[j], scratch.shifts[j]
    if not cholesky(precision, scratch.a):
        return math.nan
    if not shifted_cholesky(precision, target.variance, 1.0, scratch.b):
        return math.nan
    copy_vector(scratch.cavity.h[j], mean)
    solve_lower(scratch.a, mean)
    solve_upper(scratch.a, mean)
    for i in range(row.size):
        scratch.x[i] = row[i] - mean[i]
        shift[i] = scratch.x[i]
    solve_lower(scratch.b, shift)
    solve_upper(scratch.b, shift)
    multiply(precision, shift, scratch.slopes[j])
    log_spread = log_determinant(scratch.b) - log_determinant(scratch.a)
    return float(target.log_weights[j] - 0.5 * (inner(scratch.x, scratch.slopes[j]) + log_spread))


@compiled
def set_chances(scores: Any, chances: Any, others: Any) -> bool:
    """Write r_j and 1 - r_j, both with full accuracy; return False if there are none."""
    top = -math.inf
    for j in range(scores.size):
        if not abs(scores[j]) < math.inf:
            return False
        top = max(top, scores[j])
    total = 0.0
    for j in range(scores.size):
        chances[j] = math.exp(scores[j] - top)
        total += chances[j]
    for j in range(scores.size):
        rest = 0.0
        for k in range(scores.size):
            if k != j:
                rest += chances[k]
        others[j] = rest / total
    for j in range(scores.size):
        chances[j] /= total
    return True


@compiled
def component_factor(j: int, target: Any, largest: float, scratch: Any) -> bool:
    """Write what the row adds to component j of the cavity; return False if it is not `bounded`."""
    dim, r, rest = scratch.x.size, scratch.chances[j], scratch.others[j]
    g, inverse, shift = scratch.factor.precision[j], scratch.b, scratch.shifts[j]
    if not shifted_cholesky(scratch.cavity.precision[j], target.variance, rest, scratch.a):
        return False
    for i in range(dim):
        for k in range(dim):
            inverse[i, k] = 1.0 if i == k else 0.0
    solve_lower_matrix(scratch.a, inverse)
    solve_upper_matrix(scratch.a, inverse)
    ratio = r / target.variance
    for i in range(dim):  # G = (r / v) (I - (1 - r) ((1 - r) I + v Lambda)^-1)
        for k in range(i + 1):
            g[i, k] = -ratio * rest * inverse[i, k]
            g[k, i] = g[i, k]
        g[i, i] += ratio
    multiply(g, shift, scratch.x)
    for i in range(dim):
        scratch.x[i] += scratch.slopes[j, i]
    weight = r * rest / (1.0 + r * rest * inner(shift, scratch.x))
    for i in range(dim):
        for k in range(i + 1):
            g[i, k] -= weight * scratch.x[i] * scratch.x[k]
            g[k, i] = g[i, k]
    multiply(g, shift, scratch.y)
    multiply(g, scratch.means[j], scratch.factor.h[j])
    for i in range(dim):
        scratch.factor.h[j, i] += r * (scratch.slopes[j, i] + scratch.y[i])
    return bool(bounded(scratch.factor.h[j], g, largest))


@compiled
def bounded(vector: Any, matrix: Any, largest: float) -> bool:
    """True if no entry is NaN or larger than `largest`."""
    for i in range(vector.size):
        if not abs(vector[i]) <= largest:
            return False
        for k in range(vector.size):
            if not abs(matrix[i, k]) <= largest:
                return False
    return True


@compiled
def find_factor(row: Any, target: Any, largest: float, scratch: Any) -> bool:
    """Write the natural parameters of the tilted moments less those of the cavity.

    Returns False, and a factor that means nothing, where the cavity is not a density, the
    tilted moments do not exist, or an entry is NaN or above `largest`: :data:`LARGEST`, or
    infinity where a clip follows.
    """
    for j in range(scratch.scores.size):
        scratch.scores[j] = component_score(row, j, target, scratch)
    if not set_chances(scratch.scores, scratch.chances, scratch.others):
        return False
    for j in range(scratch.scores.size):  # noqa: SIM110, compiled code has no all()
        if not component_factor(j, target, largest, scratch):
            return False
    return True


def factor(
    row: Array, model: MixtureModel, h: Array, precision: Array
) -> tuple[MixtureState, Array] | None:
    """Factor of one row and its responsibilities.

    Natural parameters of the tilted moments less those of the cavity, and the probability of each
    component given the row; None where a cavity is not a density or the factor is not finite.

    Parameters
    ----------
    row : ndarray of shape (d,)
        One row.
    h : ndarray of shape (J, d)
        Of the cavity.
    precision : ndarray of shape (J, d, d)
        Precisions of the cavity.
    """
    scratch = MixtureScratch.of(model.num_components, model.dim)
    scratch.cavity.h[:], scratch.cavity.precision[:] = h, precision
    if not find_factor(
        np.asarray(row, dtype=np.float64), MixtureTarget.of(model), LARGEST, scratch
    ):
        return None
    return scratch.factor, scratch.chances
