"""Releases of the nodes of a private distributed regression, with their guarantee.

Each node releases its statistics once, with Gaussian noise [alparslan2023thesis, section
5.2.1]. A row stays at its node, and the nodes share none: whichever row changes, one
release of one node changes, so that every node spends all of epsilon and delta. The
guarantee of all releases together is that of the worst node; all have the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from dpmc import checks
from dpmc.linreg import release_terms
from dpmc.linreg.release_terms import DATA_BOUNDS, Source, Terms
from dpmc.linreg.sensitivity import (
    s_sensitivity,
    scaled_sensitivity,
    statistics_sensitivity,
    z_sensitivity,
)
from dpmc.linreg.types import NodeStatistics, NoisyStatistics
from dpmc.privacy.gaussian_noise import Calibration
from dpmc.privacy.ledger import Ledger, Noise, noise_of
from dpmc.types import NEIGHBOURS, DpmcError, Guarantee, Neighbours

Split = Literal["joint", "separate", "best"]
SPLITS: tuple[Split, ...] = get_args(Split)


def release(
    statistics: NodeStatistics,
    x_bound: float,
    y_bound: float,
    epsilon: float,
    delta: float,
    rng: np.random.Generator | None = None,
    *,
    neighbours: Neighbours = "replace",
    calibration: Calibration = "analytic",
    split: Split = "joint",
    with_u: bool = False,
    bounds_source: Source = "public",
    ledgers: Sequence[Ledger] | None = None,
    noise: Noise | None = None,
) -> NoisyStatistics:
    """Release S and z of every node, and u where it is asked for.

    Parameters
    ----------
    statistics : NodeStatistics
        Of rows clipped to ``||x|| <= x_bound`` and ``|y| <= y_bound``, as
        `dpmc.linreg.sufficient_statistics.node_statistics` returns them.
    x_bound, y_bound : float
        > 0.
    epsilon, delta, neighbours, calibration, bounds_source, noise
        Budget, neighbouring relation, calibration of the noise, source of the bounds and kind of
        noise, as fields of `dpmc.linreg.release_terms.Terms`. Noise is discrete by default, and
        continuous with `rng`, as published.
    rng : numpy.random.Generator, optional
        Only to repeat a release: whoever knows its seed can take the noise off. By default
        noise comes from the operating system.
    split : {"joint", "separate", "best"}
        ``"joint"`` releases one vector. ``"separate"`` gives S and z half of epsilon and
        delta each, and ``"best"``, as the public code of the thesis, does so where the sum
        of the variances of an entry of S and one of z is smaller. With ``"analytic"``
        noise it never is: two releases at half the budget are as private as one with their
        multiplier over sqrt(2), which therefore is not below the analytic one.
    with_u : bool
        Release u too. All is then released jointly, also with split ``"best"``.
    ledgers : sequence of Ledger, optional
        One for each node, to keep what was released. They are not to be added up.

    Returns
    -------
    NoisyStatistics
        Noise is drawn for the upper triangle of S and mirrored. `guarantees` gives its
        guarantee under either relation.

    Examples
    --------
    >>> from dpmc.linreg.sufficient_statistics import node_statistics
    >>> x, y = np.ones((6, 2)), np.ones(6)
    >>> sums = node_statistics((x, y), num_nodes=2, num_rows=6, bounds=(2.0, 1.0))
    >>> noisy = release(sums, 2.0, 1.0, epsilon=1.0, delta=1e-6)
    >>> noisy.z.shape, noisy.guarantee.epsilon <= 1
    ((2, 2), True)
    """
    kind = noise_of(noise, published=rng is not None)
    terms = Terms(epsilon, delta, neighbours, calibration, bounds_source, kind)
    checks.one_of("split", split, ("joint", "best") if with_u else SPLITS)
    release_terms.check_within(statistics, x_bound, y_bound)
    joint = statistics_sensitivity(x_bound, y_bound, statistics.dim, neighbours, with_u)
    parts = (
        s_sensitivity(x_bound, statistics.dim, neighbours),
        z_sensitivity(x_bound, y_bound, neighbours),
    )
    best = split == "best" and not with_u
    if split == "separate" or (best and _separate_wins(joint, parts, terms)):
        return _separately(statistics, x_bound, y_bound, parts, rng, terms, ledgers)
    blocks = [release_terms.upper(statistics.s), statistics.z]
    blocks += [statistics.u[:, None]] if with_u else []
    how = rng, ledgers, terms.noise, release_terms.rounding(statistics), neighbours
    multiplier = terms.multiplier()
    vectors = release_terms.draw(np.concatenate(blocks, axis=1), joint, multiplier, *how)
    ends = np.cumsum([block.shape[1] for block in blocks])
    s, z, *u = np.split(vectors, ends[:-1], axis=1)
    sd = joint * multiplier
    shifts: dict[Neighbours, float] = {
        relation: statistics_sensitivity(x_bound, y_bound, statistics.dim, relation, with_u) / sd
        for relation in NEIGHBOURS
    }
    sds = sd, sd, sd if with_u else math.nan
    return release_terms.assemble(statistics, s, z, u[0][:, 0] if u else None, sds, shifts, terms)


def guarantees(noisy: NoisyStatistics) -> dict[Neighbours, Guarantee]:
    """Guarantee of a release under each relation, the declared one first.

    Parameters
    ----------
    noisy : NoisyStatistics
        Of `release`, or of another function that goes through `assemble`.
    """
    declared = noisy.guarantee
    guarantees: dict[Neighbours, Guarantee] = {declared.neighbours: declared}
    for relation in NEIGHBOURS:
        if f"shift_{relation}" not in noisy.extra:
            raise DpmcError(f"`extra` must have 'shift_{relation}', as releases of dpmc.linreg do")
        source: Source = "data" if DATA_BOUNDS in declared.outside else "public"
        shift = float(noisy.extra[f"shift_{relation}"])
        if relation != declared.neighbours:
            guarantees[relation] = release_terms.guarantee(shift, declared.delta, relation, source)
    return guarantees


def _separately(
    statistics: NodeStatistics,
    x_bound: float,
    y_bound: float,
    parts: tuple[float, float],
    rng: np.random.Generator | None,
    terms: Terms,
    ledgers: Sequence[Ledger] | None,
) -> NoisyStatistics:
    half = terms.multiplier(2)
    s_sd, z_sd = half * parts[0], half * parts[1]
    how = rng, ledgers, terms.noise, release_terms.rounding(statistics), terms.neighbours
    s = release_terms.draw(release_terms.upper(statistics.s), parts[0], half, *how)
    z = release_terms.draw(statistics.z, parts[1], half, *how)
    shifts: dict[Neighbours, float] = {
        relation: scaled_sensitivity(x_bound, y_bound, statistics.dim, relation, s_sd, z_sd)
        for relation in NEIGHBOURS
    }
    return release_terms.assemble(statistics, s, z, None, (s_sd, z_sd, math.nan), shifts, terms)


def _separate_wins(joint: float, parts: tuple[float, float], terms: Terms) -> bool:
    apart = terms.multiplier(2) ** 2 * (parts[0] ** 2 + parts[1] ** 2)
    return apart < 2 * (terms.multiplier() * joint) ** 2
