"""Mean of a Gaussian in 10 dimensions, its covariance known; 50,000 rows."""

from dpmc_league.families import gaussian
from dpmc_league.task import Task

DIGEST = "aeab8c9252ac1cbb1faba5547f8b8e88a5b20e8b84cb05ad02cbc1b063929371"


def build() -> Task:
    """Task."""
    return gaussian("gaussian-10-v1", 10, 50_000)
