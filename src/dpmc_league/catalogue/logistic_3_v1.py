"""Logistic regression on three features without a constant; 50,000 simulated rows."""

import math

import numpy as np

from dpmc.models import logistic
from dpmc_league.simulate import generator, regression_features
from dpmc_league.task import Task

DIGEST = "46a27512661abb282394695999cec655e70494153b5a22b8b824bd159af1686a"
NUM_ROWS, FRESH = 50_000, 2000
TRUTH = 1.0, -0.5, 0.25


def build() -> Task:
    """Task."""
    rng = generator("logistic-3-v1")
    features = regression_features(NUM_ROWS + FRESH, 3, rng)
    chance = 1 / (1 + np.exp(-features @ np.array(TRUTH)))
    response = (rng.random(len(chance)) < chance).astype(np.float64)
    x = np.column_stack([features, response])
    norm = 2 * math.sqrt(3)
    return Task(
        name="logistic-3-v1",
        title="logistic regression, d = 3",
        model=logistic.build(logistic.Params(3, intercept=False, prior_sd=5.0, row_norm=norm)),
        rows=x[:NUM_ROWS],
        names=("theta_1", "theta_2", "theta_3"),
        bounds={"row_norm": norm},
        start=np.zeros(3),
        fresh=x[NUM_ROWS:],
    )
