"""Adaptive sufficient statistics perturbation [Wang 2018], over several nodes.

Each node releases S, z and the smallest eigenvalue of S, each with a third of epsilon and
delta, and so makes its ridge large where S is weak. The coefficients are those of ridge
regression on the sums [alparslan2023thesis, equation 7.2].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpmc import checks
from dpmc.linreg import release_terms
from dpmc.linreg.release_terms import Source, Terms
from dpmc.linreg.sensitivity import (
    s_sensitivity,
    scaled_sensitivity,
    smallest_eigenvalue_sensitivity,
    z_sensitivity,
)
from dpmc.linreg.types import NodeStatistics, NoisyStatistics, Prior, Regression
from dpmc.privacy.gaussian_noise import Calibration, analytic_multiplier
from dpmc.privacy.ledger import Ledger, Noise, noise_of
from dpmc.types import NEIGHBOURS, Array, DpmcError, Neighbours, is_real

STATISTICS: Literal["sz", "szu", "own", "exact"] = "own"


@dataclass(frozen=True)
class Params:
    """Settings of adaSSP.

    Parameters
    ----------
    lambda_rule : {"root", "sum"}
        How the ridges of the nodes are put together: the root of the sum of their squares,
        as the noise of sums grows; or their sum, as in the thesis, sqrt(J) times as much.
    lambda_noise : {"analytic", "published"}
        Noise multiplier of the smallest eigenvalue: that of a third of the budget, or
        sqrt(log(6 / delta)) / (epsilon / 3) as published, too small for delta <= 1e-5.
    rho : float
        In (0, 1): the ridge is to cover the noise with probability 1 - rho.
    """

    lambda_rule: str = "root"
    lambda_noise: str = "analytic"
    rho: float = 0.05

    def __post_init__(self) -> None:
        checks.one_of("lambda_rule", self.lambda_rule, ("root", "sum"))
        checks.one_of("lambda_noise", self.lambda_noise, ("analytic", "published"))
        if not (is_real(self.rho) and 0 < self.rho < 1):
            raise DpmcError(f"`rho` must be in (0, 1), got {self.rho!r}")


def release(
    statistics: NodeStatistics,
    x_bound: float,
    y_bound: float,
    epsilon: float,
    delta: float,
    rng: np.random.Generator | None = None,
    *,
    params: Params | None = None,
    neighbours: Neighbours = "replace",
    calibration: Calibration = "analytic",
    bounds_source: Source = "public",
    ledgers: Sequence[Ledger] | None = None,
    noise: Noise | None = None,
) -> NoisyStatistics:
    """Release S, z and the smallest eigenvalue of S of every node, one after another.

    Parameters
    ----------
    statistics, x_bound, y_bound, epsilon, delta, rng
        Sums of rows clipped to the bounds, the budget and an optional generator, as arguments
        of `dpmc.linreg.release.release`.
    params : Params, optional
        Its `lambda_noise` says how the eigenvalue is released.
    neighbours, calibration, bounds_source, ledgers, noise
        Terms of the release, as arguments of `dpmc.linreg.release.release`.

    Returns
    -------
    NoisyStatistics
        `extra` holds ``smallest_eigenvalue`` (J,), ``smallest_eigenvalue_sd`` of its noise,
        and, as functions of epsilon, delta and `x_bound`, the ``ridge_scale`` that the
        ridge is relative to and the ``margin`` that the eigenvalue is put down by. The
        guarantee is that of all three together, which is better than the sum of the thirds.
    """
    params = params or Params()
    kind = noise_of(noise, published=rng is not None)
    terms = Terms(epsilon, delta, neighbours, calibration, bounds_source, kind)
    release_terms.check_within(statistics, x_bound, y_bound)
    if ledgers is None:
        ledgers = [Ledger() for _ in range(statistics.num_nodes)]
    dim, third = statistics.dim, terms.multiplier(3)
    parts = s_sensitivity(x_bound, dim, neighbours), z_sensitivity(x_bound, y_bound, neighbours)
    s_sd, z_sd = third * parts[0], third * parts[1]
    multiplier = _eigenvalue_multiplier(params, epsilon, delta)
    change = smallest_eigenvalue_sensitivity(x_bound)
    how = rng, ledgers, kind, release_terms.rounding(statistics), neighbours
    s = release_terms.draw(release_terms.upper(statistics.s), parts[0], third, *how)
    z = release_terms.draw(statistics.z, parts[1], third, *how)
    exact: Array = np.linalg.eigvalsh(statistics.s)[:, :1].astype(np.float64)
    smallest = release_terms.draw(exact, change, multiplier, *how)
    scale = _formula(epsilon, delta) * x_bound**2
    extra = {
        "smallest_eigenvalue": smallest[:, 0],
        "smallest_eigenvalue_sd": np.array(change * multiplier),
        "ridge_scale": np.array(scale),
        "margin": np.array(scale * math.sqrt(math.log(6 / delta))),
    }
    # What one row moves, squared and in variances of the noise, adds up over the parts.
    shifts: dict[Neighbours, float] = {
        relation: math.hypot(
            scaled_sensitivity(x_bound, y_bound, dim, relation, s_sd, z_sd), 1 / multiplier
        )
        for relation in NEIGHBOURS
    }
    return release_terms.assemble(
        statistics, s, z, None, (s_sd, z_sd, math.nan), shifts, terms, extra
    )


def _eigenvalue_multiplier(params: Params, epsilon: float, delta: float) -> float:
    if params.lambda_noise == "published":
        return _formula(epsilon, delta)
    return analytic_multiplier(epsilon / 3, delta / 3)


def _formula(epsilon: float, delta: float) -> float:
    """Multiplier that [Wang 2018] gives each third."""
    return math.sqrt(math.log(6 / delta)) / (epsilon / 3)


def ridges(noisy: NoisyStatistics, params: Params) -> Array:
    """Ridge of each node, shape (J,).

    By the formula of [Wang 2018]: noise on S of its scale, `sd`, has a norm below
    ``sd sqrt(d log(2 d**2 / rho))`` with probability 1 - rho, and the ridge is what the
    smallest eigenvalue, put down by a margin, lacks of it. The noise for replaced rows is up
    to sqrt(2) times as large, and outgrows the ridge more often. That costs no privacy, and
    on the data of the thesis a larger ridge predicts worse.
    """
    for name in ("smallest_eigenvalue", "ridge_scale", "margin"):
        if name not in noisy.extra:
            raise DpmcError(f"`extra` must have {name!r}, as releases of adassp.release do")
    smallest = np.maximum(0.0, noisy.extra["smallest_eigenvalue"] - noisy.extra["margin"])
    dim = noisy.dim
    needed = noisy.extra["ridge_scale"] * math.sqrt(dim * math.log(2 * dim**2 / params.rho))
    return np.asarray(np.maximum(0.0, needed - smallest))


def fit(
    noisy: NoisyStatistics, prior: Prior, params: Params, rng: np.random.Generator
) -> Regression:
    """Coefficients of ridge regression on the sums over nodes.

    Returns
    -------
    Regression
        Diagnostics: ``ridge``, and ``smallest_eigenvalue`` of what is solved, which is
        positive unless noise outgrew the ridge.
    """
    each = ridges(noisy, params)
    ridge = float(each.sum() if params.lambda_rule == "sum" else np.linalg.norm(each))
    matrix = noisy.s.sum(axis=0) + ridge * np.eye(noisy.dim)
    theta, *_ = np.linalg.lstsq(matrix, noisy.z.sum(axis=0), rcond=None)
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    return Regression(
        coefficients=theta,
        diagnostics={"ridge": ridge, "smallest_eigenvalue": smallest},
        guarantee=noisy.guarantee,
    )
