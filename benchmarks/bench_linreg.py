"""Time one iteration of the samplers of private regression, as ratios within one run.

``uv run python benchmarks/bench_linreg.py``. The unit is the time of a reference loop, a compiled
product of two matrices of 14 x 14 in the same run, and times are those of the processor, the least
of several, so that a slow or busy machine changes little. The targets are in microseconds, on a
machine whose unit is about one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import thread_time

import numba
import numpy as np

from dpmc.linreg.methods import mcmc_bs, mcmc_fixed_s, mcmc_normal_x
from dpmc.linreg.types import NoisyStatistics, Prior
from dpmc.types import Guarantee

ROWS, NOISE_SD = 10_000, 100.0
SIZES = ((2, 1), (2, 10), (5, 10), (14, 1), (14, 10))
METHODS = {
    "fixed_s": (mcmc_fixed_s, {}),
    "normal_x": (mcmc_normal_x, {}),
    "normal_x, no scale moves": (mcmc_normal_x, {"scale_moves": 0}),
    "normal_x, wishart": (mcmc_normal_x, {"scale_moves": 0, "statistics_move": "wishart"}),
    "bs": (mcmc_bs, {}),
    "bs, no joint moves": (mcmc_bs, {"joint_moves": 0}),
}
TARGETS = {
    ("fixed_s", 2, 1): 1,
    ("fixed_s", 14, 10): 40,
    ("normal_x, wishart", 2, 1): 5,
    ("normal_x", 14, 10): 350,
    ("normal_x, wishart", 14, 10): 450,
}
REPEATS = 7


def seconds(function: Callable[[], object]) -> float:
    """Return the least processor time of several calls, after one that compiles."""
    function()
    times = []
    for _ in range(REPEATS):
        began = thread_time()
        function()
        times.append(thread_time() - began)
    return min(times)


@numba.njit
def products(a, b, out, count):
    """Multiply two matrices, `count` times over."""
    dim = a.shape[0]
    for _ in range(count):
        for i in range(dim):
            for j in range(dim):
                out[i, j] = 0.0
            for k in range(dim):
                for j in range(dim):
                    out[i, j] += a[i, k] * b[k, j]
        a, out = out, a


def unit() -> float:
    """Return the seconds of one product of the reference loop."""
    a, b = np.eye(14), np.eye(14)
    return seconds(lambda: products(a, b, np.empty((14, 14)), 10_000)) / 10_000


def problem(dim: int, num_nodes: int) -> tuple[NoisyStatistics, Prior]:
    """Return the release of independent standard normal features."""
    rng = np.random.default_rng(dim * 100 + num_nodes)
    theta = rng.standard_normal(dim)
    s, z, u = [], [], []
    for _ in range(num_nodes):
        x = rng.standard_normal((ROWS // num_nodes, dim))
        noise = np.triu(NOISE_SD * rng.standard_normal((dim, dim)))
        s.append(x.T @ x + noise + np.triu(noise, 1).T)
        y = x @ theta + rng.standard_normal(len(x))
        z.append(x.T @ y)
        u.append(y @ y)
    num_rows = np.full(num_nodes, ROWS // num_nodes)
    guarantee = Guarantee(math.inf, 0.0)
    sd = (NOISE_SD, NOISE_SD, NOISE_SD)
    noisy = NoisyStatistics(num_rows, np.array(s), np.array(z), np.array(u), *sd, guarantee)
    prior = Prior(np.zeros(dim), 38 * np.eye(dim), 20.0, 0.5, np.eye(dim), dim + 1.0)
    return noisy, prior


def main() -> None:
    reference = unit()
    print(f"unit: one 14 x 14 product, {reference * 1e6:.2f} us")
    print(f"{'sampler':28}{'d':>4}{'J':>4}{'us':>9}{'units':>9}{'target us':>11}{'share':>8}")
    for label, (method, settings) in METHODS.items():
        for dim, num_nodes in SIZES:
            noisy, prior = problem(dim, num_nodes)
            count = int(np.clip(400_000 / (dim * dim * num_nodes), 200, 50_000))
            params = method.Params(count, count // 2, **settings)
            rng = np.random.default_rng(1)
            each = seconds(lambda: method.fit(noisy, prior, params, rng)) / count  # noqa: B023
            target = TARGETS.get((label, dim, num_nodes))
            print(
                f"{label:28}{dim:4}{num_nodes:4}{each * 1e6:9.2f}{each / reference:9.1f}"
                + (f"{target:11}{each * 1e6 / target:8.2f}" if target else "")
            )


if __name__ == "__main__":
    main()
