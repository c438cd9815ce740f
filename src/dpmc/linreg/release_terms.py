"""Terms, noise and guarantee of every release of node statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpmc import checks
from dpmc.linreg.sensitivity import check_scale
from dpmc.linreg.sufficient_statistics import BLOCK
from dpmc.linreg.types import NodeStatistics, NoisyStatistics
from dpmc.privacy import gaussian_noise, single_releases
from dpmc.privacy.gaussian_noise import CALIBRATIONS, Calibration
from dpmc.privacy.ledger import Ledger, Noise
from dpmc.types import NEIGHBOURS, Array, DpmcError, Guarantee, Neighbours, check_epsilon_delta

Source = Literal["public", "data"]

DATA_BOUNDS = "bounds taken from the data"
EXACT_COUNTS = "exact numbers of rows"
_SLACK = 1 + 1e-12  # rounding of bounds that are computed from others


@dataclass(frozen=True)
class Terms:
    """On what terms a release is made.

    Parameters
    ----------
    epsilon, delta : float
        What the noise is calibrated to.
    neighbours : {"replace", "add_remove"}
        Whose sensitivity the noise is relative to.
    calibration : {"analytic", "published"}
        ``"published"`` reproduces the public code of the thesis; its noise does not keep
        (epsilon, delta).
    bounds_source : {"public", "data"}
        Whether the bounds on the rows are public constants.
    noise : {"continuous", "discrete"}
        Kind of the noise (:mod:`dpmc.privacy.single_releases`). The guarantee of continuous
        noise is that of real numbers, which its floating-point numbers do not keep.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours = "replace"
    calibration: Calibration = "analytic"
    bounds_source: Source = "public"
    noise: Noise = "continuous"

    def __post_init__(self) -> None:
        check_epsilon_delta(self.epsilon, self.delta)
        checks.one_of("neighbours", self.neighbours, tuple(NEIGHBOURS))
        checks.one_of("calibration", self.calibration, CALIBRATIONS)
        checks.one_of("bounds_source", self.bounds_source, ("public", "data"))
        single_releases.check_noise(self.noise)

    def multiplier(self, parts: int = 1) -> float:
        """Noise multiplier of one of `parts` equal shares of epsilon and delta."""
        return gaussian_noise.multiplier(self.calibration, self.epsilon / parts, self.delta / parts)


def upper(s: Array) -> Array:
    """Upper triangles of J matrices row by row, shape (J, d (d + 1) / 2)."""
    rows, columns = np.triu_indices(s.shape[-1])
    return np.asarray(s[:, rows, columns])


def mirrored(entries: Array, dim: int) -> Array:
    """Symmetric matrices of upper triangles, shape (J, d, d)."""
    rows, columns = np.triu_indices(dim)
    s = np.empty((len(entries), dim, dim))
    s[:, rows, columns] = entries
    s[:, columns, rows] = entries
    return s


def draw(
    vectors: Array,
    sensitivity: float,
    noise_multiplier: float,
    rng: np.random.Generator | None,
    ledgers: Sequence[Ledger] | None = None,
    noise: Noise = "continuous",
    rounding: float = 0.0,
    neighbours: Neighbours = "replace",
) -> Array:
    """Release one vector of each node through its ledger, shape (J, m).

    Parameters
    ----------
    vectors : ndarray of shape (J, m)
        Exact vector of each node.
    sensitivity, noise_multiplier, rng, noise, rounding, neighbours
        Terms of each release, as arguments of `dpmc.privacy.single_releases.gaussian`.
    ledgers : sequence of Ledger, optional
        Ledger of each node, which draws and records its noise; new ones by default.
    """
    if ledgers is None:
        ledgers = [Ledger() for _ in vectors]
    if len(ledgers) != len(vectors):
        raise DpmcError(
            f"`ledgers` must be one for each of {len(vectors)} nodes, got {len(ledgers)}"
        )
    if noise == "continuous":
        rng = single_releases.generator(rng)
    return np.stack(
        [
            single_releases.gaussian(
                v, sensitivity, noise_multiplier, rng, one, noise, rounding, neighbours
            )
            for one, v in zip(ledgers, vectors, strict=True)
        ]
    )


def rounding(statistics: NodeStatistics) -> float:
    """Excess of what a row moves floating-point sums by, over their sensitivity.

    Products of at most `BLOCK` rows are added at once and then block by block, and the
    smallest eigenvalue comes from a backward stable routine: all errs by less than k n u
    times the sensitivity, where k is the length of the longest chain of operations,
    u = 2**-53 and n is the number of rows of the largest node; twice, for two data sets.
    """
    num_rows = int(statistics.num_rows.max())
    longest = BLOCK + num_rows / BLOCK + 100 * statistics.dim
    return longest * num_rows * 2.0**-52


def assemble(
    statistics: NodeStatistics,
    s: Array,
    z: Array,
    u: Array | None,
    sds: tuple[float, float, float],
    shifts: Mapping[Neighbours, float],
    terms: Terms,
    extra: Mapping[str, Array] | None = None,
) -> NoisyStatistics:
    """Build the `NoisyStatistics` of released vectors, and its guarantee.

    Parameters
    ----------
    statistics : NodeStatistics
        For the public numbers of rows; nothing else of it is passed on.
    s : ndarray of shape (J, d (d + 1) / 2)
        Noisy upper triangles.
    z : ndarray of shape (J, d)
        Noisy z_j of each node.
    u : ndarray of shape (J,) or None
        Noisy y'y of each node, None where it is not released.
    sds : (float, float, float)
        Noise on an entry of S, of z, and on u.
    shifts : mapping of relation to float
        How far one row can move all that a node releases, in standard deviations of noise.
    terms : Terms
        Budget and terms of the release.
    extra : mapping of str to ndarray, optional
        More released values, by name.
    """
    shift, delta = shifts[terms.neighbours], terms.delta
    proved = guarantee(shift, delta, terms.neighbours, terms.bounds_source, terms.epsilon)
    shift_values = {f"shift_{relation}": np.array(value) for relation, value in shifts.items()}
    s_sd, z_sd, u_sd = sds
    return NoisyStatistics(
        num_rows=statistics.num_rows,
        s=mirrored(s, statistics.dim),
        z=z,
        u=u,
        s_sd=s_sd,
        z_sd=z_sd,
        u_sd=u_sd,
        guarantee=proved,
        noise=terms.noise,
        extra={**shift_values, **(extra or {})},
    )


def check_within(statistics: NodeStatistics, x_bound: float, y_bound: float) -> None:
    """Refuse statistics of rows that were not clipped to the bounds that a release assumes.

    Only what is public is compared: the bounds that the rows were clipped to.

    `statistics`: sums, with the bounds that their rows were clipped to. `x_bound`, `y_bound`: what
    the sensitivity is computed from.
    """
    for name, bound in (("x_bound", x_bound), ("y_bound", y_bound)):
        checks.positive(name, bound)
        check_scale(name, bound)
    if statistics.bounds is None:
        raise DpmcError(
            "`statistics` must name the bounds that every row was clipped to, as those of "
            "node_statistics do, got none"
        )
    used = zip(statistics.bounds, (x_bound, y_bound), strict=True)
    if any(clipped > assumed * _SLACK for clipped, assumed in used):
        raise DpmcError(
            f"`x_bound`, `y_bound` must be at least {statistics.bounds[0]:g}, "
            f"{statistics.bounds[1]:g}, which the rows were clipped to, "
            f"got {x_bound:g}, {y_bound:g}"
        )


def guarantee(
    shift: float,
    delta: float,
    neighbours: Neighbours,
    bounds_source: Source,
    nominal: float = math.inf,
) -> Guarantee:
    """Guarantee of a release that one row moves by `shift` standard deviations.

    Parameters
    ----------
    delta : float
        Delta of the guarantee, in (0, 1).
    bounds_source : {"public", "data"}
        Whether the bounds were known beforehand or taken from the rows.
    nominal : float, optional
        The epsilon that noise was calibrated to, returned where it holds but for rounding.
    """
    multiplier = 1 / shift
    epsilon = gaussian_noise.true_epsilon(multiplier, delta)
    if epsilon > nominal and gaussian_noise.true_delta(multiplier, nominal) <= delta:
        epsilon = nominal  # the search for epsilon errs by 1e-7 upwards
    outside = [DATA_BOUNDS] if bounds_source == "data" else []
    outside += [EXACT_COUNTS] if neighbours == "add_remove" else []
    return Guarantee(epsilon, delta, neighbours, "gaussian", tuple(outside))
