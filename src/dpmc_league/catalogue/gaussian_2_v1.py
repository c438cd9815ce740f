"""Mean of a Gaussian in 2 dimensions, its covariance known; 100,000 rows."""

from dpmc_league.families import gaussian
from dpmc_league.task import Task

DIGEST = "e646b6c4074230282b80b47767098aa9ba36d91fc7b7d744faafa71c76f60c6d"


def build() -> Task:
    """Task."""
    return gaussian("gaussian-2-v1", 2, 100_000)
