"""Branch-free exponential and logarithms against `math`, for all floats."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from dpmc.numerics import vector_math
from dpmc.numerics.compiled import FASTMATH
from dpmc.rng import stream

TINY = 2.0**-1022


def arguments(name):
    rng = stream(0, "vector_math", name)
    wide = np.exp(rng.uniform(-700, 700, 20_000))
    near = rng.uniform(0.5, 2.0, 20_000)
    if name == "exp":
        return np.concatenate([rng.uniform(-707.6, 709.7, 20_000), rng.normal(size=20_000)])
    if name == "log1p":
        small = rng.choice([-1.0, 1.0], 20_000) * np.exp(rng.uniform(-80, -0.01, 20_000))
        return np.concatenate([wide, near - 1.0, small])
    return np.concatenate(
        [wide, near, TINY * rng.random(1000), 1.0 + 1e-13 * rng.normal(size=1000)]
    )


@pytest.mark.parametrize("name", ["exp", "log", "log1p"])
def test_errors_are_a_few_units_in_the_last_place(name):
    mine, exact = getattr(vector_math, name), getattr(math, name)
    worst = 0.0
    for x in arguments(name).tolist():
        expected = exact(x)
        if abs(expected) >= TINY:
            worst = max(worst, abs(mine(x) - expected) / abs(expected))
    assert worst < 4e-15


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("exp", math.nan, math.nan),
        ("exp", math.inf, math.inf),
        ("exp", -math.inf, 0.0),
        ("exp", -1e308, 0.0),
        ("exp", 1e308, math.inf),
        ("exp", 0.0, 1.0),
        ("exp", 710.0, math.inf),
        ("log", math.nan, math.nan),
        ("log", math.inf, math.inf),
        ("log", 0.0, -math.inf),
        ("log", -0.0, -math.inf),
        ("log", -1.0, math.nan),
        ("log", -math.inf, math.nan),
        ("log", 1.0, 0.0),
        ("log1p", math.nan, math.nan),
        ("log1p", math.inf, math.inf),
        ("log1p", -1.0, -math.inf),
        ("log1p", -1.5, math.nan),
        ("log1p", -math.inf, math.nan),
        ("log1p", 0.0, 0.0),
        ("log1p", 1e308, math.log(1e308)),
    ],
)
def test_ends(name, x, expected):
    value = getattr(vector_math, name)(x)
    assert value == pytest.approx(expected, rel=4e-15, abs=0, nan_ok=True)


@pytest.mark.parametrize("name", ["exp", "log", "log1p"])
def test_compiled_loops_give_the_same_numbers_in_vectors(name):
    function = getattr(vector_math, name)

    # As the project compiles loops over rows, but never taken from disk: code that is has no text.
    @numba.njit(fastmath=FASTMATH, error_model="numpy")
    def loop(x, out):
        for j in range(x.size):
            out[j] = function(x[j])

    x = np.concatenate([arguments(name), [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, -1e308]])
    out = np.empty_like(x)
    loop(x, out)
    one_by_one = np.array([function(value) for value in x.tolist()])
    assert np.allclose(out, one_by_one, rtol=1e-14, atol=0, equal_nan=True)
    assert "<4 x double>" in "".join(loop.inspect_llvm().values()) or (
        "<8 x double>" in "".join(loop.inspect_llvm().values())
    )


def worst_error_where_first_called(name):
    """Return relative errors of a function whose first caller may reorder sums.

    Of the function as it is, and of a copy that leaves its flags to the caller.
    """
    function = getattr(vector_math, name)
    options = {k: v for k, v in function.targetoptions.items() if k != "fastmath"}
    x = np.array([1e-20, 1e-9, 0.3, 7.25]) if name == "log1p" else np.array([0.3, 1.001, 7.25])
    exact = np.array([getattr(math, name)(value) for value in x.tolist()])
    errors = []
    for called in (function, numba.njit(**options)(function.py_func)):

        @numba.njit(fastmath=FASTMATH, error_model="numpy")
        def loop(x, out, called=called):
            for j in range(x.size):
                out[j] = called(x[j])

        out = np.empty_like(x)
        loop(x, out)
        errors.append(float(np.max(np.abs(out / exact - 1.0))))
    return errors


def test_flags_of_the_first_caller_change_nothing():
    # A process of its own: here the functions are compiled already.
    names = ["exp", "log", "log1p"]
    code = "import sys, test_vector_math as t\n"
    code += "for name in sys.argv[1:]: print(*t.worst_error_where_first_called(name))"
    run = subprocess.run(
        [sys.executable, "-c", code, *names],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    mine, left_open = np.loadtxt(run.stdout.splitlines(), unpack=True)
    assert np.all(mine < 4e-15)
    # The copy of `log` has no arithmetic of its own that could lose digits.
    assert left_open[names.index("exp")] > 1e-3
    assert left_open[names.index("log1p")] > 1e-3
