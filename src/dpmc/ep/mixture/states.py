"""Natural parameters of all components, and the operations of a loop on them, compiled.

The state of a loop is what the rows add to the prior, theta - theta_0; nothing else is kept
between steps.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmc.ep.mixture.model import SQRT2, MixtureModel
from dpmc.numerics.small_matrices import (
    cholesky,
    compiled,
    copy_matrix,
    copy_vector,
    inner,
    raise_eigenvalues,
)
from dpmc.privacy.grids import on_steps
from dpmc.rows.clipping import SMALLEST_COMPARED_BOUND, clip_together, ordinary

# Kinds of clip of a factor.
NO_CLIP, JOINT, PER_BLOCK = 0, 1, 2


class MixtureTarget(NamedTuple):
    """The model as compiled code reads it."""

    log_weights: Any  # (J,)
    variance: float  # sigma_x^2
    prior_h: Any  # (J, d)
    prior_precision: Any  # (J, d, d)

    @classmethod
    def of(cls, model: MixtureModel) -> MixtureTarget:
        """Target of a model."""
        variance = float(model.sigma_x) ** 2
        prior = np.ascontiguousarray(model.prior_h()), np.array(model.prior_precision)
        return cls(np.log(model.weights), variance, *prior)

    def clipped(self, bound: float) -> MixtureTarget:
        """Target whose prior is clipped, h and precision separately."""
        parts = (
            part / max(1.0, float(np.linalg.norm(part)) / bound)
            for part in (self.prior_h, self.prior_precision)
        )
        return MixtureTarget(self.log_weights, self.variance, *parts)


class MixtureState(NamedTuple):
    """theta - theta_0, or another point of the same shape."""

    h: Any  # (J, d)
    precision: Any  # (J, d, d)

    @classmethod
    def zeros(cls, num: int, dim: int) -> MixtureState:
        """State without any row."""
        return cls(np.zeros((num, dim)), np.zeros((num, dim, dim)))


class MixtureScratch(NamedTuple):
    """Room for one step."""

    cavity: Any  # MixtureState
    factor: Any  # MixtureState
    proposal: Any  # MixtureState
    means: Any  # (J, d): of the cavity
    shifts: Any  # (J, d): u
    slopes: Any  # (J, d): Lambda u
    scores: Any  # (J,)
    chances: Any  # (J,): r
    others: Any  # (J,): 1 - r
    a: Any  # (d, d), as is b
    b: Any
    x: Any  # (d,), as is y
    y: Any

    @classmethod
    def of(cls, num: int, dim: int) -> MixtureScratch:
        """Allocate it."""
        states = (MixtureState.zeros(num, dim) for _ in range(3))
        vectors, numbers = np.zeros((3, num, dim)), np.zeros((3, num))
        return cls._make(
            [*states, *vectors, *numbers, *np.zeros((2, dim, dim)), *np.zeros((2, dim))]
        )


@compiled
def fill(target: Any, state: Any, share: float, out: Any) -> None:
    """Write theta_0 plus a share of the state."""
    for j in range(out.h.shape[0]):
        for i in range(out.h.shape[1]):
            out.h[j, i] = target.prior_h[j, i] + share * state.h[j, i]
            for k in range(out.h.shape[1]):
                out.precision[j, i, k] = (
                    target.prior_precision[j, i, k] + share * state.precision[j, i, k]
                )


@compiled
def combine(first_weight: float, first: Any, second_weight: float, second: Any, out: Any) -> None:
    """Write a linear combination of two states; `out` may be one of them."""
    for j in range(out.h.shape[0]):
        for i in range(out.h.shape[1]):
            out.h[j, i] = first_weight * first.h[j, i] + second_weight * second.h[j, i]
            for k in range(out.h.shape[1]):
                out.precision[j, i, k] = (
                    first_weight * first.precision[j, i, k]
                    + second_weight * second.precision[j, i, k]
                )


@compiled
def copy(source: Any, out: Any) -> None:
    """Write a copy of a state."""
    for j in range(out.h.shape[0]):
        copy_vector(source.h[j], out.h[j])
        copy_matrix(source.precision[j], out.precision[j])


@compiled
def scale(h_weight: float, precision_weight: float, out: Any) -> None:
    """Multiply the two parts of a state."""
    for j in range(out.h.shape[0]):
        for i in range(out.h.shape[1]):
            out.h[j, i] *= h_weight
            for k in range(out.h.shape[1]):
                out.precision[j, i, k] *= precision_weight


@compiled
def squared_norms(state: Any) -> tuple[float, float]:
    """Squared norms of h and of the precisions, all components together."""
    first, second = 0.0, 0.0
    for j in range(state.h.shape[0]):
        first += inner(state.h[j], state.h[j])
        for i in range(state.h.shape[1]):
            for k in range(state.h.shape[1]):
                second += state.precision[j, i, k] ** 2
    return first, second


@compiled
def clip(mode: int, bound: float, state: Any) -> bool:
    """Shorten a state to the bound: as one vector, or each of its two parts.

    After it the norm is at most the bound whatever the state was. Where squares are no ordinary
    numbers, or the bound has none to compare with, both parts are shortened as one vector
    (:mod:`dpmc.rows.clipping`).
    """
    if mode == NO_CLIP:
        return False
    first, second = squared_norms(state)
    # Squares that overflow, vanish or are NaN say nothing of the norm: clip with scaled entries.
    if not ordinary(first + second) or bound < SMALLEST_COMPARED_BOUND:
        vectors = (state.h.reshape(-1), state.precision.reshape(-1), np.zeros(0))
        return bool(clip_together(bound, *vectors))
    # One vector: both parts are shortened by the norm of the whole.
    if mode == JOINT:
        first = first + second
        second = first
    short, flat = bound / math.sqrt(first), bound / math.sqrt(second)  # inf at norm 0
    if short >= 1.0 and flat >= 1.0:
        return False
    scale(min(1.0, short), min(1.0, flat), state)
    return True


@compiled
def add_noise(noise: Any, state: Any) -> None:
    """Add a vector whose norm is that of (h, Lambda) as coordinates have it."""
    num, dim = state.h.shape
    # The first J d coordinates are h; then each lower triangle row by row, where a coordinate
    # off the diagonal stands for two entries and is sqrt(2) times each of them.
    at = num * dim
    for j in range(num):
        for i in range(dim):
            state.h[j, i] += noise[j * dim + i]
            for k in range(i):
                state.precision[j, i, k] += noise[at] / SQRT2
                state.precision[j, k, i] = state.precision[j, i, k]
                at += 1
            state.precision[j, i, i] += noise[at]
            at += 1


@compiled
def step_on_grid(
    first_weight: float,
    first: Any,
    second_weight: float,
    second: Any,
    grid: float,
    noise: Any,
    out: Any,
) -> None:
    """Write a linear combination of two states, each rounded to a grid, with noise on it.

    As `combine` and `add_noise` do, in the same coordinates. The first state is public: rounded by
    itself, it is the same whatever the second is, and their sum is exact.
    """
    num, dim = out.h.shape
    at = num * dim
    for j in range(num):
        for i in range(dim):
            base = on_steps(first_weight * first.h[j, i], grid)
            change = on_steps(second_weight * second.h[j, i], grid)
            out.h[j, i] = base + change + noise[j * dim + i]
            for k in range(i + 1):
                scale = 1.0 if k == i else SQRT2
                base = on_steps(scale * first_weight * first.precision[j, i, k], grid)
                change = on_steps(scale * second_weight * second.precision[j, i, k], grid)
                out.precision[j, i, k] = (base + change + noise[at]) / scale
                out.precision[j, k, i] = out.precision[j, i, k]
                at += 1


@compiled
def finite(state: Any) -> bool:
    """Test of a state: all of its entries are finite."""
    for j in range(state.h.shape[0]):
        for i in range(state.h.shape[1]):
            if not abs(state.h[j, i]) < math.inf:
                return False
            for k in range(state.h.shape[1]):
                if not abs(state.precision[j, i, k]) < math.inf:
                    return False
    return True


@compiled
def all_definite(precision: Any, factor: Any) -> bool:
    """Test of matrices: all of them are positive definite."""
    for j in range(precision.shape[0]):  # noqa: SIM110
        if not cholesky(precision[j], factor):
            return False
    return True


@compiled
def repair(state: Any, threshold: float, floor: float, scratch: Any) -> int:
    """Raise small eigenvalues of all precisions of a state; return how many needed it."""
    count = 0
    for j in range(state.h.shape[0]):
        matrix = state.precision[j]
        count += raise_eigenvalues(matrix, threshold, floor, scratch.a, scratch.b)
    return count
