"""A banana in ten dimensions, with the variances of [raisa2021thesis, section 5.2]."""

import numpy as np

from dpmc.models import banana
from dpmc_league.families import bent
from dpmc_league.task import Task

DIGEST = "9bde42f1883bc17300ad0cc3db36cfd2b96996da46cd92b006b68a0f8e67fe2d"


def build() -> Task:
    """Task."""
    params = banana.Params(20.0, [20.0, 2.5, *[1.0] * 8], prior_variance=1000.0)
    truth = np.zeros(10)
    truth[1] = 3.0
    return bent("banana-10-v1", "banana in ten dimensions", params, 100_000, truth)
