"""Shared chain settings, and the driver that runs one chain."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpmc import checks
from dpmc.numerics.compiled import compile_once
from dpmc.progress import Progress, silent
from dpmc.statsel.chains.common import Faults, ThetaWalk
from dpmc.statsel.targets import PosteriorTarget, ThetaPrior
from dpmc.types import Array, DpmcError, is_real

# Fills an array with the next draws, and returns the moves made.
Advance = Callable[[Array], int]
# Steps of a random walk, in posterior standard deviations, where none is target.
STEP = 2.4
# Calls in which a chain is run where its progress is reported.
NUM_CALLS = 50


@dataclass(frozen=True)
class ChainParams:
    """Settings of a chain.

    Parameters
    ----------
    num_iterations : int
        Iterations, burn-in among them.
    burn_in : float
        Share of the iterations that is dropped, in [0, 1).
    proposal_sd : float, optional
        Of the random walk; by default 2.4 standard deviations of the posterior by quadrature.
    start : float, optional
        First theta; by default the posterior mean by quadrature.
    """

    num_iterations: int = 10_000
    burn_in: float = 0.1
    proposal_sd: float | None = None
    start: float | None = None

    def __post_init__(self) -> None:
        checks.at_least("num_iterations", self.num_iterations, 1)
        if not (is_real(self.burn_in) and 0 <= self.burn_in < 1):
            raise DpmcError(f"`burn_in` must be in [0, 1), got {self.burn_in!r}")
        checks.positive("proposal_sd", self.proposal_sd, optional=True)
        if self.start is not None and not (is_real(self.start) and math.isfinite(self.start)):
            raise DpmcError(f"`start` must be finite, got {self.start!r}")


@dataclass(frozen=True)
class ParticleParams(ChainParams):
    """Settings of a chain with particles.

    Parameters
    ----------
    num_particles : int
        N, the current particle among them; at least 2.
    """

    num_particles: int = 100
    _fewest_particles = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.at_least("num_particles", self.num_particles, self._fewest_particles)


class ChainRun(NamedTuple):
    """One run of a chain, as methods are given it."""

    target: PosteriorTarget
    params: Any  # of the method
    faults: Faults
    walk: ThetaWalk
    start: float
    rng: np.random.Generator


@dataclass(frozen=True)
class ChainDraws:
    """Draws of one chain, without burn-in."""

    theta: Array  # (k,): after burn-in
    acceptance_rate: float  # Of all iterations


def log_prior(prior: ThetaPrior) -> Any:
    """Compiled log-density of a prior."""
    return compile_once(prior.log_density)


def run(
    method: Any,
    target: PosteriorTarget,
    params: Any,
    variant: str,
    rng: np.random.Generator,
    moments: Callable[[], tuple[float, float]],
    progress: Progress = silent,
) -> ChainDraws:
    """Run one chain of one release.

    Parameters
    ----------
    method : ChainMethod
        Entry of :mod:`dpmc.statsel.chains.methods`, with a chain.
    params : Params
        Its parameters.
    variant : str
        One of its variants.
    moments : callable ``() -> (mean, sd)``
        Of the posterior, asked for where the settings leave start or step open.
    progress : callable
        Called with the iterations done and the iterations to do.
    """
    if target.shape not in method.shapes:
        raise DpmcError(
            f"`method` must take a release of shape {target.shape!r}, got {method.name!r}, which "
            f"takes {' or '.join(method.shapes)}"
        )
    faults = fault(method.name, variant, method.variants)
    start, step = params.start, params.proposal_sd
    if start is None or step is None:
        mean, sd = moments()
        start = mean if start is None else start
        step = STEP * sd if step is None else step
    low, high = target.prior.low, target.prior.high
    if not low < start < high:
        raise DpmcError(f"`start` must be inside the prior ({low:g}, {high:g}), got {start}")
    walk = ThetaWalk(low, high, step)
    advance = method.chain(ChainRun(target, params, faults, walk, float(start), rng))
    return _advanced(advance, params, progress)


def fault(name: str, variant: str, variants: Mapping[str, Any]) -> Any:
    """Deviations of a variant."""
    if variant not in variants:
        raise DpmcError(
            f"`variant` of {name} must be one of {', '.join(variants)}, got {variant!r}"
        )
    return variants[variant]


def _advanced(advance: Advance, params: ChainParams, progress: Progress) -> ChainDraws:
    """Run a chain, in one call unless progress is reported."""
    total = params.num_iterations
    draws, moves, done = np.empty(total), 0, 0
    part = total if progress is silent else max(1, math.ceil(total / NUM_CALLS))
    while done < total:
        end = min(done + part, total)
        moves += advance(draws[done:end])
        done = end
        progress(done, total, f"accepted {moves / done:.3f}")
    return ChainDraws(draws[int(params.burn_in * total) :], moves / total)
