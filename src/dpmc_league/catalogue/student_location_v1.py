"""Location and scale of a Student-t with four degrees of freedom; 50,000 simulated rows."""

import numpy as np

from dpmc.models import student_t
from dpmc_league.simulate import generator, rounded
from dpmc_league.task import Task

DIGEST = "de37f69c91cad698379e8a85c980c4a52f9a2e6bbb4a9c637b83a1186b8cc0f9"
NUM_ROWS, FRESH = 50_000, 2000


def build() -> Task:
    """Task."""
    rng = generator("student-location-v1")
    x = rounded(0.5 + 1.5 * rng.standard_t(4.0, (NUM_ROWS + FRESH, 1)))
    return Task(
        name="student-location-v1",
        title="location and scale of a Student-t",
        model=student_t.build(student_t.Params(0, prior_sd=10.0, degrees_of_freedom=4.0)),
        rows=x[:NUM_ROWS],
        names=("location", "log_scale"),
        bounds={},
        start=np.zeros(2),
        fresh=x[NUM_ROWS:],
    )
