"""Times of passes over all rows, as ratios to reading the rows once within one run.

``uv run python benchmarks/bench_rows.py``. The unit is the time of reading the rows once
(summing them with the same compiler), so that a slow or busy machine changes little. The
roofline fraction is that time over the time of the pass. Memory-bound passes cannot be
faster; the targets are 50 % for the ratio pass and 40 % for the gradient pass at d <= 10.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numba
import numpy as np

from dpmc.mcmc.posterior import Posterior
from dpmc.yaml_files import typed
from dpmc_papers.config import problems
from dpmc_papers.config.setups import ProblemSetup

NUM_ROWS = 100_000


@numba.njit(fastmath=True)
def read(features):
    """Sum all numbers: one read of the data."""
    total = 0.0
    for k in range(features.shape[0]):
        for j in range(features.shape[1]):
            total += features[k, j]
    return total


def median_seconds(function: Callable[[], object], repeats: int = 101) -> float:
    """The median time of a call, after one that is not counted."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def gaussian(dim: int) -> Posterior:
    """The Gaussian mean posterior of `dim` dimensions."""
    covariance = {"seed": 1}
    problem = {
        "name": f"gauss_{dim}d",
        "data": {
            "name": "gaussian_rows",
            "params": {"num_rows": NUM_ROWS, "mean": [0.0] * dim, "covariance": covariance},
        },
        "model": {
            "name": "gaussian_mean",
            "params": {"dim": dim, "covariance": covariance, "prior_variance": 1e4},
        },
    }
    setup = typed(problem, ProblemSetup)
    return Posterior(problems.make_model(setup), problems.make_data(setup, 1))


def banana() -> Posterior:
    """The banana posterior of the DP-HMC paper."""
    shape = {"variances": [2000, 2500], "curvature": 20}
    problem = {
        "name": "banana",
        "data": {
            "name": "banana_rows",
            "params": {"num_rows": NUM_ROWS, "theta": [0, 3], **shape},
        },
        "model": {"name": "banana", "params": {"prior_variance": 1000, **shape}},
    }
    setup = typed(problem, ProblemSetup)
    return Posterior(problems.make_model(setup), problems.make_data(setup, 1))


def passes() -> None:
    """Print the passes over all rows."""
    print(f"one core, n = {NUM_ROWS}, float64; a read is one sum over the rows")
    print(f"{'pass':34} {'us':>8} {'reads':>7} {'roofline':>9}")
    for posterior in (banana(), *(gaussian(d) for d in (2, 10, 30))):
        sums, dim = posterior.sums, posterior.dim
        name = f"{posterior.model.name} d={dim}"
        theta = np.full(dim, 0.01)
        new = theta + 0.001
        length = np.linalg.norm(sums.gradient(theta, math.inf)[0]) / NUM_ROWS
        bound = length if length > 0.05 else 0.05
        row, c = posterior.model.gradient.py_func, tuple(sums.coefficients(theta))
        lengths = [np.linalg.norm(row(c, tuple(x))) for x in sums.features[:, ::50].T]
        most = float(np.quantile(lengths, 0.1))
        unit = median_seconds(lambda sums=sums: read(sums.features))
        print(f"{name + ' read':34} {unit * 1e6:8.1f} {1.0:7.2f}")
        for label, call in {
            "clipped ratio": lambda: sums.plain_ratio(theta, new, 1e-3),  # noqa: B023
            "gradient, many clipped": lambda: sums.plain_gradient(theta, bound),  # noqa: B023
            "gradient, 90 % clipped": lambda: sums.plain_gradient(theta, most),  # noqa: B023
            "gradient, none clipped": lambda: sums.plain_gradient(theta, 1e9),  # noqa: B023
        }.items():
            seconds = median_seconds(call)
            print(
                f"{name + ' ' + label:34} {seconds * 1e6:8.1f} {seconds / unit:7.2f} "
                f"{unit / seconds:9.0%}"
            )


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    passes()
