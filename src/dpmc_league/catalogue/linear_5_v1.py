"""Linear regression with noise of unknown size on three features and a constant; 50,000 rows."""

import numpy as np

from dpmc.models import linear
from dpmc_league.simulate import generator, regression_features, rounded
from dpmc_league.task import Task

DIGEST = "e2f6141f740c52fb785d51975c02b51983c702de7981588602cb8771b22cbf6b"
NUM_ROWS, FRESH = 50_000, 2000
TRUTH = 1.0, -0.5, 0.5, 0.25
NOISE = 0.7


def build() -> Task:
    """Task."""
    rng = generator("linear-5-v1")
    features = regression_features(NUM_ROWS + FRESH, 3, rng)
    mean = TRUTH[0] + features @ np.array(TRUTH[1:])
    response = rounded(mean + NOISE * rng.standard_normal(len(mean)))
    x = np.column_stack([features, response])
    return Task(
        name="linear-5-v1",
        title="linear regression, noise unknown, d = 5",
        model=linear.build(linear.Params(3, prior_sd=10.0)),
        rows=x[:NUM_ROWS],
        names=("constant", "theta_1", "theta_2", "theta_3", "log_noise"),
        bounds={"feature": 2.0},
        start=np.zeros(5),
        fresh=x[NUM_ROWS:],
    )
