"""The circle of [raisa2021thesis, section 5.3]: one column of 100,000 radii."""

import math

import numpy as np

from dpmc.models import circle
from dpmc.types import Array
from dpmc_league.simulate import generator, rounded
from dpmc_league.task import Statistic, Task

DIGEST = "19cf1281a0b649602922794738db84ab0f512ce9e39b149c4cffec73b2642b7f"
NUM_ROWS, SCALE = 100_000, 1e-5
# Squared radii lie in [0, 64]: half of it is the public centre and the bound.
HALF = 32.0


def build() -> Task:
    """Task. Its likelihood is no density of a row, so that there are no fresh rows."""
    rows = rounded(3.0 + generator("circle-v1").standard_normal((NUM_ROWS, 1)))
    variance_of_mean = 1 / (2 * SCALE * NUM_ROWS)

    def draw(value: Array, variance: float, size: int, rng: np.random.Generator) -> Array:
        """Draws given the mean squared radius, over its half range and about its centre."""
        from scipy.stats import truncnorm

        mean = HALF * (1 + float(value[0]))
        sd = math.sqrt(variance_of_mean + HALF**2 * variance)
        s = truncnorm.rvs(-mean / sd, math.inf, mean, sd, size=size, random_state=rng)
        angle = rng.uniform(0.0, 2 * math.pi, size)
        draws: Array = np.sqrt(s)[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
        return draws

    def summaries(x: Array) -> Array:
        values: Array = np.square(x) / HALF - 1
        return values

    return Task(
        name="circle-v1",
        title="circle",
        model=circle.build(circle.Params(SCALE)),
        rows=rows,
        names=("theta_1", "theta_2"),
        bounds={"squared_radius": 2 * HALF},
        start=np.array([0.0, 1.0]),
        statistic=Statistic(summaries, 1.0, draw),
        sample=lambda x, size, rng: draw(summaries(x).mean(axis=0), 0.0, size, rng),
    )
