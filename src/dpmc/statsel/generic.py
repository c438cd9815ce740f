"""Metropolis-Hastings and its relatives for functions of one's own.

Algorithms 1 to 5 of [alparslan2023thesis, chapter 2] with the acceptance ratios that leave the
target invariant. Parameters are floats or arrays; functions are plain Python, one call per
iteration (particles come all at once, so that these calls can be vectorised). Random walks need
no proposal ratio; every other proposal brings its own. A proposal of zero prior density is
rejected, and counts as an iteration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.chains import REPORT_EVERY, Progress, silent
from dpmc.types import Array, DpmcError

Rng = np.random.Generator
# Iterations in which a density is looked at for symmetry.
SYMMETRY_CHECKS = 20


@dataclass(frozen=True)
class Proposal:
    """Where a chain may go next.

    Parameters
    ----------
    draw : callable ``(theta, rng) -> theta'``
    log_ratio : callable ``(theta, theta') -> float``, optional
        ``log q(theta | theta') - log q(theta' | theta)``; zero if left out, which is right for
        symmetric proposals alone.
    """

    draw: Callable[[Any, Rng], Any]
    log_ratio: Callable[[Any, Any], float] = lambda theta, other: 0.0


@dataclass(frozen=True)
class Chain:
    """What a chain went through.

    Parameters
    ----------
    theta : ndarray of shape (k,) or (k, d)
        States after each iteration; the start is not among them.
    accepted : ndarray of bool of shape (k,)
        Always true for Gibbs.
    """

    theta: Array
    accepted: npt.NDArray[np.bool_]

    @property
    def acceptance_rate(self) -> float:
        """Share of the iterations that moved."""
        return float(self.accepted.mean())


def random_walk(scale: float | Sequence[float]) -> Proposal:
    """Return the Gaussian random walk with these standard deviations.

    Raises
    ------
    DpmcError
        If one is not finite and positive.
    """
    checks.positive_scales("scale", scale)
    sd = np.asarray(scale, dtype=np.float64)

    def draw(theta: Any, rng: Rng) -> Any:
        found = theta + sd * rng.standard_normal(np.shape(theta))
        return float(found) if np.ndim(found) == 0 else found

    return Proposal(draw)


def metropolis_hastings(
    log_target: Callable[[Any], float],
    proposal: Proposal,
    start: Any,
    num_iterations: int,
    rng: Rng,
    progress: Progress = silent,
) -> Chain:
    """Run Algorithm 1, Metropolis-Hastings.

    Parameters
    ----------
    log_target : callable ``(theta) -> float``
        Log-density of the target up to a constant, -inf outside of its support.
    proposal : Proposal
    start : float or ndarray of shape (d,)
    num_iterations : int
    rng : numpy.random.Generator
    progress : callable

    Raises
    ------
    DpmcError
        If the start has no finite log-density, or a log-density is NaN.
    """
    first = _first("log_target(start)", log_target(start))

    def step(state: tuple[Any, float]) -> tuple[tuple[Any, float], bool]:
        theta, log_density = state
        other = proposal.draw(theta, rng)
        found = _number("log_target", log_target(other))
        if _accepts(found - log_density, proposal, theta, other, rng):
            return (other, found), True
        return state, False

    return _run(step, (start, first), num_iterations, progress)


def importance_sampling(
    draw: Callable[[Any, int, Rng], Any],
    log_proposal: Callable[[Any, Any], Array],
    log_joint: Callable[[Any, Any], Array],
    num_particles: int,
) -> Callable[[Any, Rng], float]:
    """Return an unbiased estimate of a likelihood, on the log scale, for Algorithm 2.

    The plain average of weights, all of them at the proposed theta: a self-normalised one is
    biased and would change the target.

    Parameters
    ----------
    draw : callable ``(theta, num, rng) -> particles``
    log_proposal, log_joint : callable ``(particles, theta) -> ndarray of shape (num,)``
        Log-densities of what is drawn, and of particles and data.
    num_particles : int
    """
    checks.at_least("num_particles", num_particles, 1)

    def estimate(theta: Any, rng: Rng) -> float:
        particles = draw(theta, num_particles, rng)
        return log_mean(log_joint(particles, theta) - log_proposal(particles, theta))

    return estimate


def pseudo_marginal(
    log_prior: Callable[[Any], float],
    log_estimate: Callable[[Any, Rng], float],
    proposal: Proposal,
    start: Any,
    num_iterations: int,
    rng: Rng,
    progress: Progress = silent,
) -> Chain:
    """Run Algorithm 2, pseudo-marginal Metropolis-Hastings.

    Parameters
    ----------
    log_prior : callable ``(theta) -> float``
    log_estimate : callable ``(theta, rng) -> float``
        Log of an estimate of the likelihood that is unbiased and >= 0, at this very theta. It
        is kept with its theta until the next move, and never made anew.
    proposal, start, num_iterations, rng, progress
        As for :func:`metropolis_hastings`.

    Raises
    ------
    DpmcError
        If prior or estimate is not positive at the start, or one of them is NaN.
    """
    prior = _first("log_prior(start)", log_prior(start))
    first = _first("log_estimate(start)", log_estimate(start, rng))

    def step(state: Any) -> tuple[Any, bool]:
        theta, log_density = state
        other = proposal.draw(theta, rng)
        found = _number("log_prior", log_prior(other))
        if found == -math.inf:
            return state, False
        found += _number("log_estimate", log_estimate(other, rng))
        if _accepts(found - log_density, proposal, theta, other, rng):
            return (other, found), True
        return state, False

    return _run(step, (start, prior + first), num_iterations, progress)


def correlated_pseudo_marginal(
    log_prior: Callable[[Any], float],
    log_estimate: Callable[[Any, Array], float],
    num_normals: int,
    correlation: float,
    proposal: Proposal,
    start: Any,
    num_iterations: int,
    rng: Rng,
    progress: Progress = silent,
) -> Chain:
    """Run Algorithm 3, pseudo-marginal with estimates that follow each other.

    Parameters
    ----------
    log_prior : callable ``(theta) -> float``
    log_estimate : callable ``(theta, normals) -> float``
        Log of an estimate that is a function of theta and of N(0, I), shape (num_normals,).
    num_normals : int
    correlation : float
        rho in [0, 1): new normals are ``rho U + sqrt(1 - rho^2) N(0, I)``; 0 is Algorithm 2.
    proposal, start, num_iterations, rng, progress
        As for :func:`metropolis_hastings`.

    Raises
    ------
    DpmcError
        As for :func:`pseudo_marginal`, and if `correlation` is out of range.
    """
    checks.at_least("num_normals", num_normals, 1)
    if not 0 <= correlation < 1:
        raise DpmcError(f"correlation: {correlation!r}, allowed a number in [0, 1)")
    fresh = math.sqrt(1 - correlation**2)
    prior = _first("log_prior(start)", log_prior(start))
    normals = rng.standard_normal(num_normals)
    first = _first("log_estimate(start)", log_estimate(start, normals))

    def step(state: Any) -> tuple[Any, bool]:
        theta, log_density, normals = state
        other = proposal.draw(theta, rng)
        found = _number("log_prior", log_prior(other))
        if found == -math.inf:
            return state, False
        moved = correlation * normals + fresh * rng.standard_normal(num_normals)
        found += _number("log_estimate", log_estimate(other, moved))
        if _accepts(found - log_density, proposal, theta, other, rng):
            return (other, found, moved), True
        return state, False

    return _run(step, (start, prior + first, normals), num_iterations, progress)


def averaged_ratio(
    log_prior: Callable[[Any], float],
    log_joint: Callable[[Any, Any], Array],
    draw: Callable[[Any, Any, int, Rng], Any],
    log_density: Callable[[Any, Any, Any], Array],
    num_particles: int,
    proposal: Proposal,
    start: Any,
    latent: Any,
    num_iterations: int,
    rng: Rng,
    progress: Progress = silent,
) -> Chain:
    """Run Algorithm 4, averaged acceptance ratios, Rao-Blackwellised.

    Accepts by ``sum w' / sum w`` (the thesis prints the inverse), takes a particle in
    proportion to w' on acceptance and to w on rejection.

    Parameters
    ----------
    log_prior : callable ``(theta) -> float``
    log_joint : callable ``(particles, theta) -> ndarray of shape (num,)``
        Log-density of latent variable and data.
    draw : callable ``(theta, theta', num, rng) -> ndarray of shape (num, ...)``
    log_density : callable ``(particles, theta, theta') -> ndarray of shape (num,)``
        Of what `draw` draws: symmetric in theta and theta'.
    num_particles : int
        The current latent variable among them.
    proposal, start, num_iterations, rng, progress
        As for :func:`metropolis_hastings`.
    latent : float or ndarray
        First latent variable.

    Raises
    ------
    DpmcError
        If there are fewer than two particles, `log_density` is found not to be symmetric in
        the first iterations, the start has no density, or a function returns NaN.
    """
    checks.at_least("num_particles", num_particles, 2)
    _first("log_prior(start)", log_prior(start))
    first = np.asarray([latent], dtype=np.float64)
    _first("log_joint(latent, start)", float(log_joint(first, start)[0]))
    checked = [0]

    def step(state: Any) -> tuple[Any, bool]:
        theta, t = state
        other = proposal.draw(theta, rng)
        change = _number("log_prior", log_prior(other)) - log_prior(theta)
        if change == -math.inf:
            return state, False
        particles = np.concatenate([t[None], draw(theta, other, num_particles - 1, rng)])
        base = log_density(particles, theta, other)
        if checked[0] < SYMMETRY_CHECKS:
            checked[0] += 1
            _check_symmetric(base, log_density(particles, other, theta))
        old, new = log_joint(particles, theta) - base, log_joint(particles, other) - base
        change += _number("log_joint", log_mean(new)) - log_mean(old)
        accepted = _accepts(change, proposal, theta, other, rng)
        taken = particles[_index(new if accepted else old, rng)]
        return (other if accepted else theta, taken), accepted

    return _run(step, (start, first[0]), num_iterations, progress)


def gibbs(
    conditionals: Sequence[Callable[[Array, Rng], float]],
    start: npt.ArrayLike,
    num_iterations: int,
    rng: Rng,
    progress: Progress = silent,
) -> Chain:
    """Run Algorithm 5, the Gibbs sampler, through all components in turn.

    The target is invariant; the sweep as a whole is not reversible.

    Parameters
    ----------
    conditionals : sequence of d callables ``(theta, rng) -> float``
        Each draws one component given the others in `theta`, shape (d,).
    start : array_like of shape (d,)
    num_iterations, rng, progress
        As for :func:`metropolis_hastings`.

    Raises
    ------
    DpmcError
        If the start has another number of components than there are conditionals.
    """
    first = np.asarray(start, dtype=np.float64)
    if first.shape != (len(conditionals),):
        raise DpmcError(f"start: shape {first.shape}, allowed ({len(conditionals)},)")

    def step(state: Any) -> tuple[Any, bool]:
        theta = state[0].copy()
        for k, conditional in enumerate(conditionals):
            theta[k] = _number(f"conditional {k}", conditional(theta, rng))
        return (theta,), True

    return _run(step, (first,), num_iterations, progress)


def _check_symmetric(one: Array, other: Array) -> None:
    if not np.allclose(one, other, rtol=1e-9, atol=1e-9):
        raise DpmcError("log_density: not symmetric in theta and theta', allowed a symmetric one")


def log_mean(log_weights: Array) -> float:
    """Return the log of the mean of weights given by their logarithms."""
    top = float(np.max(log_weights))
    if not math.isfinite(top):
        return top
    return top + math.log(float(np.mean(np.exp(log_weights - top))))


def _index(log_weights: Array, rng: Rng) -> int:
    """Draw an index in proportion to weights given by their logarithms."""
    sums = np.cumsum(np.exp(log_weights - np.max(log_weights)))
    return int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))


def _accepts(change: float, proposal: Proposal, theta: Any, other: Any, rng: Rng) -> bool:
    if change == -math.inf:
        return False
    change += proposal.log_ratio(theta, other)
    return change >= 0 or math.log(rng.random()) < change


def _first(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise DpmcError(f"{name}: {value}, allowed a finite number")
    return float(value)


def _number(name: str, value: float) -> float:
    if math.isnan(value):
        raise DpmcError(f"{name}: nan, allowed a number or -inf")
    return float(value)


def _run(
    step: Callable[[Any], tuple[Any, bool]], state: Any, num_iterations: int, progress: Progress
) -> Chain:
    """Iterate; the parameter is the first entry of a state."""
    checks.at_least("num_iterations", num_iterations, 1)
    theta = np.empty((num_iterations, *np.shape(state[0])))
    accepted = np.empty(num_iterations, dtype=bool)
    for i in range(num_iterations):
        state, accepted[i] = step(state)
        theta[i] = state[0]
        if (i + 1) % REPORT_EVERY == 0 or i + 1 == num_iterations:
            progress(i + 1, num_iterations, f"accepted {accepted[: i + 1].mean():.3f}")
    return Chain(theta, accepted)
