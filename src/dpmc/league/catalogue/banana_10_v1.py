"""A banana in ten dimensions, with the variances of [raisa2021thesis, section 5.2]."""

import numpy as np

from dpmc.league.families import bent
from dpmc.league.task import Task
from dpmc.models import banana

DIGEST = "f9b234a1fd0ee1239946cd2d2603f63409711820a66798fc6325a28404f3157e"


def build() -> Task:
    """Return the task."""
    params = banana.Params(20.0, [20.0, 2.5, *[1.0] * 8], prior_variance=1000.0)
    truth = np.zeros(10)
    truth[1] = 3.0
    return bent("banana-10-v1", "banana in ten dimensions", params, 100_000, truth)
