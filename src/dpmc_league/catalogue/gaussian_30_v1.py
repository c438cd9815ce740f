"""Mean of a Gaussian in 30 dimensions, its covariance known; 20,000 rows."""

from dpmc_league.families import gaussian
from dpmc_league.task import Task

DIGEST = "e32fcd8d7cb1c8ec610665fa820bc993c93e66bb3bbabf053565adfed4ec24e9"


def build() -> Task:
    """Task."""
    return gaussian("gaussian-30-v1", 30, 20_000)
