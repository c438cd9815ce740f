"""Frozen, validated data classes of private linear regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.types import Array, DpmcError, Guarantee, is_real


@dataclass(frozen=True)
class NodeStatistics:
    """Sums over the private rows of each node: private themselves.

    Parameters
    ----------
    num_rows : ndarray of int of shape (J,)
        Rows of each node, public.
    s : ndarray of shape (J, d, d)
        X'X of each node.
    z : ndarray of shape (J, d)
        X'y.
    u : ndarray of shape (J,)
        y'y.
    num_clipped : int
        Rows that lay beyond the declared bounds and were clipped.
    bounds : (float, float) or None
        What every row was clipped to, public: the largest norm of features, and the largest
        absolute target. Statistics without bounds cannot be released.
    """

    num_rows: npt.NDArray[np.int64]
    s: Array
    z: Array
    u: Array
    num_clipped: int = 0
    bounds: tuple[float, float] | None = None

    @property
    def num_nodes(self) -> int:
        """Number J of nodes."""
        return len(self.num_rows)

    @property
    def dim(self) -> int:
        """Number d of features."""
        return int(self.z.shape[1])


@dataclass(frozen=True)
class NoisyStatistics:
    """Statistics that the nodes release.

    Parameters
    ----------
    num_rows : ndarray of int of shape (J,)
        Rows of each node, public.
    s : ndarray of shape (J, d, d)
        X'X with independent noise on each entry of the upper triangle, mirrored.
    z : ndarray of shape (J, d)
        X'y with noise.
    u : ndarray of shape (J,) or None
        y'y with noise, where it is released.
    s_sd, z_sd, u_sd : float
        Standard deviations of the noise on one entry.
    extra : mapping of str to ndarray
        What else a release holds, such as the noisy smallest eigenvalues of adaSSP.
    guarantee : Guarantee
        The privacy that the release really has.
    noise : {"continuous", "discrete"}
        Whether the noise is floating-point noise, or the release was rounded to a grid so
        fine that estimators take its noise for continuous: see
        :mod:`dpmc.privacy.single_releases`.
    """

    num_rows: npt.NDArray[np.int64]
    s: Array
    z: Array
    u: Array | None
    s_sd: float
    z_sd: float
    u_sd: float
    guarantee: Guarantee
    extra: Mapping[str, Array] = field(default_factory=dict)
    noise: Literal["continuous", "discrete"] = "continuous"

    @property
    def num_nodes(self) -> int:
        """Number J of nodes."""
        return len(self.num_rows)

    @property
    def dim(self) -> int:
        """Number d of features."""
        return int(self.z.shape[1])


@dataclass(frozen=True)
class Prior:
    """The prior of regression coefficients, noise variance and feature covariance.

    theta ~ N(mean, covariance), sigma_y^2 ~ inverse gamma(shape, rate), and, where features
    are modelled, rows x ~ N(0, Sigma_x) with Sigma_x ~ inverse Wishart(scale, dof).

    Parameters
    ----------
    mean : ndarray of shape (d,)
        Prior mean m of theta.
    covariance : ndarray of shape (d, d)
        C.
    shape, rate : float
        a and b.
    scale : ndarray of shape (d, d)
        Lambda.
    dof : float
        kappa, above d - 1.
    """

    mean: Array
    covariance: Array
    shape: float
    rate: float
    scale: Array
    dof: float

    def __post_init__(self) -> None:
        mean = checks.real_numbers(self.mean)
        if mean.ndim != 1 or mean.size == 0 or not np.isfinite(mean).all():
            raise DpmcError(
                "`mean` of a prior must be finite numbers in a row, got shape "
                f"{np.shape(self.mean)}"
            )
        object.__setattr__(self, "mean", mean)
        dim = len(mean)
        for name in ("covariance", "scale"):
            check_positive_definite(f"`{name}` of a prior", getattr(self, name), dim)
        for name in ("shape", "rate"):
            value = getattr(self, name)
            if not (is_real(value) and 0 < value < np.inf):
                raise DpmcError(f"`{name}` of a prior must be a finite number > 0, got {value!r}")
        if not (is_real(self.dof) and self.dof > dim - 1):
            raise DpmcError(
                f"`dof` of a prior must exceed {dim - 1} for {dim} features, got {self.dof!r}"
            )

    @property
    def dim(self) -> int:
        """Number d of features."""
        return len(self.mean)


def check_positive_definite(name: str, matrix: Array, dim: int) -> None:
    """Refuse a matrix that is not symmetric and positive definite of size `dim`."""
    values = checks.real_numbers(matrix)
    if values.shape != (dim, dim):
        raise DpmcError(f"{name} must have shape {(dim, dim)}, got {values.shape}")
    if not np.isfinite(values).all():
        raise DpmcError(f"{name} must hold finite numbers only")
    if not np.allclose(values, values.T, rtol=1e-12, atol=0):
        raise DpmcError(f"{name} must be symmetric")
    smallest = float(np.linalg.eigvalsh(values)[0])
    if not smallest > 0:
        raise DpmcError(f"{name} must be positive definite, got smallest eigenvalue {smallest:g}")


@dataclass(frozen=True)
class Regression:
    """Estimate from a release.

    Parameters
    ----------
    coefficients : ndarray of shape (d,)
        The point estimate: the posterior mean where there is a posterior.
    draws : ndarray of shape (kept, d) or None
        Draws of theta after burn-in, one row per iteration.
    variances : ndarray of shape (kept,) or None
        Draws of sigma_y^2.
    covariance : ndarray of shape (d, d) or None
        Posterior covariance where it is known in closed form.
    diagnostics : mapping of str to float
        Acceptance rates, counts of projections, and the like.
    status : str
        ``"complete"``, or why the run stopped early.
    guarantee : Guarantee
        That of the release: estimators only process it further.
    """

    coefficients: Array
    guarantee: Guarantee
    draws: Array | None = None
    variances: Array | None = None
    covariance: Array | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    status: str = "complete"
