"""Time one iteration of every method on the models of the thesis, with the settings it ran.

``uv run python benchmarks/bench_methods.py``; names of problems restrict it. The unit is the
time of reading the rows once in the same run, as in ``bench_rows.py``, so that a slow or busy
machine changes little. Variants that differ in their accounting only are timed once.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench_rows import median_seconds, read
from dpmc import registry
from dpmc.experiments.config import problems, reader
from dpmc.experiments.config.setups import ProblemSetup
from dpmc.mcmc import barker_correction
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams

CONFIG = Path(__file__).parents[1] / "config" / "papers" / "raisa2021thesis.yaml"
EXPERIMENTS = ("text", "clipping")
# What the public code of the thesis takes per iteration of these, in microseconds; the aim is
# a hundredth of it.
PUBLIC_CODE = {"dp_barker": 2400, "minibatch_penalty": 2400, "minibatch_penalty_ocu_gwmh": 2400}
# Long enough for what is done once per chain not to count.
ROWS_TO_READ, FEWEST, MOST = 3e7, 30, 20_000


def runs(config: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield problem, algorithm and method of every algorithm on every problem, once."""
    seen = set()
    for name in EXPERIMENTS:
        experiment = config["experiments"].get(name, {})
        for problem, methods in experiment.get("methods", {}).items():
            for label, method in methods.items():
                algorithm = label.partition("-")[0]
                if (problem, algorithm) not in seen:
                    seen.add((problem, algorithm))
                    yield problem, algorithm, method


def seconds_per_iteration(posterior: Posterior, start: np.ndarray, method: dict[str, Any]) -> float:
    """Return the median over five chains, after a first one that compiles."""
    module = registry.load("method", method["method"])
    grid = {key: values[-1] for key, values in method.get("grid", {}).items()}
    params = registry.parameters(module, method.get("params", {}) | grid)
    sampler = module.sampler(posterior, params)
    streams = [Streams.of(1, method["method"])]
    steps = getattr(params, "num_leapfrog_steps", 1)
    rows = getattr(params, "batch_size", posterior.num_rows) * (steps + 1)
    count = int(np.clip(ROWS_TO_READ / rows, FEWEST, MOST))
    return median_seconds(lambda: sampler(start, count, streams, Ledger()), 5) / count


def prepared(settings: dict[str, Any]) -> tuple[Posterior, np.ndarray, float]:
    """Return a posterior, a point where it is high, and the seconds of reading the rows."""
    setup = ProblemSetup.read(settings["name"], {k: v for k, v in settings.items() if k != "name"})
    dataset = problems.make_data(setup, 1)
    columns = np.ascontiguousarray(dataset.x.T)
    unit = median_seconds(lambda: read(columns))
    start = np.array([0.0, 3.0]) if dataset.truth is None else dataset.truth
    return Posterior(problems.make_model(setup), dataset), start[None], unit


def correction() -> None:
    """Print what a draw of the Barker correction costs."""
    ours, rng = barker_correction.correction(2.0), np.random.default_rng(1)

    def draws() -> None:
        for _ in range(10_000):
            ours.draw(rng)

    print(f"draw of the correction      {median_seconds(draws, 11) * 100:8.2f} us")


def main(wanted: list[str]) -> None:
    """Print one line for each problem and algorithm."""
    config = reader.read_yaml(CONFIG)
    correction()
    print(f"{'problem':28}{'algorithm':28}{'us':>9}{'reads':>8}{'times faster than public':>26}")
    problems: dict[str, tuple[Posterior, np.ndarray, float]] = {}
    for problem, algorithm, method in runs(config):
        if wanted and problem not in wanted:
            continue
        if problem not in problems:
            problems = {problem: prepared(config["problems"][problem] | {"name": problem})}
        posterior, start, unit = problems[problem]
        seconds = seconds_per_iteration(posterior, start, method)
        theirs = PUBLIC_CODE.get(algorithm)
        print(
            f"{problem:28}{algorithm:28}{seconds * 1e6:9.1f}{seconds / unit:8.2f}"
            + (f"{theirs * 1e-6 / seconds:26.0f}" if theirs else "")
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", help="by default all of the configuration")
    main(parser.parse_args().problems)
