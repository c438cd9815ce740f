"""Time one Fisher information of each kind, and a latent draw of Algorithms 6 to 8.

``uv run python benchmarks/bench_statsel_information.py``. 100 records of N(0, 2), A = 10,
epsilon = 5. Processor time: what other processes do changes little.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from dpmc.statsel import laplace_clt, lookup, moments
from dpmc.statsel.fisher import information, monte_carlo, order_statistics
from dpmc.statsel.fisher.monte_carlo import MonteCarloSizes
from dpmc.statsel.fisher.order_simulation import Simulation
from dpmc.statsel.order_draws import order_of

ROWS, EPSILON, THETA, DELTA, DRAWS = 100, 5.0, 2.0, 1e-4, 16_000
POPULATION = lookup.population("normal_variance", bound=10.0)
ABSOLUTE, MEDIAN = lookup.statistic("abs_1"), lookup.statistic("median")
ORDER = order_of(POPULATION, MEDIAN, lookup.mechanism("smooth_laplace"), ROWS, EPSILON, DELTA)


def seconds(run: Callable[[], object], count: int) -> float:
    """Return the processor time of one of `count` repetitions, compiled before."""
    run()
    start = time.process_time()
    for _ in range(count):
        run()
    return (time.process_time() - start) / count


def curve() -> object:
    """Compute 1,000 informations of a mean with Laplace noise."""
    return laplace_clt.information(np.linspace(0.5, 2, 1000), 1.0, 1.0, 0.3)


def record() -> object:
    """Integrate over one record with noise."""
    mechanism = lookup.mechanism("per_record_laplace")
    return information.information(POPULATION, ABSOLUTE, mechanism, EPSILON, ROWS, THETA)


def median() -> object:
    """Simulate a median."""
    rng = np.random.default_rng(0)
    return order_statistics.information(POPULATION, MEDIAN, ORDER, THETA, rng, Simulation(DRAWS))


def main() -> None:
    """Print a line for each."""
    law = moments.of(POPULATION, ABSOLUTE)
    samplers = {
        "Algorithm 6, draw": (monte_carlo.of_mean(law, THETA, ROWS, 0.02), 1000),
        "Algorithm 7, data set": (
            monte_carlo.of_data(POPULATION, MEDIAN, ORDER, THETA),
            100,
        ),
        "Algorithm 8, draw": (
            monte_carlo.of_record(POPULATION, ABSOLUTE, THETA, 2.0),
            1000,
        ),
    }
    print(f"{'mean, Laplace noise':32}{1e3 * seconds(curve, 20):10.2f} us")
    print(f"{'record, Laplace noise':32}{1e3 * seconds(record, 20):10.2f} ms")
    print(f"{f'median, {DRAWS} data sets':32}{1e3 * seconds(median, 3):10.2f} ms")
    for name, (sampler, inner) in samplers.items():
        sizes, rng = MonteCarloSizes(100, inner), np.random.default_rng(0)
        taken = seconds(lambda: monte_carlo.estimate(sampler, sizes, rng), 5)  # noqa: B023
        print(f"{name:32}{1e6 * taken / (100 * inner):10.2f} us")


if __name__ == "__main__":
    main()
