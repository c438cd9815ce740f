"""Time noise on a grid and random bits, as ratios to NumPy's standard normal numbers.

``uv run python benchmarks/bench_noise.py``. All is timed in one run, alternately, and the median
of the ratios is shown. With OpenDP installed (it is no dependency) its discrete Gaussian and
Laplace mechanisms at the same number of grid steps are shown beside ours.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable

import numpy as np

from dpmc.privacy import Ledger, add_gaussian, add_laplace
from dpmc.rng import cryptographic

LENGTH = 1000


def seconds(function: Callable[[], object], repeats: int) -> float:
    """Return the mean time of a call."""
    start = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - start) / repeats


def ratio(function: Callable[[], object], unit: Callable[[], object], repeats: int) -> float:
    """Return the median over 15 rounds of the time of a call over that of another."""
    function(), unit()
    rounds = [seconds(function, repeats) / seconds(unit, repeats) for _ in range(15)]
    return float(np.median(rounds))


def opendp(length: int) -> list[tuple[str, Callable[[], object]]]:
    """Return draws of OpenDP's mechanisms for integers, with a scale of 2**24."""
    if importlib.util.find_spec("opendp") is None:
        return []
    import opendp.prelude as dp

    dp.enable_features("contrib")
    if length == 1:
        space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
        gaussian, laplace = (
            space >> then(scale=2.0**24) for then in (dp.m.then_gaussian, dp.m.then_laplace)
        )
        return [("OpenDP Gaussian", lambda: gaussian(7)), ("OpenDP Laplace", lambda: laplace(7))]
    vectors = dp.vector_domain(dp.atom_domain(T=int))
    gaussian = (vectors, dp.l2_distance(T=int)) >> dp.m.then_gaussian(scale=2.0**24)
    laplace = (vectors, dp.l1_distance(T=int)) >> dp.m.then_laplace(scale=2.0**24)
    value = [7] * length
    return [
        ("OpenDP Gaussian", lambda: gaussian(value)),
        ("OpenDP Laplace", lambda: laplace(value)),
    ]


def main() -> None:
    """Print a table for one number and for a vector."""
    pcg, chacha = np.random.default_rng(), cryptographic()
    usual, discrete = Ledger(), Ledger(noise="discrete")
    for length in (1, LENGTH):
        value = 0.5 if length == 1 else np.full(length, 0.5)
        size = None if length == 1 else length
        rows: list[tuple[str, Callable[[], object]]] = [
            ("NumPy, ChaCha", lambda size=size: chacha.standard_normal(size)),
            ("random words, PCG64", lambda size=size: pcg.bit_generator.random_raw(size)),
            ("random words, ChaCha", lambda size=size: chacha.bit_generator.random_raw(size)),
            ("random words, system", lambda length=length: os.urandom(8 * length)),
            ("ledger, continuous", lambda v=value: usual.release(v, 0.1, 5.0, chacha)),
            ("ledger, discrete", lambda v=value: discrete.release(v, 0.1, 5.0, chacha)),
            ("add_gaussian, ChaCha", lambda v=value: add_gaussian(v, 0.1, 5.0, rng=chacha)),
            ("add_gaussian, system", lambda v=value: add_gaussian(v, 0.1, 5.0)),
            ("add_laplace, ChaCha", lambda v=value: add_laplace(v, 0.1, 0.2, rng=chacha)),
            *opendp(length),
        ]
        repeats = 500 if length == 1 else 20
        unit = lambda size=size: pcg.standard_normal(size)  # noqa: E731
        print(f"{length} number(s): time over that of NumPy's standard normal with PCG64")
        for name, function in rows:
            print(f"  {name:24} {ratio(function, unit, repeats):8.1f}")


if __name__ == "__main__":
    main()
