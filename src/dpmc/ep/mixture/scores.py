"""Distances of fitted Gaussians from those of a reference [vinaroz2022dpsep, section 6.1].

Components have no order of their own, so those of a fit are paired with those of the reference
by their means first.
"""

from __future__ import annotations

import numpy as np

from dpmc.types import Array, DpmcError

Gaussians = tuple[Array, Array]
NAMES = ("true means", "true covariances", "fitted means", "fitted covariances")


def greedy_pairs(truth: Array, means: Array) -> list[int]:
    """Component paired with each true one as the public code pairs them.

    The true ones choose in turn, each the nearest of what is left: the last ones take what
    nobody wanted.

    `truth`, `means`, shape (J, d): means of the reference, and those to pair with them.

    Rows of `means` in the order of `truth`.
    """
    left, pairs = list(range(len(means))), []
    for true_mean in truth:
        distances = np.sum((means[left] - true_mean) ** 2, axis=1)
        pairs.append(left.pop(int(np.argmin(distances))))
    return pairs


def best_pairs(truth: Array, means: Array) -> list[int]:
    """Pairs of the smallest sum of squared distances [Kuhn 1955].

    Parameters and result are those of :func:`greedy_pairs`.
    """
    from scipy.optimize import linear_sum_assignment

    squares = np.sum((truth[:, None, :] - means) ** 2, axis=2)
    return [int(k) for k in linear_sum_assignment(squares)[1]]


def published_scores(truth: Gaussians, fitted: Gaussians) -> dict[str, float]:
    """Scores that table 1 of the paper prints, under the names that they deserve.

    `truth` and `fitted`: means and covariances, shapes (J, d) and (J, d, d).

    ``mean_square`` and ``covariance_square``, the squared Frobenius norms of the errors averaged
    over components; ``f``, half their sum, which the table calls F-norm; ``kl_proxy``, the absolute
    value of ``kl_signed``, the average over components of half of e'P e + ln |S| - ln |S_q| with
    the error e of the mean, the true covariance S and its inverse P. It stands for KL(q || p), but
    lacks tr(P S_q) - d and can be negative.
    """
    means, covariances, other_means, others = _checked(truth, fitted)
    pairs = greedy_pairs(means, other_means)
    other_means, others = other_means[pairs], others[pairs]
    errors = means - other_means
    mean_square = float(np.mean(np.sum(errors**2, axis=1)))
    covariance_square = float(np.mean(np.sum((covariances - others) ** 2, axis=(1, 2))))
    signed = float(np.mean(_squares(errors, covariances) + _log_ratio(covariances, others)) / 2)
    return {
        "mean_square": mean_square,
        "covariance_square": covariance_square,
        "f": (mean_square + covariance_square) / 2,
        "kl_signed": signed,
        "kl_proxy": abs(signed),
    }


def scores(truth: Gaussians, fitted: Gaussians) -> dict[str, float]:
    """Errors and divergences, averaged over components in their best pairing.

    `truth` and `fitted`: means and covariances, shapes (J, d) and (J, d, d), of p and of
    q.

    ``mean_error`` and ``covariance_error``, Euclidean and Frobenius norms in the units of the rows
    and their squares; ``kl_from_truth``, KL(p || q), and ``kl_to_truth``, KL(q || p); ``sd``, root
    of the average variance of a coordinate of the fit.
    """
    means, covariances, other_means, others = _checked(truth, fitted)
    pairs = best_pairs(means, other_means)
    other_means, others = other_means[pairs], others[pairs]
    errors = means - other_means
    return {
        "mean_error": float(np.mean(np.linalg.norm(errors, axis=1))),
        "covariance_error": float(np.mean(np.linalg.norm(covariances - others, axis=(1, 2)))),
        "kl_to_truth": float(np.mean(divergence(other_means, others, means, covariances))),
        "kl_from_truth": float(np.mean(divergence(means, covariances, other_means, others))),
        "sd": float(np.sqrt(np.mean(np.diagonal(others, axis1=1, axis2=2)))),
    }


def divergence(means: Array, covariances: Array, other_means: Array, others: Array) -> Array:
    """KL(N(means_j, covariances_j) || N(other_means_j, others_j)), shape (J,)."""
    ratio = np.trace(np.linalg.solve(others, covariances), axis1=1, axis2=2)
    squares = _squares(means - other_means, others)
    values: Array = (ratio - means.shape[1] + squares + _log_ratio(others, covariances)) / 2
    return values


def _squares(errors: Array, covariances: Array) -> Array:
    """E'S^-1 e of each component."""
    scaled = np.linalg.solve(covariances, errors[..., None])[..., 0]
    values: Array = np.einsum("jd,jd->j", errors, scaled)
    return values


def _log_ratio(first: Array, second: Array) -> Array:
    """Ln |first| - ln |second| of each component."""
    values: Array = np.linalg.slogdet(first)[1] - np.linalg.slogdet(second)[1]
    return values


def _checked(truth: Gaussians, fitted: Gaussians) -> tuple[Array, Array, Array, Array]:
    """Means and covariances of both, refusing what has no scores."""
    parts = [np.asarray(part, dtype=np.float64) for part in (*truth, *fitted)]
    shape = parts[0].shape
    if len(shape) != 2 or 0 in shape:
        raise DpmcError(f"`means` must have shape (J, d), got {shape}")
    for name, part, expected in zip(NAMES, parts, (shape, (*shape, shape[1])) * 2, strict=True):
        if part.shape != expected:
            raise DpmcError(f"{name} must have shape {expected}, got {part.shape}")
        if not np.isfinite(part).all():
            raise DpmcError(f"{name} must hold finite numbers only")
        if part.ndim == 3 and not np.linalg.eigvalsh(part).min() > 0:
            raise DpmcError(f"{name} must be positive definite")
    return parts[0], parts[1], parts[2], parts[3]
