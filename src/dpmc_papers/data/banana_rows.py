"""Rows of the banana model: independent Gaussian components around a bent mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmc.types import Dataset, DpmcError
from dpmc_papers.data import _threefry


@dataclass(frozen=True)
class Params:
    """Rows of the model in :mod:`dpmc.models.banana`.

    Parameters
    ----------
    num_rows : int
        Number of rows n.
    theta : sequence of float of length d >= 2
        The true parameter.
    variances : sequence of float of length d
        Variances of the components of a row.
    curvature, shift, centre : float
        The constants a, b and m of the model.
    threefry_seed : int, optional
        Draw the rows as JAX does from this seed, one key for x_1, one for x_2 and one for
        the rest, instead of from the stream: the rows of a published experiment.
    threefry_width : {64, 32}
        Bits of a float in JAX as it drew the rows. From one seed the two give other rows.
    """

    num_rows: int
    theta: Sequence[float]
    variances: Sequence[float]
    curvature: float
    shift: float = 0.0
    centre: float = 0.0
    threefry_seed: int | None = None
    threefry_width: int = 64

    def __post_init__(self) -> None:
        if self.num_rows < 1:
            raise DpmcError(f"`num_rows` must be a positive integer, got {self.num_rows}")
        if len(self.theta) != len(self.variances) or len(self.theta) < 2:
            raise DpmcError(
                f"`theta` must have two or more components, as many as `variances` "
                f"({len(self.variances)}), got {len(self.theta)}"
            )
        if self.threefry_width not in _threefry.FRACTION_BITS:
            raise DpmcError(f"`threefry_width` must be 32 or 64, got {self.threefry_width}")


def generate(params: Params, rng: np.random.Generator) -> Dataset:
    """Draw the rows, x of shape (n, d)."""
    theta = np.asarray(params.theta, dtype=np.float64)
    mean = theta.copy()
    mean[1] += params.curvature * (theta[0] - params.centre) ** 2 + params.shift
    if params.threefry_seed is None:
        noise = rng.standard_normal((params.num_rows, theta.size))
    else:
        keys = _threefry.split(_threefry.seed_key(params.threefry_seed), 3)
        widths = (1, 1, theta.size - 2)
        columns = [
            _threefry.normal(key, (params.num_rows, width), params.threefry_width)
            for key, width in zip(keys, widths, strict=True)
        ]
        noise = np.hstack(columns)
    return Dataset("banana_rows", mean + np.sqrt(params.variances) * noise, truth=theta)
