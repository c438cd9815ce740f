"""Priors of coefficients: in the units of the columns, or as given in units of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.automatic.glm.normal import Normal
from dpmc.types import Array

# Deviations of a slope, per unit of the linear predictor over a typical difference of a column, and
# of the intercept of a typical row; of the logarithm of the scale of responses.
SLOPE, INTERCEPT, LOG_SCALE = 2.5, 10.0, 3.0
# Deviations of slopes over the widest, each as likely as the others.
NARROWER = 2.0 ** -np.arange(4)


@dataclass(frozen=True)
class Frame:
    """Coefficients as a user has them: ``matrix @ beta + offset`` for beta in units.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
    offset : ndarray of shape (d,)
    log_scale : float
        Logarithm of the unit of responses.
    """

    matrix: Array
    offset: Array
    log_scale: float

    @classmethod
    def of(
        cls, location: Array, scale: Array, response: tuple[float, float], constant: bool
    ) -> Frame:
        """Frame for units of columns, and the location and scale of responses."""
        centre, size = response
        dim = len(location) + constant
        matrix, offset = np.zeros((dim, dim)), np.zeros(dim)
        slopes = size / scale
        matrix[constant:, constant:] = np.diag(slopes)
        if constant:
            matrix[0, 0], offset[0] = size, centre
            matrix[0, 1:] = -slopes * location
        return cls(matrix, offset, float(np.log(size)))

    def given(self, means: Array, sds: Array) -> tuple[Normal]:
        """Prior of beta for independent normal coefficients."""
        return (Normal(means, np.diag(sds**-2.0)).through(self.matrix, self.offset),)

    def usual(self, constant: bool) -> tuple[Normal, ...]:
        """Default priors of beta, the widest first: slopes share a deviation."""
        priors = []
        for narrower in NARROWER:
            sds = np.full(len(self.offset), SLOPE * narrower)
            if constant:
                sds[0] = INTERCEPT
            priors.append(Normal(np.zeros(len(sds)), np.diag(sds**-2.0)))
        return tuple(priors)

    def outside(self, beta: Normal) -> Normal:
        """Distribution of coefficients as a user has them."""
        back = np.linalg.inv(self.matrix)
        precision = back.T @ beta.precision @ back
        return Normal(self.matrix @ beta.mean + self.offset, (precision + precision.T) / 2)
