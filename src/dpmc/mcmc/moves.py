"""Building blocks of Markov kernels: proposals, leapfrog steps, masses and acceptance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.types import Array, DpmcError


def _component_sum(theta: Array, theta_new: Array) -> float:
    return abs(float((theta_new - theta).sum()))


# How long a move is, for a clip bound that is proportional to it. The clipping study in the
# public code of [raisa2021thesis] took the sum of its components.
LENGTHS: Mapping[str, Callable[[Array, Array], float]] = {
    "euclidean": math.dist,
    "component_sum": _component_sum,
}


def accept(log_ratio: float, rng: np.random.Generator) -> bool:
    """Draw whether to accept; NaN, which compares false, is a rejection."""
    return math.log1p(-rng.random()) < log_ratio


def penalty(noise_std: float) -> float:
    """Penalty of a log-ratio with Gaussian noise.

    A test on a log-ratio with N(0, s^2) noise leaves the target invariant when s^2 / 2
    is subtracted [Ceperley and Dewing 1999; raisa2021dphmc, Theorem 3.3].
    """
    return 0.5 * noise_std * noise_std


def random_walk(
    theta: Array, proposal_sd: Array, rng: np.random.Generator, one_component: bool = False
) -> Array:
    """Propose a Gaussian step, shape (d,), in every component or in one drawn uniformly."""
    if not one_component:
        return theta + proposal_sd * rng.standard_normal(theta.size)
    proposal = theta.copy()
    k = int(rng.integers(theta.size))
    proposal[k] += proposal_sd[k] * rng.standard_normal()
    return proposal


def guided_walk(
    theta: Array,
    direction: Array,
    proposal_sd: Array,
    rng: np.random.Generator,
    one_component: bool = False,
) -> tuple[Array, Array]:
    """Propose a step along the current direction of each component that moves.

    Parameters
    ----------
    theta, direction, proposal_sd : ndarray of shape (d,)
        State, entries -1 or +1, standard deviations.
    rng : numpy.random.Generator
        The stream of the chain.
    one_component : bool
        Move one component drawn uniformly instead of all.

    Returns
    -------
    proposal : ndarray of shape (d,)
        The proposed state; the direction stays as it is on acceptance.
    flipped : ndarray of shape (d,)
        The direction after a rejection: that of every moved component turned round,
        which makes the move its own inverse.
    """
    if not one_component:
        step = np.abs(proposal_sd * rng.standard_normal(theta.size))
        return theta + direction * step, -direction
    k = int(rng.integers(theta.size))
    proposal, flipped = theta.copy(), direction.copy()
    proposal[k] += direction[k] * abs(proposal_sd[k] * rng.standard_normal())
    flipped[k] = -direction[k]
    return proposal, flipped


class Walk:
    """Random-walk proposals, plain or guided, of all components or of one at a time.

    Parameters
    ----------
    proposal_sd : ndarray of shape (d,)
        Standard deviation of the proposal.
    one_component : bool
        Move one component, drawn uniformly, at a time; with d = 1 there is but one.
    guided : bool
        Guided walk: keep the direction of a component until a rejection.
    """

    def __init__(
        self, proposal_sd: Array, one_component: bool = False, guided: bool = False
    ) -> None:
        self._sd, self._one_component, self._guided = proposal_sd, one_component, guided

    def direction(self, rng: np.random.Generator) -> Array:
        """First direction of each component, shape (d,): drawn where it matters."""
        if self._guided:
            return rng.choice([-1.0, 1.0], size=self._sd.size)
        return np.ones(self._sd.size)

    def propose(
        self, theta: Array, direction: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Proposal and the directions after a rejection, each of shape (d,)."""
        if self._guided:
            return guided_walk(theta, direction, self._sd, rng, self._one_component)
        return random_walk(theta, self._sd, rng, self._one_component), direction


class Mass:
    """A mass matrix: how momenta are drawn and what they weigh.

    Parameters
    ----------
    mass : float, sequence of float, or nested sequence of float
        A multiple of the identity, a diagonal, or a matrix.
    dim : int
        Dimension d.
    """

    def __init__(self, mass: float | Sequence[Any], dim: int) -> None:
        matrix = checks.real_numbers(mass)
        if matrix.shape not in ((), (dim,), (dim, dim)):
            raise DpmcError(
                f"`mass` must be a number or have shape ({dim},) or ({dim}, {dim}), got "
                f"{matrix.shape}"
            )
        if not np.isfinite(matrix).all():
            raise DpmcError(f"`mass` must be finite numbers, got {mass!r}")
        smallest = np.linalg.eigvalsh(matrix)[0] if matrix.ndim == 2 else matrix.min()
        if not smallest > 0 or (matrix.ndim == 2 and not np.allclose(matrix, matrix.T)):
            raise DpmcError(
                "`mass` must be a positive number, diagonal or symmetric matrix, got a smallest "
                f"eigenvalue of {smallest:.4g}"
            )
        self._dense = matrix.ndim == 2
        self._dim = dim
        self._factor = np.linalg.cholesky(matrix) if self._dense else np.sqrt(matrix)
        self._inverse = np.linalg.inv(matrix) if self._dense else 1.0 / matrix

    def momentum(self, rng: np.random.Generator) -> Array:
        """Draw a momentum from N(0, M), shape (d,)."""
        z = rng.standard_normal(self._dim)
        drawn: Array = self._factor @ z if self._dense else self._factor * z
        return drawn

    def velocity(self, momentum: Array) -> Array:
        """Inverse mass times the momentum, shape (d,)."""
        velocity: Array = self._inverse @ momentum if self._dense else self._inverse * momentum
        return velocity

    def kinetic(self, momentum: Array) -> float:
        """Kinetic energy p' M^-1 p / 2."""
        return 0.5 * float(momentum @ self.velocity(momentum))


class Trajectory(NamedTuple):
    """The end of a leapfrog trajectory."""

    theta: Array
    momentum: Array
    gradient: Array
    finite: bool


def leapfrog(
    theta: Array,
    momentum: Array,
    gradient: Array,
    log_density_gradient: Callable[[Array], Array],
    step_size: float,
    num_steps: int,
    mass: Mass,
) -> Trajectory:
    """Run leapfrog steps and return where they end.

    The gradient at a point serves both half steps that meet there, noisy or not: with
    noise this is the composition that [raisa2021dphmc, Lemma 3.1 and Corollary 3.2]
    prove reversible. Its sign is that of the log-density, so momenta move uphill.

    Parameters
    ----------
    theta, momentum, gradient : ndarray of shape (d,)
        The start, and the gradient there.
    log_density_gradient : callable ``(theta) -> ndarray of shape (d,)``
        Called `num_steps` times, at each new point.
    step_size : float
        Step size eta.
    num_steps : int
        Leapfrog steps L.
    mass : Mass
        Mass matrix.

    Returns
    -------
    Trajectory
        With ``finite`` false if a position left the finite numbers; the trajectory
        then ends there, and its caller counts a rejection.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        momentum = momentum + 0.5 * step_size * gradient
        for remaining in range(num_steps - 1, -1, -1):
            theta = theta + step_size * mass.velocity(momentum)
            # Squares overflow past 1e154, where nothing finite is left to find either.
            if not math.isfinite(theta @ theta):
                return Trajectory(theta, momentum, gradient, False)
            gradient = log_density_gradient(theta)
            momentum = momentum + (step_size if remaining else 0.5 * step_size) * gradient
        return Trajectory(theta, momentum, gradient, math.isfinite(momentum @ momentum))


def langevin(
    theta: Array,
    momentum: Array,
    gradient: Array,
    log_density_gradient: Callable[[Array], Array],
    step_size: float,
    mass: Mass,
) -> Trajectory:
    """Make a Langevin proposal: one leapfrog step, with its position written out.

    The position is theta + (eta^2 / 2) M^-1 g + eta M^-1 p, with p ~ N(0, M): a step
    along the gradient g and Gaussian noise. Arguments and result as for :func:`leapfrog`.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        drift = 0.5 * step_size**2 * mass.velocity(gradient)
        proposal = theta + drift + step_size * mass.velocity(momentum)
        if not math.isfinite(proposal @ proposal):
            return Trajectory(proposal, momentum, gradient, False)
        new_gradient = log_density_gradient(proposal)
        momentum = momentum + 0.5 * step_size * (gradient + new_gradient)
        return Trajectory(proposal, momentum, new_gradient, math.isfinite(momentum @ momentum))


def step_sizes(
    step_size: float, jitter: str, count: int, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Step size of each iteration, shape (count,).

    Parameters
    ----------
    step_size : float
        Upper end of the jittered step sizes, or the constant one.
    jitter : {"halton", "none"}
        ``"halton"`` multiplies by a randomised base-2 Halton sequence in (0, 1), so
        that the mean is half of `step_size` [raisa2021dphmc, section 3].
    count : int
        Number of iterations.
    rng : numpy.random.Generator
        Randomises the sequence.
    """
    if jitter == "none":
        return np.full(count, step_size)
    from scipy.stats import qmc

    points: Array = qmc.Halton(1, scramble=True, rng=rng).random(count)[:, 0]
    return step_size * points
