"""Checks of a prior at start points, which are public."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmc.types import Array, DpmcError, Model


def check_prior(model: Model, starts: Array) -> None:
    """Refuse a prior that is no density at a start point, or a gradient of another shape.

    Parameters
    ----------
    model : Model
        The posterior; its prior is tried.
    starts : ndarray of shape (chains, d)
        Where chains begin.

    Raises
    ------
    DpmcError
        If ``log_prior`` returns no number, or none that a chain can leave; or if
        ``log_prior_gradient`` does not return d finite numbers.
    """
    for start in np.unique(starts, axis=0):
        value = _numbers(model.log_prior(start.copy()))
        if value is None or value.size != 1:
            raise DpmcError(f"model {model.name!r}: `log_prior` must return a number, got another")
        density = float(value.ravel()[0])
        where = f"theta = {_shown(start)}"
        if math.isnan(density) or density == math.inf:
            raise DpmcError(
                f"model {model.name!r}: `log_prior` must be a number at the start, got {density} "
                f"at {where}"
            )
        if density == -math.inf:
            raise DpmcError(
                f"`start` must be where the prior has density, got {where}, which model "
                f"{model.name!r} rules out"
            )
        gradient = _numbers(model.log_prior_gradient(start.copy()))
        if gradient is None or gradient.shape != (model.dim,) or not np.isfinite(gradient).all():
            got = "others" if gradient is None else f"shape {gradient.shape}"
            raise DpmcError(
                f"model {model.name!r}: `log_prior_gradient` must return {model.dim} finite "
                f"numbers at the start, got {got} at {where}"
            )


def _numbers(value: Any) -> Array | None:
    """Return an array of real numbers, None of anything else."""
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind in "biuf" else None


def _shown(theta: Array) -> str:
    """Return a point as a reader wants to see it."""
    first = ", ".join(f"{value:.4g}" for value in theta[:4])
    return f"({first}{', ...' if len(theta) > 4 else ''})"
