"""Time what the privacy package does before and during a run.

Run with ``python benchmarks/bench_accounting.py``; prints one line per quantity.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from dpmc.privacy import Ledger, Releases, barker, gaussian, plan, sampled_gaussian
from dpmc.privacy.accountants.gaussian import affordable_mean_loss, log_delta
from dpmc.privacy.audit import audit
from dpmc.privacy.clipped import BarkerRatio, Clip, asserted
from dpmc.types import Budget

ROWS, BATCH, DELTA = 100_000, 1000, 1e-6
SAMPLED = {  # noise standard deviation over substitution sensitivity
    "banana dp_sgld, dp_sgnht": 7.905694150420948,
    "gauss dp_sgld": 1.1785113019775793,
    "gauss dp_sgnht": 2.282177322938192,
    "banana dp_sgld, Langevin": 11.180339887498949,
}


def seconds(action: Callable[[], object], number: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(number):
        action()
    return (time.perf_counter() - start) / number


def imports() -> None:
    for module in ("numpy", "dpmc", "dpmc.privacy", "dp_accounting"):
        command = [sys.executable, "-c", f"import {module}"]
        best = min(seconds(lambda c=command: subprocess.run(c, check=True)) for _ in range(3))
        print(f"import {module:20s} {best:8.2f} s")


def closed_form() -> None:
    print(f"log_delta                   {1e6 * seconds(lambda: log_delta(4, 0.35), 10000):8.1f} us")
    inversion = seconds(lambda: affordable_mean_loss(4, DELTA), 200)
    print(f"affordable_mean_loss        {1e6 * inversion:8.1f} us")
    releases = Releases((), ((gaussian(31.6), 1), (gaussian(173.9), 26)))
    once = seconds(lambda: plan(releases, Budget(4, DELTA, "gaussian"), 4), 20)
    print(f"plan of dp_hmc              {1e3 * once:8.2f} ms")


def sampled() -> None:
    for label, noise_multiplier in SAMPLED.items():
        event = sampled_gaussian(noise_multiplier, BATCH, ROWS)
        for name in ("poisson_pair", "subsampled"):
            for epsilon in (2, 15):
                start = time.perf_counter()
                made = plan(Releases((), ((event, 1),)), Budget(epsilon, DELTA, name))
                elapsed = time.perf_counter() - start
                print(
                    f"plan {label:26s} {name:13s} epsilon {epsilon:3d} {made.num_iterations:9d} "
                    f"iterations, really epsilon {made.guarantee.epsilon:7.4f} {elapsed:6.2f} s"
                )
        elapsed = seconds(lambda counts=made.counts: audit(counts, DELTA))
        print(f"audit of the last           {elapsed:8.2f} s")


def batches_of_the_thesis() -> None:
    minibatch = sampled_gaussian(0.7**0.5, BATCH, ROWS)
    test = barker(2.0, 1.0, 1300, ROWS)
    names = {
        minibatch: ("poisson_pair", "subsampled", "rdp_integer", "rdp_truncated"),
        test: ("barker_rdp_published", "barker_rdp", "barker_pld"),
    }
    for event, accountants in names.items():
        for name in accountants:
            start = time.perf_counter()
            made = plan(Releases((), ((event, 1),)), Budget(4, DELTA, name))
            elapsed = time.perf_counter() - start
            print(
                f"plan {name:20s} epsilon   4 {made.num_iterations:9d} iterations, "
                f"really epsilon {made.guarantee.epsilon:7.4f} {elapsed:6.2f} s"
            )
        elapsed = seconds(lambda counts=made.counts: audit(counts, DELTA))
        print(f"audit of the last           {elapsed:8.2f} s")


def releases_drawn() -> None:
    rng, ledger, vector = np.random.default_rng(), Ledger(), np.zeros(10)
    test = barker(2.0, 1.0, 10, 100)
    draws: dict[str, Callable[[], object]] = {
        "standard_normal, scalar": lambda: rng.standard_normal(),
        "release, scalar": lambda: ledger.release(asserted(1.0, 0.1), 5.0, rng),
        "release, of a batch": lambda: ledger.release(asserted(1.0, 0.1), 5.0, rng, (10, 100)),
        "release_barker": lambda: ledger.release_barker(BarkerRatio(1.0, 0.5, test), rng),
        "release, 10 components": lambda: ledger.release(asserted(vector, 0.1), 5.0, rng),
        "noise_block of 1000 x 10": lambda: ledger.noise_block(
            1000, 10, Clip(0.05), 5.0, rng, 10, 100
        ),
    }
    for label, action in draws.items():
        number = 200 if "block" in label else 100_000
        print(f"{label:27s} {1e6 * seconds(action, number):8.2f} us")


if __name__ == "__main__":
    imports()
    closed_form()
    sampled()
    batches_of_the_thesis()
    releases_drawn()
