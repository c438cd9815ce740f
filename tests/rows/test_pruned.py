"""Sums that leave out the rows which cannot be clipped against passes over all rows."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from dpmc.numerics.compiled import compile_once
from dpmc.rng import stream
from dpmc.rows import pruned
from dpmc.rows.sums import RowSums
from dpmc.types import Dataset, Model
from tests.support.posteriors import banana_model, gaussian_model
from tests.support.posteriors import rows as make_rows

# Whole blocks and a part of one, in two chunks: the second has fewer blocks than the first.
CHUNK = 5 * pruned.BLOCK
NUM_ROWS = CHUNK + 3 * pruned.BLOCK + 77
MODELS = {
    "banana": lambda: banana_model(4),
    "banana of two": lambda: banana_model(2),
    "gaussian_mean": lambda: gaussian_model(4),
    "gaussian_mean of nine": lambda: gaussian_model(9),
}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(pruned, "CHUNK", CHUNK)


@functools.cache
def sums_of(name: str) -> RowSums:
    model = MODELS[name]()
    sums = RowSums(model, make_rows("inner", NUM_ROWS, model.dim))
    sums.gradient, sums.ratio  # noqa: B018 (compiled and put in order when asked for)
    return sums


def norms_of(sums: RowSums, theta: np.ndarray) -> np.ndarray:
    """Return the norm of the gradient of each row, in plain Python."""
    row, c = sums.model.gradient.py_func, tuple(sums.coefficients(theta))
    return np.array([math.hypot(*row(c, tuple(x))) for x in sums.features[:, ::5].T])


def bounds_of(sizes: np.ndarray) -> list[float]:
    """Return bounds that clip all, many, few and no rows."""
    return [0.0, *np.quantile(sizes, [0.01, 0.4, 0.9, 0.99, 1.0]) * 1.01, 1e9, math.inf]


def disagreement(sums: RowSums, name: str) -> float:
    """Return how far the sums are from passes, relative; infinite if a count differs."""
    worst, rng = 0.0, stream(2, "inner", name)
    for _ in range(6):
        theta = 0.3 * rng.standard_normal(sums.model.dim)
        new = theta + 10.0 ** rng.uniform(-3, 1) * rng.standard_normal(theta.size)
        for bound in bounds_of(norms_of(sums, theta)):
            pairs = [(sums.gradient(theta, bound), sums.plain_gradient(theta, bound))]
            reach = bound * math.dist(theta, new)
            pairs.append((sums.ratio(theta, new, reach), sums.plain_ratio(theta, new, reach)))
            for (total, clipped), (expected, count) in pairs:
                if clipped != count:
                    return math.inf
                size = np.max(np.abs(expected)) + 1.0
                worst = max(worst, float(np.max(np.abs(total - expected)) / size))
    return worst


@pytest.mark.parametrize("name", MODELS)
def test_sums_and_counts_are_those_of_a_pass(name):
    assert disagreement(sums_of(name), name) < 1e-10


def prefix_of_a_block_less(rows: tuple) -> tuple:
    centre, sizes, radii, prefix = rows
    return centre, sizes, radii, np.roll(prefix, 1, axis=1)


def radii_too_small(rows: tuple) -> tuple:
    centre, sizes, radii, prefix = rows
    return centre, sizes, 0.5 * radii, prefix


@pytest.mark.parametrize("name", ["banana of two", "gaussian_mean of nine"])
@pytest.mark.parametrize("wrong", [prefix_of_a_block_less, radii_too_small])
def test_wrong_sums_or_radii_are_told_apart(name, wrong):
    sums = RowSums(sums_of(name).model, make_rows("inner", NUM_ROWS, sums_of(name).model.dim))
    assert disagreement(sums, name) < 1e-10
    sums._inner._rows = wrong(sums._inner._rows)
    assert disagreement(sums, name) > 1e-6


def test_nothing_is_looked_at_where_nothing_is_clipped_and_all_where_all_is():
    sums = sums_of("gaussian_mean")
    inner, looked = sums._inner, []

    def outside(c: object, bound: float, first: int, last: int) -> tuple[list[float], int]:
        looked.append(last - first)
        return [0.0] * 4, 0

    inner.gradient(np.zeros(4), 1e6, outside)
    assert not looked
    inner.gradient(np.zeros(4), 0.0, outside)
    assert sum(looked) == NUM_ROWS


@pytest.mark.parametrize("theta", [np.nan, np.inf])
def test_what_diverged_is_not_finite_without_a_bound_and_clipped_with_one(theta):
    sums = sums_of("banana of two")
    nowhere = np.full(2, theta)
    assert not np.isfinite(sums.gradient(nowhere, math.inf)[0]).all()
    assert np.linalg.norm(sums.gradient(nowhere, 1.0)[0]) <= NUM_ROWS


def test_rows_that_are_not_ours_stay_in_their_order():
    def of_row(c, x):
        return c[0] * x[0] + c[1] * x[1]

    def gradient(c, x):
        return (x[0] - c[0], x[1] - c[1])

    model = Model(
        "lent",
        2,
        compile_once(of_row),
        compile_once(gradient),
        lambda theta: 0.0,
        np.zeros_like,
        linear=True,
        affine=True,
    )
    x = np.asfortranarray(make_rows("lent", 1000, 2).x)
    before = x.copy()
    sums = RowSums(model, Dataset("lent", x))
    sums.gradient(np.zeros(2), 1.0)
    np.testing.assert_array_equal(x, before)
    lent = RowSums(model, Dataset("lent", x), consume=True)
    lent.gradient(np.zeros(2), 1.0)
    assert np.shares_memory(lent.features, x)


def test_a_feature_that_is_constant_does_no_harm():
    x = make_rows("constant", 2000, 2).x
    x[:, 1] = 3.0
    sums = RowSums(gaussian_model(2), Dataset("constant", x))
    for bound in (0.5, 3.5, 100.0):
        found, expected = (f(np.zeros(2), bound) for f in (sums.gradient, sums.plain_gradient))
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-11)
        assert found[1] == expected[1]
