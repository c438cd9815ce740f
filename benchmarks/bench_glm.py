"""Time ratios and gradients of a logistic regression beside JAX, and measure their errors.

    uv run --group bench python benchmarks/bench_glm.py

Nanoseconds of processor time for each row, both in one thread and in double precision, the least of
many passes that take turns; and the error of a sum over the sum of absolute terms, against sums of
NumPy in extended precision. Rows are clipped by `dpmc` and not by JAX. Without JAX its columns are
empty.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

# One thread each: what is compared is processor time.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from dpmc.models import logistic
from dpmc.rng import stream
from dpmc.rows.sums import RowSums
from dpmc.types import Array, Dataset

NUM_ROWS = 100_000
DIMS = (3, 10, 30)
REPEATS = 200
# Nothing is clipped at it, and every row is looked at.
BOUND = 1e3


def exact(x: Array, old: Array, new: Array) -> tuple[float, float, Array, Array]:
    """Ratio and gradient in extended precision, and sums of absolute terms of both."""
    signed = x[:, :-1].astype(np.longdouble) * (2 * x[:, -1:] - 1)

    def log_likelihood(theta: Array) -> Array:
        margin = signed @ theta
        return np.minimum(margin, 0) - np.log1p(np.exp(-np.abs(margin)))

    terms = log_likelihood(new) - log_likelihood(old)
    slopes = signed / (1 + np.exp(signed @ new))[:, None]
    return terms.sum(), np.abs(terms).sum(), slopes.sum(axis=0), np.abs(slopes).sum(axis=0)


def peer(x: Array, old: Array, new: Array) -> dict[str, Callable[[], object]]:
    """The same sums in JAX; nothing where it is not installed."""
    try:
        import jax
        import jax.numpy as jnp
    except ModuleNotFoundError:
        return {}
    jax.config.update("jax_enable_x64", True)
    signed = jnp.asarray(x[:, :-1] * (2 * x[:, -1:] - 1))

    def log_likelihood(theta, rows):
        return jax.nn.log_sigmoid(rows @ theta).sum()

    ratio = jax.jit(lambda a, b, rows: log_likelihood(b, rows) - log_likelihood(a, rows))
    gradient = jax.jit(jax.grad(log_likelihood))
    first, second = jnp.asarray(old), jnp.asarray(new)
    return {
        "ratio": lambda: ratio(first, second, signed).block_until_ready(),
        "gradient": lambda: gradient(second, signed).block_until_ready(),
    }


def nanoseconds(functions: list[Callable[[], object]]) -> list[float]:
    """The least processor time of each function for a row; they take turns."""
    least = [np.inf] * len(functions)
    for function in functions:
        function()
    for _ in range(REPEATS):
        for k, function in enumerate(functions):
            started = time.process_time_ns()
            function()
            least[k] = min(least[k], time.process_time_ns() - started)
    return [one / NUM_ROWS for one in least]


def main() -> None:
    """Print a Markdown table."""
    print("| d | sum | dpmc, ns a row | JAX, ns a row | relative error |")
    print("| --- | --- | --- | --- | --- |")
    for dim in DIMS:
        rng = stream(0, "bench_glm", dim)
        x = rng.standard_normal((NUM_ROWS, dim))
        old, new = rng.standard_normal((2, dim)) / np.sqrt(dim)
        rows = np.column_stack([x, rng.integers(0, 2, NUM_ROWS)])
        model = logistic.build(logistic.Params(dim, intercept=False))
        sums = RowSums(model, Dataset("rows", rows))
        own: dict[str, Callable[[], object]] = {
            "ratio": lambda sums=sums, old=old, new=new: sums.plain_ratio(old, new, BOUND),
            "gradient": lambda sums=sums, new=new: sums.plain_gradient(new, BOUND),
        }
        ratio, ratio_size, gradient, gradient_size = exact(rows, old, new)
        errors = {
            "ratio": abs(own["ratio"]()[0] - ratio) / ratio_size,
            "gradient": np.max(np.abs(own["gradient"]()[0] - gradient) / gradient_size),
        }
        other = peer(rows, old, new)
        for name, function in own.items():
            times = nanoseconds([function, *([other[name]] if other else [])])
            beside = f"{times[1]:.2g}" if other else ""
            print(f"| {dim} | {name} | {times[0]:.2g} | {beside} | {float(errors[name]):.1g} |")


if __name__ == "__main__":
    main()
