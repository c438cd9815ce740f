"""Time the chains of statistic selection, as ratios within one run.

``uv run python benchmarks/bench_statsel.py``. The unit is the time of one normal draw in a
compiled loop of the same run, so that a slow or busy machine changes little; times are of the
processor. The targets are in microseconds on a machine that draws a normal in 5 ns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numba
import numpy as np

import dpmc.statsel as selection
from dpmc import registry
from dpmc.numerics.compile_cache import assemble
from dpmc.statsel import order_draws, smooth, targets
from dpmc.statsel.chains import driver
from dpmc.statsel.chains.common import RIGHT

POPULATION = selection.population("normal_variance", bound=10.0)
DRAW = 0.005


@numba.njit
def normals(rng, num):
    """Draw standard normals."""
    total = 0.0
    for _ in range(num):
        total += rng.standard_normal()
    return total


@numba.njit
def sorted_sample(rng, num, repeats):
    """Draw and sort absolute values of normals, as Algorithm 12 would without order statistics."""
    x, total = np.empty(num), 0.0
    for _ in range(repeats):
        for j in range(num):
            x[j] = abs(rng.standard_normal())
        x.sort()
        total += x[num // 2]
    return total


@numba.njit
def searches(s, repeats):
    """Search for the smooth sensitivity of the median of sorted records."""
    total = 0.0
    for k in range(repeats):
        total += smooth.smooth_sensitivity(s, s.size // 2, 0.0, 10.0 + k % 2, 0.2524)
    return total


def seconds(function: Callable[[], object], repeats: int = 9) -> float:
    """Return the median processor time of a call, after one that is not counted."""
    function()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return float(np.median(times))


def chain(statistic: str, mechanism: str, y: object, method: str, num: int, **params) -> float:
    """Return the seconds of one iteration."""
    made, chosen = selection.mechanism(mechanism), selection.statistic(statistic)
    delta = 1e-4 if made.needs_delta else None
    given = targets.target(POPULATION, chosen, made, y, 100, 5.0, (0.0, 100.0), delta)
    module = registry.load("statsel_posterior", method)
    walk = driver.ThetaWalk(0.0, 100.0, 0.8)
    rng, out = np.random.default_rng(1), np.empty(num)
    advance = module.chain(given, module.Params(**params), RIGHT, walk, 2.0, rng)
    return seconds(lambda: advance(out)) / num


def show(name: str, found: float, unit: float, target: float | None) -> None:
    limit = "" if target is None else f"{target:10.3f} {found / unit * DRAW / target:14.2f}"
    print(f"{name:52} {found * 1e6:9.3f} {found / unit:9.1f} {limit}")


def main() -> None:
    rng = np.random.default_rng(1)
    unit = seconds(lambda: normals(rng, 500_000)) / 500_000
    print(f"unit: one normal draw, {unit * 1e9:.2f} ns")
    print(f"{'':52} {'us':>9} {'draws':>9} {'target us':>10} {'of the target':>14}")
    for noise, name in (("gaussian", "Algorithm 9"), ("laplace", "the same with Laplace noise")):
        show(f"{name}, iteration", chain("abs_1", noise, 1.15, "mh", 100_000), unit, 0.2)
    for method, name in (("pmmh", "Algorithm 10"), ("mhaar", "Algorithm 11")):
        found = chain("abs_1", "laplace", 1.15, method, 3000, num_particles=100) / 100
        show(f"{name}, particle", found, unit, 0.1)
    show(
        "draw and sort 100 records", seconds(lambda: sorted_sample(rng, 100, 3000)) / 3000, unit, 3
    )
    for statistic, y in (("median", 0.95), ("max", 3.5)):
        found = chain(statistic, "smooth_laplace", y, "exact", 100, num_particles=100) / 100
        show(f"Algorithm 12, {statistic} of 100, particle", found, unit, 4.0)
        show(
            f"  its statistic and scale at one theta, {statistic}", at_theta(statistic), unit, None
        )
    s = np.sort(np.abs(rng.standard_normal(100)))
    search = seconds(lambda: searches(s, 3000)) / 3000
    show("smooth sensitivity of 100 sorted records, median", search, unit, 0.5)
    y = POPULATION.draw(2.0, rng, 100)
    found = chain("abs_1", "per_record_laplace", np.abs(y), "sequential", 30, num_particles=50)
    show("Algorithm 13, record and particle", found / 5000, unit, None)


def at_theta(statistic: str, num: int = 1000) -> float:
    """Return the seconds of order statistic and smooth sensitivity of drawn records."""
    made, chosen = selection.mechanism("smooth_laplace"), selection.statistic(statistic)
    order = order_draws.order_of(POPULATION, chosen, made, 100, 5.0, 1e-4)
    particles = order_draws.Particles.of(num, 100)
    order_draws.stratify(order, particles, order_draws.centres(order, num))
    fill = assemble(order_draws.make_fill, POPULATION.generate, chosen.transform)
    rng, out = np.random.default_rng(1), np.empty((2, num))
    return seconds(lambda: fill(order, particles, 2.0, rng, out)) / num


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
