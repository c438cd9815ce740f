"""Refinement of the prior of the weights after a pass.

Every weight has the prior N(0, 1 / lambda), one lambda for all with a Gamma distribution of its
own. The factor of this prior is approximated as any other, weight by weight, by a Gaussian part
and a Gamma part [Hernández-Lobato and Adams 2015, section 2.2]. It needs nothing but q: where q
is private, so is what comes of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmc.ep.network.gamma_factors import tilted_gamma
from dpmc.ep.network.layout import Architecture, Arrays
from dpmc.numerics.compiled import kept
from dpmc.types import Array

# Cavities of a larger variance are left alone.
LARGEST_VARIANCE = 1e6


class PriorFactors:
    """Gamma parts of the prior's factors, and Gamma distribution of the precision of weights.

    Parameters
    ----------
    architecture : Architecture
        Sizes of the network.
    shape, rate : float
        Gamma distribution before the first pass.
    """

    def __init__(self, architecture: Architecture, shape: float, rate: float) -> None:
        self.places = architecture.places()
        self.gamma: Array = np.array([shape, rate])
        self.sites: Array = np.zeros((len(self.places), 2))

    def refine(self, arrays: Arrays) -> int:
        """Refine the prior and change q with it, in place; return how many weights were skipped."""
        skipped = _refine(arrays.precision, arrays.shift, arrays.prior, self.places, self.sites,
                          self.gamma)  # fmt: skip
        return int(skipped)


@kept
def _refine(precision: Any, shift: Any, prior: Any, places: Any, sites: Any, gamma: Any) -> int:
    """Refine the factors in turn, each from the Gamma distribution that the last one left.

    The Gaussian part of a factor comes out as ``(a - 1) / b`` of the cavity: with v the
    variance of the cavity, moment matching of N(m; 0, v + b / (a - 1)) gives the precision
    ``1 / v + (a - 1) / b``, and leaves the shift as it is.
    """
    skipped = 0
    for j in range(places.size):
        k = places[j]
        cavity = precision[k] - prior[k]
        a, b = gamma[0] - sites[j, 0], gamma[1] - sites[j, 1]
        if not (cavity * LARGEST_VARIANCE > 1.0 and a > 1.0 and b > 0.0):
            skipped += 1
            continue
        mean = shift[k] / cavity
        factor_a, factor_b, valid = tilted_gamma(a, b, 1.0 / cavity, mean * mean)
        if not valid:
            skipped += 1
            continue
        prior[k] = (a - 1.0) / b
        precision[k] = cavity + prior[k]
        sites[j, 0], sites[j, 1] = factor_a, factor_b
        gamma[0], gamma[1] = a + factor_a, b + factor_b
    return skipped
