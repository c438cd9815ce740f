"""Time gradients and ratios of models from plain Python beside hand-written ones, as ratios.

``uv run python benchmarks/bench_models.py``. Of each regression there is a model whose gradient is
written by hand, in `dpmc.models`, and one of `dpmc.model`, whose gradient is traced. Both are
compiled into the same passes over rows; a ratio above 1 says that the traced one is slower.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

import dpmc
from dpmc import priors
from dpmc.models import dot, linear, logistic, poisson
from dpmc.rng import stream
from dpmc.rows.sums import RowSums
from dpmc.types import Dataset, Model

NUM_ROWS = 100_000
REPEATS = 31


def traced_logistic(p, row):
    """Return the log-likelihood of a label."""
    *x, y = row
    margin = (2.0 * y - 1.0) * (p.a + dot(p.b, x))
    return min(margin, 0.0) - math.log1p(math.exp(-abs(margin)))


def traced_poisson(p, row):
    """Return the log-likelihood of a count."""
    *x, y = row
    predictor = p.a + dot(p.b, x)
    return y * predictor - math.exp(predictor)


def traced_linear(p, row):
    """Return the log-likelihood of a number."""
    *x, y = row
    return -math.log(p.sigma) - 0.5 * ((y - p.a - dot(p.b, x)) / p.sigma) ** 2


PAIRS = {
    "logistic": (logistic, traced_logistic),
    "poisson": (poisson, traced_poisson),
    "linear": (linear, traced_linear),
}


def pair(name: str, num_features: int) -> tuple[Model, Model]:
    """Return the hand-written and the traced model."""
    module, function = PAIRS[name]
    parameters = {"a": priors.normal(0, 10), "b": priors.normal(0, 10, size=num_features)}
    if name == "linear":
        parameters["sigma"] = priors.log_normal(0, 3)
    traced = dpmc.model(function, parameters, num_columns=num_features + 1)
    return module.build(module.Params(num_features)), traced


def passes(model: Model, dataset: Dataset) -> dict[str, Callable[[], object]]:
    """Return a pass for ratios and one for gradients, both clipped."""
    sums = RowSums(model, dataset)
    old, new = np.full(model.dim, 0.1), np.full(model.dim, 0.11)
    return {
        "ratio": lambda: sums.plain_ratio(old, new, 1.0),
        "gradient": lambda: sums.plain_gradient(new, 10.0),
    }


def seconds(functions: list[Callable[[], object]]) -> list[float]:
    """Return the median time of each function; they take turns, so that all meet the same noise."""
    times = [[] for _ in functions]
    for _ in range(REPEATS + 1):
        for function, found in zip(functions, times, strict=True):
            started = time.perf_counter()
            function()
            found.append(time.perf_counter() - started)
    return [float(np.median(found[1:])) for found in times]


def main() -> None:
    """Print a Markdown table."""
    print("| model | features | pass | hand-written, ns a row | traced over hand-written |")
    print("| --- | --- | --- | --- | --- |")
    for name in PAIRS:
        for num_features in (2, 9, 29):
            rng = stream(0, "bench_models", name, num_features)
            x = rng.uniform(-1, 1, (NUM_ROWS, num_features))
            rows = np.column_stack([x, rng.integers(0, 2, NUM_ROWS)])
            dataset = Dataset("rows", rows)
            by_hand, traced = (passes(model, dataset) for model in pair(name, num_features))
            for kind in by_hand:
                first, second = seconds([by_hand[kind], traced[kind]])
                per_row = 1e9 * first / NUM_ROWS
                print(
                    f"| {name} | {num_features} | {kind} | {per_row:.3g} | {second / first:.2f} |"
                )


if __name__ == "__main__":
    main()
