"""Mean of a Gaussian in 30 dimensions, its covariance known; 20,000 rows."""

from dpmc.league.families import gaussian
from dpmc.league.task import Task

DIGEST = "b06993f23eb767b6f881c5ff7732185c06ec05c50c5b3fa702b3886a26b87d52"


def build() -> Task:
    """Return the task."""
    return gaussian("gaussian-30-v1", 30, 20_000)
