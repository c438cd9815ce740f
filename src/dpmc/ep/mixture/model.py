"""Model of a mixture of Gaussians with unknown means, and its fit.

x_n ~ sum_j w_j N(mu_j, sigma_x^2 I) with independent mu_j ~ N(m_j, Lambda_j^-1)
[vinaroz2022dpsep, section 6.1]. A fit has one Gaussian for each mean: a point
theta = (h, Lambda) of natural parameters, Lambda the precision and h = Lambda times the mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpmc import checks
from dpmc.ep.invalid_rows import as_floats, without_invalid
from dpmc.types import Array, DpmcError, InvalidRows

SQRT2 = math.sqrt(2)


@dataclass(frozen=True)
class MixtureModel:
    """Weights, spread and prior of a mixture.

    Parameters
    ----------
    weights : ndarray of shape (J,)
        w_j, positive, of sum 1.
    sigma_x : float
        Standard deviation of a row around its mean, in the units of the rows.
    prior_means : ndarray of shape (J, d)
        m_j.
    prior_precision : ndarray of shape (J, d, d)
        Lambda_j, symmetric and positive definite.

    Examples
    --------
    >>> model = MixtureModel.isotropic(1.0, [[0.0, 0.0], [3.0, 3.0]], precision=0.1)
    >>> model.num_components, model.num_coordinates
    (2, 10)
    """

    weights: Array
    sigma_x: float
    prior_means: Array
    prior_precision: Array

    def __post_init__(self) -> None:
        for name in ("weights", "prior_means", "prior_precision"):
            values = np.array(getattr(self, name), dtype=np.float64)
            if not np.isfinite(values).all():
                raise DpmcError(f"`{name}` must hold finite numbers only")
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        checks.positive("sigma_x", self.sigma_x)
        if self.prior_means.ndim != 2 or 0 in self.prior_means.shape:
            raise DpmcError(f"`prior_means` must have shape (J, d), got {self.prior_means.shape}")
        if self.weights.shape != (self.num_components,) or not (self.weights > 0).all():
            raise DpmcError(
                f"`weights` must be {self.num_components} numbers > 0, got {self.weights}"
            )
        if abs(float(self.weights.sum()) - 1) > 1e-12:
            raise DpmcError(f"`weights` must sum to 1, got sum {self.weights.sum()}")
        self._check_precision()

    def _check_precision(self) -> None:
        shape, values = (self.num_components, self.dim, self.dim), self.prior_precision
        if values.shape != shape:
            raise DpmcError(f"`prior_precision` must have shape {shape}, got {values.shape}")
        skew = np.abs(values - np.swapaxes(values, 1, 2)).max()
        if not skew <= 1e-12 * np.abs(values).max():
            raise DpmcError("`prior_precision` must hold symmetric matrices")
        smallest = float(np.linalg.eigvalsh(values).min())
        if not smallest > 0:
            raise DpmcError(
                f"`prior_precision` must be positive definite, got smallest eigenvalue {smallest:g}"
            )

    @classmethod
    def isotropic(
        cls, sigma_x: float, prior_means: Array | Sequence[Sequence[float]], precision: float
    ) -> MixtureModel:
        """Model of equal weights and prior covariances I / precision."""
        checks.positive("precision", precision)
        means = np.asarray(prior_means, dtype=np.float64)
        if means.ndim != 2:
            raise DpmcError(f"`prior_means` must have shape (J, d), got {means.shape}")
        num, dim = means.shape
        weights = np.full(num, 1 / num) if num else np.empty(0)
        return cls(weights, sigma_x, means, np.tile(precision * np.eye(dim), (num, 1, 1)))

    @property
    def num_components(self) -> int:
        """Number J of components."""
        return int(self.prior_means.shape[0])

    @property
    def dim(self) -> int:
        """Number d of columns of a row."""
        return int(self.prior_means.shape[1])

    @property
    def num_coordinates(self) -> int:
        """Number of coordinates of theta, J (d + d (d + 1) / 2)."""
        return self.num_components * self.dim * (self.dim + 3) // 2

    def prior_h(self) -> Array:
        """Lambda_j m_j, shape (J, d)."""
        h: Array = np.einsum("jik,jk->ji", self.prior_precision, self.prior_means)
        return h


@dataclass(frozen=True)
class MixtureFit:
    """Gaussian approximation of the posterior of each mean, as a method ended with it.

    Parameters
    ----------
    means : ndarray of shape (J, d)
        Means of the Gaussians, in the units of the rows.
    covariances : ndarray of shape (J, d, d)
        Covariances of the Gaussians.
    h : ndarray of shape (J, d)
        Precision times mean.
    precision : ndarray of shape (J, d, d)
        Inverses of the covariances.
    counters : mapping of str to int
        ``steps`` that were made; of them ``skipped``, that left the state as it was,
        ``invalid``, whose factor did not exist, and ``clipped``, whose factor was too long;
        ``repaired``, matrices that a step left without the eigenvalues that are asked for. Of
        a private run only ``steps`` and ``repaired``, which follow from released states; with
        ``diagnostics="exact"`` all of them, which no guarantee covers.
    releases : tuple of (str, int)
        Each kind of release and how often one row has a part in it, as text that
        :func:`dpmc.privacy.events.parse` reads; none of a method without noise.
    status : str
        ``"complete"``, or why the run stopped; the state is then the last finite one.
    """

    means: Array
    covariances: Array
    h: Array
    precision: Array
    counters: Mapping[str, int]
    releases: tuple[tuple[str, int], ...] = ()
    status: str = "complete"

    @classmethod
    def of(
        cls,
        h: Array,
        precision: Array,
        counters: Mapping[str, int],
        releases: tuple[tuple[str, int], ...],
        status: str,
    ) -> MixtureFit:
        """Fit of a point of natural parameters."""
        return cls(*moments(h, precision), h, precision, counters, releases, status)


def moments(h: Array, precision: Array) -> tuple[Array, Array]:
    """Means, shape (J, d), and covariances, shape (J, d, d), of natural parameters."""
    covariances = np.linalg.inv(precision)
    means: Array = np.asarray(np.linalg.solve(precision, h[..., None])[..., 0], dtype=np.float64)
    return means, (covariances + np.swapaxes(covariances, 1, 2)) / 2


def checked_rows(rows: Array, model: MixtureModel, invalid_rows: InvalidRows = "refuse") -> Array:
    """Rows as a contiguous array, refusing shapes that do not fit the model.

    Parameters
    ----------
    rows : ndarray of shape (N, d)
        Private rows, N >= 1.
    model : MixtureModel
        Model with d columns.
    invalid_rows : {"refuse", "zero"}
        Whether rows with an entry that is not finite are refused, or returned as NaN.
    """
    values = as_floats("rows", rows, invalid_rows)
    if values.ndim != 2 or values.shape[1] != model.dim or len(values) == 0:
        raise DpmcError(f"`rows` must have shape (>= 1, {model.dim}), got {values.shape}")
    return without_invalid(invalid_rows, rows=values)[0]
