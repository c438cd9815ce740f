"""Mean of a Gaussian in 10 dimensions, its covariance known; 50,000 rows."""

from dpmc.league.families import gaussian
from dpmc.league.task import Task

DIGEST = "9ed746f9ed18ef0d635ae711e173a60b09a53c5a140364db8a2a245ee81a8205"


def build() -> Task:
    """Return the task."""
    return gaussian("gaussian-10-v1", 10, 50_000)
