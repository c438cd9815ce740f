"""Poisson regression on two features and a constant; 50,000 simulated rows."""

import numpy as np

from dpmc.models import poisson
from dpmc_league.simulate import generator, regression_features
from dpmc_league.task import Task

DIGEST = "4e81a33705c1e5d75b0356e08205374cca8515f405d69a87102a81f9883fa36c"
NUM_ROWS, FRESH = 50_000, 2000
TRUTH = 0.5, 0.4, -0.3


def build() -> Task:
    """Task."""
    rng = generator("poisson-3-v1")
    features = regression_features(NUM_ROWS + FRESH, 2, rng)
    rate = np.exp(TRUTH[0] + features @ np.array(TRUTH[1:]))
    x = np.column_stack([features, rng.poisson(rate).astype(np.float64)])
    return Task(
        name="poisson-3-v1",
        title="Poisson regression, d = 3",
        model=poisson.build(poisson.Params(2, prior_sd=5.0)),
        rows=x[:NUM_ROWS],
        names=("constant", "theta_1", "theta_2"),
        bounds={"feature": 2.0},
        start=np.zeros(3),
        fresh=x[NUM_ROWS:],
    )
