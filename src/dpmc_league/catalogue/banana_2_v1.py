"""The banana of [raisa2021dphmc, section 4], its law: 100,000 rows, in two dimensions."""

import numpy as np

from dpmc.models import banana
from dpmc_league.families import bent
from dpmc_league.task import Task

DIGEST = "d5a31788c2f1f007b38abc8ee598eeabc055fe8733987494df11dfcae1c7744f"


def build() -> Task:
    """Task."""
    params = banana.Params(20.0, [2000.0, 2500.0], prior_variance=1000.0)
    return bent("banana-2-v1", "banana in two dimensions", params, 100_000, np.array([0.0, 3.0]))
