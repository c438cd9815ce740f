"""Time the passes over all rows and one iteration of each method, as ratios within one run.

``uv run python benchmarks/bench_rows.py``. The unit is the time of reading the rows once
(summing them with the same compiler), so that a slow or busy machine changes little. The
roofline fraction is that time over the time of the pass. Memory-bound passes cannot be
faster; the targets are 50 % for the ratio pass and 40 % for the gradient pass at d <= 10.

A pass that clips most rows takes a square root and a quotient of each, in vectors, and these
alone take longer than the read: they are shown as a pass of their own, which is the roofline of a
gradient where most rows are clipped.

Sums that look only at rows which can be clipped are shown next to the pass that they replace, and
the ratios of a batch next to the pass over all rows.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numba
import numpy as np

from dpmc import registry
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.rows import kernels
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


@numba.njit(fastmath=True, error_model="numpy")
def weights(feature, bound):
    """Sum what clipped rows would be multiplied by: a square root and a quotient for each."""
    total = 0.0
    for j in range(feature.shape[0]):
        total += bound / math.sqrt(abs(feature[j]))
    return total


def median_seconds(function: Callable[[], object], repeats: int = 101) -> float:
    """Return the median time of a call, after one that is not counted."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def gaussian(dim: int) -> Posterior:
    """Return the Gaussian mean posterior of `dim` dimensions."""
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
    """Return the banana posterior of the DP-HMC paper."""
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
            "roots and quotients": lambda: weights(sums.features[0], bound),  # noqa: B023
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


def inner_sums() -> None:
    """Print gradients that leave out the rows which cannot be clipped, by the part clipped."""
    print(f"\n{'gradients of few rows':34} {'clipped':>8} {'us':>8} {'pass, us':>9} {'faster':>7}")
    for posterior in (banana(), gaussian(2), gaussian(10), gaussian(30)):
        sums, dim = posterior.sums, posterior.dim
        theta = np.full(dim, 0.01)
        row, c = posterior.model.gradient.py_func, tuple(sums.coefficients(theta))
        lengths = [np.linalg.norm(row(c, tuple(x))) for x in sums.features[:, ::50].T]
        for share in (0.5, 0.1, 0.05, 0.0):
            bound = float(np.quantile(lengths, 1 - share)) * (1 if share else 10)
            few = median_seconds(lambda: sums.gradient(theta, bound))  # noqa: B023
            all_rows = median_seconds(lambda: sums.plain_gradient(theta, bound))  # noqa: B023
            clipped = sums.gradient(theta, bound)[1] / NUM_ROWS
            print(
                f"{posterior.model.name + f' d={dim}':34} {clipped:8.1%} {few * 1e6:8.1f} "
                f"{all_rows * 1e6:9.1f} {all_rows / few:6.1f}x"
            )


def batches(size: int = 1000) -> None:
    """Print the ratios of a batch of rows."""
    print(f"\n{f'clipped ratios of {size} rows':34} {'us':>8} {'ns/row':>8} {'pass/batch':>11}")
    for posterior in (banana(), gaussian(10)):
        model, rows, rng = posterior.model, posterior.batch_rows, np.random.default_rng(1)
        sums, theta = posterior.sums, np.full(posterior.dim, 0.01)
        old, new = sums.coefficients(theta), sums.coefficients(theta + 0.001)
        kernel = kernels.batch_ratio_kernel(model.log_likelihood, len(new), rows.shape[1])
        drawn = [rng.permutation(NUM_ROWS)[:size].astype(np.uint64) for _ in range(20)]
        plain = median_seconds(lambda sums=sums, theta=theta: sums.plain_ratio(theta, theta, 1.0))
        for label, args in {
            "linear": (np.empty(0), new - old, 1e-3),
            "general": (old, new, 1e-3),
        }.items():
            seconds = (
                median_seconds(lambda: [kernel(rows, batch, *args) for batch in drawn])  # noqa: B023
                / len(drawn)
            )
            print(
                f"{f'{model.name} d={posterior.dim} {label}':34} {seconds * 1e6:8.2f} "
                f"{seconds / size * 1e9:8.2f} {plain / seconds:11.1f}"
            )


ROOT_N = math.sqrt(NUM_ROWS)
# Settings of the DP-HMC paper, and what its public JAX code takes per iteration on one
# core of this kind of machine, in milliseconds.
METHODS = {
    "banana": {
        "dp_penalty": (
            6.9,
            {
                "proposal_sd": 0.06,
                "ratio_clip_bound": 0.15,
                "ratio_noise_multiplier": 0.17 * ROOT_N,
            },
        ),
        "dp_hmc": (
            78.0,
            {
                "step_size": 0.006,
                "num_leapfrog_steps": 25,
                "ratio_clip_bound": 0.1,
                "gradient_clip_bound": 0.05,
                "ratio_noise_multiplier": 0.1 * ROOT_N,
                "gradient_noise_multiplier": 0.55 * ROOT_N,
            },
        ),
        "dp_sgld": (1.4, {"batch_size": 1000, "gradient_clip_bound": 0.2, "step_size": 1.0}),
        "dp_sgnht": (
            None,
            {"batch_size": 1000, "gradient_clip_bound": 0.2, "step_size": 100.0, "friction": 50.0},
        ),
    },
    "gaussian": {
        "dp_penalty": (
            21.0,
            {
                "proposal_sd": 0.0007,
                "ratio_clip_bound": 10,
                "ratio_noise_multiplier": 0.05 * ROOT_N,
            },
        ),
        "dp_hmc": (
            324.0,
            {
                "step_size": 0.00015,
                "num_leapfrog_steps": 12,
                "ratio_clip_bound": 6.0,
                "gradient_clip_bound": 10.0,
                "ratio_noise_multiplier": 0.1 * ROOT_N,
                "gradient_noise_multiplier": 0.25 * ROOT_N,
            },
        ),
        "dp_sgld": (None, {"batch_size": 1000, "gradient_clip_bound": 15.0, "step_size": 0.008}),
        "dp_sgnht": (
            None,
            {"batch_size": 1000, "gradient_clip_bound": 12.0, "step_size": 0.2, "friction": 30.0},
        ),
    },
}


def iterations() -> None:
    """Print one iteration of each method."""
    print(f"\n{'method':26} {'us':>9} {'reads':>7} {'public code, us':>16} {'times faster':>13}")
    for name, posterior in (("banana", banana()), ("gaussian", gaussian(10))):
        unit = median_seconds(lambda posterior=posterior: read(posterior.sums.features))
        for method, (theirs, values) in METHODS[name].items():
            module = registry.load("method", method)
            sampler = module.sampler(posterior, registry.parameters(module, values))
            start, count = np.zeros((1, posterior.dim)), 20_000 if "sg" in method else 300
            streams = [Streams.of(1, method)]
            seconds = (
                median_seconds(lambda: sampler(start, count, streams, Ledger()), 5) / count  # noqa: B023
            )
            print(
                f"{name + ' ' + method:26} {seconds * 1e6:9.1f} {seconds / unit:7.2f} "
                + (f"{theirs * 1e3:16.0f} {theirs * 1e-3 / seconds:13.0f}" if theirs else "")
            )


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    passes()
    inner_sums()
    batches()
    iterations()
