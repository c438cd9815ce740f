"""Means of a mixture of Gaussians: x ~ sum_j w_j N(mu_j, sigma^2 I), labels summed out."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.numerics.compiled import compile_source
from dpmc.numerics.vector_math import exp, log
from dpmc.types import Array, DpmcError, Model


@dataclass(frozen=True)
class Params:
    """Components and prior. A row is a point in d dimensions; all of this is public.

    Parameters
    ----------
    prior_means : sequence of shape (J, d)
        Of mu_j: what tells components apart before a row is seen. Equal ones have no names, and
        a posterior that is the same for any order of them.
    sigma : float
        Standard deviation of a row around its mean, in each direction.
    weights : sequence of shape (J,), optional
        w_j, positive, of sum 1; by default all alike.
    prior_sd : float
        Of each coordinate of a mean around its prior one.
    """

    prior_means: Sequence[Sequence[float]]
    sigma: float = 1.0
    weights: Sequence[float] | None = None
    prior_sd: float = 10.0

    def __post_init__(self) -> None:
        means = checks.real_numbers(self.prior_means)
        if means.ndim != 2 or means.size == 0 or not np.isfinite(means).all():
            raise DpmcError(
                f"`prior_means` must be finite numbers of shape (J, d), got shape {means.shape}"
            )
        checks.positive("sigma", self.sigma)
        checks.positive("prior_sd", self.prior_sd)
        weights = self.shares
        if weights.shape != means.shape[:1] or not (
            (weights > 0).all() and abs(weights.sum() - 1) <= 1e-12
        ):
            raise DpmcError(
                f"`weights` must be {len(means)} numbers > 0 of sum 1, got {self.weights!r}"
            )

    @property
    def shares(self) -> Array:
        """The weights."""
        if self.weights is None:
            count = len(self.prior_means)
            return np.full(count, 1 / count)
        return checks.real_numbers(self.weights)


EXAMPLE = Params([[-1.0, 0.0], [1.0, 0.5], [0.0, 2.0]], 0.7, [0.5, 0.2, 0.3])
EXAMPLE_ROWS = [[-1.1, 0.3], [0.8, 0.2], [0.1, 2.4], [-0.9, -0.6]]


@functools.cache
def _row_functions(
    num_components: int, dim: int, log_weights: tuple[float, ...], precision: float
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Compile log-likelihood and gradient, unrolled for components and coordinates."""
    components, coordinates = range(num_components), range(dim)
    lines = ["def kernel(c, x):"]
    for j in components:
        lines += [f"    d{j}_{k} = x[{k}] - c[{j * dim + k}]" for k in coordinates]
        square = " + ".join(f"d{j}_{k} * d{j}_{k}" for k in coordinates)
        lines.append(f"    l{j} = {log_weights[j]!r} - {0.5 * precision!r} * ({square})")
    lines.append("    top = l0")
    lines += [f"    top = max(top, l{j})" for j in components[1:]]
    lines += [f"    e{j} = exp(l{j} - top)" for j in components]
    lines.append("    total = " + " + ".join(f"e{j}" for j in components))
    slopes = [f"e{j} / total * {precision!r} * d{j}_{k}" for j in components for k in coordinates]
    names = {"exp": exp, "log": log}
    return (
        compile_source("\n".join([*lines, "    return top + log(total)", ""]), False, **names),
        compile_source(
            "\n".join([*lines, f"    return ({', '.join(slopes)},)", ""]), False, **names
        ),
    )


def build(params: Params) -> Model:
    """Posterior of all means, those of the first component first.

    No Lipschitz constant exists: a row that is far from a mean that is its nearest has a gradient
    as long as the distance. The automatic method sees one mode alone: start where the components
    are in the order that is meant, or use `dpmc.mixture`.

    Examples
    --------
    >>> build(Params([[-2.0, 0.0], [2.0, 0.0]])).dim
    4
    """
    means = checks.real_numbers(params.prior_means)
    centre, precision = means.ravel(), float(params.prior_sd**-2.0)
    log_likelihood, gradient = _row_functions(
        *means.shape, tuple(math.log(w) for w in params.shares), params.sigma**-2.0
    )

    def log_prior(theta: Array) -> float:
        return -0.5 * precision * float(np.sum((theta - centre) ** 2))

    def log_prior_gradient(theta: Array) -> Array:
        gradient: Array = precision * (centre - theta)
        return gradient

    return Model(
        name="mixture",
        dim=centre.size,
        log_likelihood=log_likelihood,
        gradient=gradient,
        log_prior=log_prior,
        log_prior_gradient=log_prior_gradient,
    )
