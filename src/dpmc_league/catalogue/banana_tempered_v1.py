"""The tempered banana of [raisa2021thesis, section 5.2]: a likelihood to the power of 0.01."""

import numpy as np

from dpmc.models import banana
from dpmc_league.families import bent
from dpmc_league.task import Task

DIGEST = "18c838c5e9bc6767155f31e95e5e8d5cf3d2162e4fc0e22cba1f01d1ec791e72"


def build() -> Task:
    """Task."""
    params = banana.Params(20.0, [20.0, 2.5], prior_variance=1000.0, tempering=0.01)
    return bent("banana-tempered-v1", "tempered banana", params, 100_000, np.array([0.0, 3.0]))
