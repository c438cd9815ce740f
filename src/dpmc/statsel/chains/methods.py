"""Chains for the posterior given a release, and its quadrature; a new one is an entry of ``TABLE``.

``chain(run)`` gives a function that fills an array with the next draws and returns the moves made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.numerics.compiled import assemble
from dpmc.statsel import moments
from dpmc.statsel.chains import mean, order, records
from dpmc.statsel.chains.common import RIGHT, Faults
from dpmc.statsel.chains.driver import Advance, ChainParams, ChainRun, ParticleParams, log_prior
from dpmc.statsel.order_draws import Particles
from dpmc.statsel.posterior.likelihoods import DENSITIES, NoisyMean
from dpmc.types import NoParams

Chain = Callable[[ChainRun], Advance]
RIGHT_AS_PRINTED = {"as_published": RIGHT, "corrected": RIGHT}


@dataclass(frozen=True)
class ChainMethod:
    """A method, with its parameters.

    Parameters
    ----------
    name : str
        Name in configurations and tables.
    Params : type
        Class of the parameters.
    shapes : tuple of str
        Targets that it is for: :attr:`dpmc.statsel.targets.PosteriorTarget.shape`.
    chain : callable, optional
        None for the posterior by quadrature.
    variants : mapping of str to Faults
        Deviations that a variant is known for.
    """

    name: str
    Params: type[Any]
    shapes: tuple[str, ...]
    chain: Chain | None
    variants: Mapping[str, Faults]


@dataclass(frozen=True)
class PseudoMarginalParams(ParticleParams):
    """Settings of a chain whose particles are N >= 1 draws of each estimate."""

    _fewest_particles = 1


@dataclass(frozen=True)
class ExactParams(ParticleParams):
    """Settings of a chain over data sets.

    Parameters
    ----------
    refresh : bool
        Take a data set anew on rejection, as Algorithms 11 and 13 do; Algorithm 12 keeps the
        current one. Both are right.
    """

    refresh: bool = False


@dataclass(frozen=True)
class SequentialParams(ParticleParams):
    """Settings of a chain over records.

    Parameters
    ----------
    num_particles : int
        N >= 2 for each record, the current one among them.
    """

    num_particles: int = 50


def metropolis(run: ChainRun) -> Advance:
    """Algorithm 9: Metropolis-Hastings with the density of a released mean.

    With Laplace noise the density has a closed form too, so that no latent variable is needed: what
    Algorithms 10 and 11 estimate.
    """
    density = DENSITIES[run.target.mechanism.noise]
    return _of_mean(mean.make_metropolis, density, run, run.walk)


def pseudo_marginal(run: ChainRun) -> Advance:
    """Algorithm 10: the density of a released mean, estimated from N draws at theta'."""
    density, logs = run.target.mechanism.log_density, np.empty(run.params.num_particles)
    return _of_mean(mean.make_pseudo_marginal, density, run, run.walk, run.faults, logs)


def averaged_ratio(run: ChainRun) -> Advance:
    """Algorithm 11: averaged acceptance ratios over a released mean.

    The statistic is a latent variable; the particles of an iteration are drawn at the middle of
    theta and theta', and one of them is taken whether the chain moves or not.
    """
    density, scratch = run.target.mechanism.log_density, np.empty((3, run.params.num_particles))
    return _of_mean(mean.make_averaged_ratio, density, run, run.walk, run.faults, scratch)


def _of_mean(make: Any, density: Any, run: ChainRun, *arguments: Any) -> Advance:
    """Chain of a released mean, whose second state variable is not known at its start."""
    target, rng = run.target, run.rng
    closed_forms = moments.of(target.population, target.statistic)
    prior = log_prior(target.prior)
    steps = assemble(make, density, closed_forms.mean, closed_forms.variance, prior)
    released = NoisyMean(target.y, target.scale, float(target.num_rows))
    state = np.array([run.start, math.nan])
    return lambda draws: int(steps(released, *arguments, state, rng, draws))


def exact(run: ChainRun) -> Advance:
    """Algorithm 12: averaged acceptance ratios over whole data sets.

    For a released order statistic, with noise by smooth sensitivity or of constant scale. Of the
    inputs that are printed, the size m < n of a subset is used nowhere. Data sets are drawn as far
    as released number and smooth sensitivity depend on them, see :mod:`dpmc.statsel.order_draws`.
    """
    target, rng, num = run.target, run.rng, run.params.num_particles
    assert target.order is not None
    functions = (target.population.generate, target.statistic.transform, log_prior(target.prior))
    steps = assemble(order.make_averaged_ratio, *functions)
    particles = Particles.of(num, target.num_rows)
    scratch, state, refresh = np.empty((2, num)), np.array([run.start]), run.params.refresh
    arguments = target.y, target.order, run.walk, run.faults, refresh, particles, scratch, state
    return lambda draws: int(steps(*arguments, rng, draws))


def sequential(run: ChainRun) -> Advance:
    """Algorithm 13: averaged acceptance ratios, record by record.

    For records released one by one: each has N base variables of its own, and the ratio is the
    product over the records.
    """
    target, population, density = (
        run.target,
        run.target.population,
        run.target.mechanism.log_density,
    )
    functions = (population.generate, target.statistic.transform, density, log_prior(target.prior))
    steps = assemble(records.make_averaged_ratio, *functions)
    base = records.BASES.index(population.base)
    released = records.ReleasedRecords(target.y, target.scale, base, *population.support)
    latents = records.BaseVariables.of(target.num_rows, run.params.num_particles)
    state, runs = np.array([run.start]), [0]

    def advance(draws: Any) -> int:
        begin = runs[0] == 0
        runs[0] += 1
        return int(steps(released, run.walk, run.faults, begin, latents, state, run.rng, draws))

    return advance


TABLE = {
    method.name: method
    for method in (
        ChainMethod("mh", ChainParams, ("mean",), metropolis, RIGHT_AS_PRINTED),
        # As printed, the weights of the estimate at theta' are those of theta: that chain moves
        # about once in a thousand iterations and has another distribution.
        ChainMethod(
            "pmmh",
            PseudoMarginalParams,
            ("mean",),
            pseudo_marginal,
            {"as_published": Faults(weights_at_old_theta=True), "corrected": RIGHT},
        ),
        # Algorithm 11 is right as it is printed. The general equation 2.7 is not: with its inverted
        # ratio the chain drifts to the end of the prior.
        ChainMethod(
            "mhaar",
            ParticleParams,
            ("mean",),
            averaged_ratio,
            {**RIGHT_AS_PRINTED, "equation_2_7": Faults(inverted_ratio=True)},
        ),
        ChainMethod("exact", ExactParams, ("order",), exact, RIGHT_AS_PRINTED),
        ChainMethod("sequential", SequentialParams, ("records",), sequential, RIGHT_AS_PRINTED),
        # No chain, but what every chain has to agree with.
        ChainMethod("quadrature", NoParams, ("mean", "order", "records"), None, RIGHT_AS_PRINTED),
    )
}
