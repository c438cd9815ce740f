"""Time one update of a network with one hidden layer, as ratios within one run.

``uv run python benchmarks/bench_network.py``. The unit is a plain loop for the same network in
the same run, one weight after the other with the error function of the C library, so that a
slow or busy machine changes little. The targets are in microseconds, on one core of 2024.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from bench_rows import median_seconds
from dpmc.ep.network import states as network_states
from dpmc.ep.network.layout import Architecture
from dpmc.ep.network.loops import sweep
from dpmc.ep.network.settings import NetworkSettings
from dpmc.ep.network.variants import clipped, private

ROWS = 2000
STEPS = {(50, 4): 20_000, (50, 11): 10_000, (100, 9): 6_000, (100, 90): 1_500}
TARGETS = {(50, 4): 5.0, (50, 11): 6.5, (100, 9): 12.0, (100, 90): 60.0}
# Of a private update over the target of one without noise.
NOISE_SHARE = 1.6
NOISE_VARIANCE = 0.3
METHODS = {
    "sep": NetworkSettings(),
    "sep, fixed noise": NetworkSettings(noise_variance=NOISE_VARIANCE),
    "ep": NetworkSettings(sites="per_row", step=0.4),
    "sep, clipped": clipped(50, 40, (2.0, NOISE_VARIANCE), 1.0),
    "dp_sep": private(50, 40, 0.1, 1.0, NOISE_VARIANCE),
}


@numba.njit
def plain(x, y, order, shift_1, precision_1, shift_2, precision_2, prior, noise):
    """Update by SEP with a step of 1, weight by weight."""
    hidden, inputs = shift_1.shape
    share, root_1, root_2 = 1.0 / len(y), 1 / math.sqrt(inputs), 1 / math.sqrt(hidden + 1)
    mean_1, variance_1 = np.empty_like(shift_1), np.empty_like(shift_1)
    mean_2, variance_2 = np.empty(hidden + 1), np.empty(hidden + 1)
    unit = np.empty((5, hidden + 1))
    z = np.ones(inputs)
    for n in order:
        z[:-1] = x[n]
        out, out_variance = 0.0, 0.0
        for h in range(hidden + 1):
            b, c = 1.0, 0.0
            if h < hidden:
                a, v = 0.0, 0.0
                for i in range(inputs):
                    l = precision_1[h, i] - share * (precision_1[h, i] - prior)  # noqa: E741
                    variance_1[h, i] = 1 / l
                    mean_1[h, i] = shift_1[h, i] * (1 - share) / l
                    a += mean_1[h, i] * z[i] * root_1
                    v += variance_1[h, i] * (z[i] * root_1) ** 2
                s = math.sqrt(v)
                on, off = 0.5 * math.erfc(-a / s / 1.4142135623730951), 0.0
                off = 0.5 * math.erfc(a / s / 1.4142135623730951)
                density = math.exp(-0.5 * a * a / v) / 2.5066282746310002
                b = a * on + s * density
                c = b * (a + s * density / on) * off
                c += on * v * (1 - density / on * (density / on + a / s))
                unit[2, h], unit[3, h], unit[4, h] = on, off, density / (2 * s)
            unit[0, h], unit[1, h] = b, c
            l = precision_2[h] - share * (precision_2[h] - prior)  # noqa: E741
            variance_2[h], mean_2[h] = 1 / l, shift_2[h] * (1 - share) / l
            out += mean_2[h] * b * root_2
            out_variance += (variance_2[h] + mean_2[h] ** 2) * c + variance_2[h] * b * b
        total = out_variance * root_2**2 + noise
        by_mean = (y[n] - out) / total
        by_var = 0.5 * (by_mean**2 - 1 / total)
        for h in range(hidden + 1):
            m, v, b, c = mean_2[h], variance_2[h], unit[0, h], unit[1, h]
            g = by_mean * b * root_2 + 2 * by_var * m * c * root_2**2
            k = g * g - 2 * by_var * (c + b * b) * root_2**2
            shift_2[h] = m / v + (g + m * k) / (1 - v * k)
            precision_2[h] = 1 / v + k / (1 - v * k)
            if h == hidden:
                break
            of_mean = by_mean * m * root_2 + 2 * by_var * v * b * root_2**2
            of_var = by_var * (v + m * m) * root_2**2
            on, off, slope = unit[2, h], unit[3, h], unit[4, h]
            first = of_mean * on + 2 * of_var * b * off
            second = of_mean * slope + of_var * (on - 2 * b * slope)
            for i in range(inputs):
                m, v = mean_1[h, i], variance_1[h, i]
                g = first * z[i] * root_1
                k = g * g - 2 * second * (z[i] * root_1) ** 2
                shift_1[h, i] = m / v + (g + m * k) / (1 - v * k)
                precision_1[h, i] = 1 / v + k / (1 - v * k)


def rows(inputs: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(inputs)
    x = rng.standard_normal((ROWS, inputs))
    return x, np.sin(x[:, 0]) + 0.3 * rng.standard_normal(ROWS)


def reference(hidden: int, inputs: int, x: np.ndarray, y: np.ndarray, order: np.ndarray) -> float:
    """Return the seconds of one update of the plain loop."""
    rng = np.random.default_rng(0)
    layers = [
        part
        for shape in Architecture(hidden, inputs).shapes
        for part in (rng.standard_normal(shape) / math.sqrt(shape[-1]), np.full(shape, 0.8))
    ]
    loop = lambda: plain(x, y, order, *layers, 0.8, NOISE_VARIANCE)  # noqa: E731
    return median_seconds(loop, 5) / len(order)


def update(params: NetworkSettings, x: np.ndarray, y: np.ndarray, order: np.ndarray) -> float:
    """Return the seconds of one update."""
    rng = np.random.default_rng(0)
    layout = Architecture(params.hidden, x.shape[1])
    arrays = network_states.first_arrays(layout, params, len(y), rng, None)
    settings = network_states.loop_settings(layout, params, len(y))
    return median_seconds(lambda: sweep(x, y, order, arrays, settings), 5) / len(order)


def main() -> None:
    from dataclasses import replace

    print(f"{'update':20}{'H':>5}{'d':>4}{'us':>9}{'units':>9}{'target us':>11}{'share':>8}")
    for (hidden, inputs), steps in STEPS.items():
        x, y = rows(inputs)
        order = np.random.default_rng(1).integers(ROWS, size=steps)
        unit = reference(hidden, inputs, x, y, order)
        print(f"{'plain loop':20}{hidden:5}{inputs:4}{unit * 1e6:9.2f}{1.0:9.2f}")
        for name, params in METHODS.items():
            seconds = update(replace(params, hidden=hidden), x, y, order)
            target = TARGETS[hidden, inputs] * (NOISE_SHARE if name == "dp_sep" else 1)
            print(
                f"{name:20}{hidden:5}{inputs:4}{seconds * 1e6:9.2f}{seconds / unit:9.2f}"
                f"{target:11.1f}{seconds * 1e6 / target:8.2f}"
            )


if __name__ == "__main__":
    main()
