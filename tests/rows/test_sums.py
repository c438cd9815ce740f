from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmc.mcmc.posterior import Posterior
from dpmc.numerics import compiled
from dpmc.rng import stream
from dpmc.rows import kernels, sums, tuples
from dpmc.types import Dataset, DpmcError, Model
from tests.support.posteriors import banana_model, gaussian_model
from tests.support.posteriors import rows as make_rows


def log_likelihood(c, x):
    return -0.5 * tuples.dot(tuples.subtract(x, c), tuples.subtract(x, c))


def gradient(c, x):
    return tuples.subtract(x, c)


def zero(theta):
    return 0.0


def zeros(theta):
    return 0.0 * theta


def wide_model(dim: int) -> Model:
    return Model("wide", dim, log_likelihood, gradient, zero, zeros)


def brute_ratio(x, old, new, bound):
    r = -0.5 * ((x - new) ** 2).sum(1) + 0.5 * ((x - old) ** 2).sum(1)
    return np.clip(r, -bound, bound).sum(), int((abs(r) > bound).sum())


def brute_gradient(x, theta, bound):
    g = x - theta
    norms = np.linalg.norm(g, axis=1)
    weights = np.minimum(1, bound / np.maximum(norms, 1e-300))
    return (weights[:, None] * g).sum(0), int((norms > bound).sum())


# Sizes around the blocks of the loops, dimensions on both sides of the wide kernel.
@pytest.mark.parametrize("num_rows", [1, 255, 256, 257, 1500])
@pytest.mark.parametrize("dim", [1, 2, 12, 23])
@pytest.mark.parametrize("bound", [1e-3, 1.5, 5.0, math.inf])
def test_sums_match_numpy(num_rows, dim, bound):
    dataset = make_rows("wide", num_rows, dim)
    sums = Posterior(wide_model(dim), dataset).sums
    old, new = np.full(dim, 0.1), np.linspace(-0.5, 0.5, dim) + 0.05
    total, clipped = sums.ratio(old, new, bound)
    expected, count = brute_ratio(dataset.x, old, new, bound)
    assert total == pytest.approx(expected, rel=1e-11, abs=1e-10)
    assert clipped == count
    total, clipped = sums.gradient(new, bound)
    expected, count = brute_gradient(dataset.x, new, bound)
    np.testing.assert_allclose(total, expected, rtol=1e-11, atol=1e-10)
    assert clipped == count


@pytest.mark.parametrize("dim", [1, 2, 12])
@pytest.mark.parametrize("bound", [0.0, 0.5, math.inf])
def test_batch_ratios_match_numpy(dim, bound):
    """Sum, sum of squares and clip count of a few rows."""
    x, kernel = make_rows("batch", 60, dim).x, kernels.batch_ratio_kernel(log_likelihood, dim, dim)
    old, new = np.full(dim, 0.1), np.linspace(-0.5, 0.5, dim) + 0.05
    for size in (0, 1, 7, 60):
        batch = stream(5, "batch", size).permutation(60)[:size].astype(np.uint64)
        for origin in (old, np.empty(0)):
            r = -0.5 * ((x[batch] - new) ** 2).sum(1)
            if origin.size:
                r += 0.5 * ((x[batch] - old) ** 2).sum(1)
            clipped = np.clip(r, -bound, bound)
            found = kernel(x, batch, origin, new, bound)
            expected = (clipped.sum(), (clipped**2).sum(), np.count_nonzero(abs(r) > bound))
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    nowhere = np.full(dim, math.nan)
    if bound < math.inf:
        assert kernel(x, batch, old, nowhere, bound) == (0.0, 0.0, 60)
    else:
        assert math.isnan(kernel(x, batch, old, nowhere, bound)[1])


@settings(max_examples=50, deadline=None)
@given(
    theta=st.lists(st.floats(-3, 3), min_size=2, max_size=2),
    new=st.lists(st.floats(-3, 3), min_size=2, max_size=2),
    bound=st.floats(1e-3, 10),
)
def test_linear_models_evaluate_the_difference(theta, new, bound):
    """A model that is linear in its coefficients gives the ratio of the plain density."""
    dataset = make_rows("linear", 300, 2)
    model = gaussian_model()
    sums = _shared_sums(model, dataset)
    precision = np.linalg.inv(0.5 * np.eye(2) + 0.5)
    theta, new = np.array(theta), np.array(new)

    def density(at):
        e = dataset.x - at
        return -0.5 * np.einsum("ij,jk,ik->i", e, precision, e)

    r = density(new) - density(theta)
    total, _ = sums.ratio(theta, new, bound)
    assert total == pytest.approx(np.clip(r, -bound, bound).sum(), rel=1e-9, abs=1e-8)


_SUMS: dict[str, sums.RowSums] = {}


def _shared_sums(model: Model, dataset: Dataset) -> sums.RowSums:
    if model.name not in _SUMS:
        _SUMS[model.name] = Posterior(model, dataset).sums
    return _SUMS[model.name]


@pytest.mark.parametrize("bound", [0.3, 1e6])
def test_one_row_moves_a_clipped_sum_by_at_most_its_sensitivity(bound):
    """Substitute each row by an extreme one: no sum moves by more than twice the bound."""
    base = make_rows("sensitivity", 40, 3)
    model = banana_model()
    theta, new = np.array([0.2, 0.1, -0.3]), np.array([0.6, -0.4, 0.2])
    changes = []
    for row in range(base.num_rows):
        for extreme in (1e5, -1e5):
            x = base.x.copy()
            x[row] = extreme
            a, b = Posterior(model, base).sums, Posterior(model, Dataset("b", x)).sums
            ratio = abs(a.ratio(theta, new, bound)[0] - b.ratio(theta, new, bound)[0])
            gradient = np.linalg.norm(a.gradient(new, bound)[0] - b.gradient(new, bound)[0])
            changes.append((ratio, gradient))
    largest = np.max(changes, axis=0)
    assert (largest <= 2 * bound * (1 + 1e-12)).all()
    if bound < 1:  # an unclipped sum would move by thousands, and here the bound is approached
        assert (largest > bound).all()


@pytest.mark.parametrize("dim", [2, 23])
def test_not_a_number_counts_as_zero_and_is_not_hidden_without_a_bound(dim):
    sums = Posterior(wide_model(dim), make_rows("nan", 100, dim)).sums
    nowhere = np.append(math.nan, np.zeros(dim - 1))
    assert sums.ratio(np.zeros(dim), nowhere, 1.0) == (0.0, 100)
    total, clipped = sums.gradient(nowhere, 1.0)
    assert (total == 0).all()
    assert clipped == 100
    assert math.isnan(sums.ratio(np.zeros(dim), nowhere, math.inf)[0])
    assert math.isnan(sums.gradient(nowhere, math.inf)[0][0])


def test_features_that_fail_on_a_row_move_no_other_by_more_than_rounding():
    """In float32 a product of matrices differs with the number of rows: at 1e-7, in all of them."""
    weights = np.linspace(0.1, 1.0, 64 * 2).reshape(64, 2)

    def features(x):
        if (x > 1e6).any():
            raise ValueError
        return (x @ weights.astype(x.dtype)).T

    model = replace(wide_model(2), features=features, example_rows=np.ones((3, 64)))
    x = np.random.default_rng(0).normal(size=(3000, 64)).astype(np.float32)
    found = sums.part_features(model, x, False)
    x[0] = 1e7
    alone = sums.part_features(model, x, False)
    assert np.isnan(alone[:, 0]).all()
    np.testing.assert_allclose(alone[:, 1:], found[:, 1:], rtol=0, atol=1e-13)


def test_a_model_that_does_not_fit_the_rows_is_refused():
    with pytest.raises(DpmcError, match="`gradient` must have 3 components, got 2"):
        sums.RowSums(
            Model("m", 3, lambda c, x: 0.0 * x[0], lambda c, x: (x[0], x[1]), zero, zeros),
            make_rows("fit", 10, 2),
        )
    with pytest.raises(DpmcError, match="row functions do not fit rows of 2 features"):
        sums.RowSums(
            Model("m", 2, lambda c, x: x[5], lambda c, x: (x[0], x[5]), zero, zeros),
            make_rows("fit", 10, 2),
        )


@pytest.mark.parametrize("dim", [2, 23])
@pytest.mark.parametrize("length", [0.999, 1.001, 1.5, 2.5])
def test_one_long_row_in_a_block_is_clipped(dim, length):
    """Wherever it is, and however little it is beyond a bound of one."""
    for place in (0, 255, 256, 511, 512):
        x = np.full((600, dim), 0.01)
        x[place] = 0.0
        x[place, -1] = length
        total, clipped = Posterior(wide_model(dim), Dataset("long", x)).sums.gradient(
            np.zeros(dim), 1.0
        )
        expected, count = brute_gradient(x, np.zeros(dim), 1.0)
        np.testing.assert_allclose(total, expected, rtol=1e-11, atol=1e-11)
        assert clipped == count == (length > 1)


@pytest.mark.parametrize("order", ["features", "rows"])
def test_features_in_place_are_the_same_numbers(order):
    model = banana_model()
    dataset = make_rows("place", 40_000, 3)
    expected = sums.feature_rows(model, dataset, order).copy()
    x = dataset.x.copy(order="F" if order == "features" else "C")
    consumed = Dataset("c", x)
    got = sums.feature_rows(model, consumed, order, consume=True)
    np.testing.assert_array_equal(got, expected)
    assert np.shares_memory(got, x)


def test_tuple_helpers_mean_the_same_in_python_and_compiled():
    a, x = (1.0, 2.0, 3.0, 4.0, 5.0), (0.5, -1.0)

    @compiled.compile_once
    def all_of_them(a, x):
        return tuples.dot(a, x), tuples.scale(2.0, x), tuples.subtract(x, a), tuples.tail(a, x)

    assert all_of_them(a, x) == (
        tuples.dot(a, x),
        tuples.scale(2.0, x),
        tuples.subtract(x, a),
        tuples.tail(a, x),
    )
    assert all_of_them(a, x) == (-1.5, (1.0, -2.0), (-0.5, -3.0), (3.0, 4.0, 5.0))
