"""Posterior of the means of a mixture where the component of every row is known.

It is Gaussian and exact, one component at a time: a reference without Monte Carlo error. The
paper draws from it by NUTS [vinaroz2022dpsep, section 6.1]; its public code passes the prior
covariance as the prior precision, so what it draws from has another prior than its methods.
Methods that do not know the labels approximate the posterior without them, which is close to
this one where components hardly overlap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpmc.ep.mixture.model import MixtureModel, checked_rows, moments
from dpmc.types import Array, DpmcError


class MixtureTruth(NamedTuple):
    """A Gaussian for each mean."""

    means: Array  # (J, d): posterior means of the component means
    covariances: Array  # (J, d, d): their posterior covariances


def label_posterior(
    rows: Array, labels: npt.NDArray[np.int64], model: MixtureModel
) -> MixtureTruth:
    """Posterior of the means given rows and their components.

    With n_j rows of sum t_j in component j, its precision is Lambda_j + n_j I / sigma_x^2 and
    its precision times its mean Lambda_j m_j + t_j / sigma_x^2.

    Parameters
    ----------
    rows : ndarray of shape (N, d)
        Rows, all finite.
    labels : ndarray of int of shape (N,)
        From 0 to J - 1.
    model : MixtureModel
        Weights, spread and prior.
    """
    rows = checked_rows(rows, model)
    labels = np.asarray(labels)
    num, dim = model.num_components, model.dim
    if labels.shape != (len(rows),) or not np.issubdtype(labels.dtype, np.integer):
        raise DpmcError(
            f"`labels` must be one integer per row, got {labels.dtype} of shape {labels.shape}"
        )
    if labels.min() < 0 or labels.max() >= num:
        raise DpmcError(f"`labels` must be in 0 to {num - 1}, got {labels.min()} to {labels.max()}")
    counts = np.bincount(labels, minlength=num)
    totals = np.zeros((num, dim))
    np.add.at(totals, labels, rows)
    variance = model.sigma_x**2
    precision = model.prior_precision + (counts / variance)[:, None, None] * np.eye(dim)
    h = model.prior_h() + totals / variance
    return MixtureTruth(*moments(h, precision))


def printed_truth(means: Array, upper_triangles: Array) -> MixtureTruth:
    """Reference from printed numbers.

    `means`, shape (J, d): printed means. `upper_triangles`, shape (J, d (d + 1) / 2): of the
    covariances, row by row.
    """
    means, entries = (np.asarray(v, dtype=np.float64) for v in (means, upper_triangles))
    if means.ndim != 2 or entries.shape != (len(means), means.shape[1] * (means.shape[1] + 1) // 2):
        raise DpmcError(
            "`means` and `upper_triangles` must have shapes (J, d) and (J, d (d + 1) / 2), "
            f"got {means.shape} and {entries.shape}"
        )
    num, dim = means.shape
    covariances = np.zeros((num, dim, dim))
    i, k = np.triu_indices(dim)
    covariances[:, i, k] = covariances[:, k, i] = entries
    smallest = float(np.linalg.eigvalsh(covariances).min())
    if not smallest > 0:
        raise DpmcError(
            "`upper_triangles` must make positive definite covariances, "
            f"got smallest eigenvalue {smallest:g}"
        )
    return MixtureTruth(means, covariances)
