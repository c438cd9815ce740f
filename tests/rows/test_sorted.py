"""Sums from sorted features against passes over the rows."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmc.models import banana, circle
from dpmc.rng import stream
from dpmc.rows.sorted import Column
from dpmc.rows.sums import RowSums
from dpmc.types import Dataset, DpmcError, Model
from tests.support.posteriors import banana_model, gaussian_model
from tests.support.posteriors import rows as make_rows

NUM_ROWS = 1000


def straight_banana() -> Model:
    return banana.build(banana.Params(0.0, [2.0, 0.5, 1.5, 1.5], 3.0))


MODELS = {
    "gaussian_mean": lambda: gaussian_model(4),
    "banana": lambda: banana_model(4),
    "straight banana": straight_banana,
    "circle": lambda: circle.build(circle.Params(0.04)),
}
# Components that change the weight of one feature when they move alone.
ALONE = {
    "gaussian_mean": range(4),
    "banana": (1, 2, 3),
    "straight banana": range(4),
    "circle": range(2),
}


@functools.cache
def sums_of(name: str) -> RowSums:
    width = 1 if name == "circle" else 4
    return RowSums(MODELS[name](), make_rows("sorted", NUM_ROWS, width))


def bounds_of(ratios: np.ndarray) -> list[float]:
    """Return bounds that clip all, many, few and no rows."""
    return [0.0, *np.quantile(abs(ratios), [0.0, 0.2, 0.9]) * (1 + 1e-9), 1e9, math.inf]


def ratios_of(sums: RowSums, theta: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return the ratio of each row, in plain Python."""
    row = sums.model.log_likelihood.py_func
    c = tuple(sums.coefficients(new) - sums.coefficients(theta))
    return np.array([row(c, x) for x in sums.features.T])


def moves_of(name: str, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return moves of one component, of a thousandth to a hundred."""
    rng = stream(0, "moves", name)
    moves = []
    for _ in range(count):
        theta = rng.standard_normal(sums_of(name).model.dim)
        new = theta.copy()
        new[rng.choice(ALONE[name])] += rng.choice([-1, 1]) * 10.0 ** rng.uniform(-3, 2)
        moves.append((theta, new))
    return moves


def disagreement(sums: RowSums, name: str) -> float:
    """Return how far sorted sums are from passes, in units of rounding; infinite if not used."""
    worst = 0.0
    for theta, new in moves_of(name, 20):
        ratios = ratios_of(sums, theta, new)
        for bound in bounds_of(ratios):
            found, plain = sums.ratio(theta, new, bound), sums.plain_ratio(theta, new, bound)
            used = found == (sums._sorted.ratio(theta, new, bound) if bound else plain)
            if not used or found[1] != plain[1]:
                return math.inf
            unit = np.minimum(abs(ratios), bound).sum() + abs(ratios).max()
            worst = max(worst, abs(found[0] - plain[0]) / unit)
    return worst / np.finfo(float).eps


@pytest.mark.parametrize("name", MODELS)
def test_moves_of_one_feature_have_the_sum_and_count_of_a_pass(name):
    assert disagreement(sums_of(name), name) < 1000


def one_row_twice(column: Column) -> Column:
    above = np.arange(len(column.before)) > column.middle
    return column._replace(before=column.before + above[:, None] * [column.values[-1], 0.0])


def one_row_for_another(column: Column) -> Column:
    return column._replace(values=np.append(column.values[:-1], column.values[-2]))


@pytest.mark.parametrize("name", ["gaussian_mean", "circle"])
@pytest.mark.parametrize("wrong", [one_row_twice, one_row_for_another])
def test_one_row_that_is_wrong_is_told_apart(name, wrong):
    sums = RowSums(sums_of(name).model, make_rows("sorted", NUM_ROWS, len(sums_of(name).features)))
    assert disagreement(sums, name) < 1000
    columns = sums._sorted._columns
    columns[:] = [(*wrong(Column(*column[:3])), column[3]) for column in columns]
    assert disagreement(sums, name) > 1e6


# At the origin all gradients are zero; near the mean of the squared radii half point inwards.
@pytest.mark.parametrize("theta", [[0.0, 0.0], [0.5, -0.3], [1.5, 1.0], [-40.0, 1e-9], [3e3, 4e3]])
def test_circle_gradients_have_the_sum_and_count_of_a_pass(theta):
    sums, theta = sums_of("circle"), np.array(theta)
    w = sums.features[0]
    norms = 0.16 * math.hypot(*theta) * abs(theta @ theta - w)
    for bound in bounds_of(norms):
        found, plain = sums.gradient(theta, bound), sums.plain_gradient(theta, bound)
        again = sums._sorted.gradient(theta, bound) if bound else plain
        assert again is not None
        np.testing.assert_array_equal(found[0], again[0])
        unit = np.minimum(norms, bound).sum() + norms.max()
        np.testing.assert_allclose(found[0], plain[0], rtol=0, atol=1e-12 * unit)
        assert found[1] == plain[1] == np.count_nonzero(norms > bound)


def line(coefficients, row):
    return coefficients[0] * row[0] + coefficients[1]


def line_gradient(coefficients, row):
    return (row[0] - coefficients[2],)


def coefficients(theta):
    return np.array([theta[0], -0.5 * theta[0] * theta[0], theta[0]])


def line_model(dim: int, gradient, **fields) -> Model:
    return Model(
        "line", dim, line, gradient, lambda theta: 0.0, lambda theta: 0.0 * theta,
        coefficients, **{"linear": True, "affine": True, **fields},
    )  # fmt: skip


ONE = line_model(1, line_gradient)


# Sums of integers and halves have no rounding, so that ties with the bound are exact.
@settings(max_examples=150, deadline=None)
@given(
    x=st.lists(st.integers(-20, 20), min_size=1, max_size=200),
    theta=st.integers(-5, 5),
    new=st.integers(-5, 5),
    twice=st.one_of(st.integers(1, 40), st.just(math.inf)),
)
def test_ties_with_the_bound_are_not_clipped(x, theta, new, twice):
    values, bound = np.array(x, dtype=float), twice / 2
    sums = RowSums(ONE, Dataset("ties", values[:, None]))
    ratios = (new - theta) * values - (new * new - theta * theta) / 2
    found = sums._sorted.ratio(np.array([float(theta)]), np.array([float(new)]), bound)
    assert found == (np.clip(ratios, -bound, bound).sum(), np.count_nonzero(abs(ratios) > bound))
    gradients = values - theta
    total, clipped = sums._sorted.gradient(np.array([float(theta)]), bound)
    assert total[0] == pytest.approx(np.clip(gradients, -bound, bound).sum(), rel=1e-12, abs=1e-9)
    assert clipped == np.count_nonzero(abs(gradients) > bound)


@pytest.mark.parametrize("num_rows", [1, 2, 63, 64, 65, 128, 129])
def test_every_number_of_clipped_rows_is_met(num_rows):
    values = make_rows("blocks", num_rows, 1).x
    sums = RowSums(ONE, Dataset("blocks", values))
    ratios = values - 0.6
    sizes = np.sort(abs(ratios[:, 0]))
    for count, bound in enumerate(np.append((sizes[1:] + sizes[:-1]) / 2, 9.0)[::-1]):
        total, clipped = sums._sorted.ratio(np.array([0.1]), np.array([1.1]), bound)
        assert total == pytest.approx(np.clip(ratios, -bound, bound).sum(), rel=1e-12, abs=1e-13)
        assert clipped == count


def test_only_features_that_moved_are_sorted_and_data_stay_as_they_were():
    dataset = make_rows("lazy", 500, 4)
    sums = RowSums(straight_banana(), dataset)
    rows, ratio, theta = dataset.x.copy(), sums.ratio, np.zeros(4)
    before = sums.features.copy()
    assert sums._sorted._columns == [None] * 4
    ratio(theta, np.array([0.0, 0.0, 1.0, 0.0]), 1.0)
    column = sums._sorted._columns[2]
    assert [c is None for c in sums._sorted._columns] == [True, True, False, True]
    assert sum(array.nbytes for array in column[:3]) <= 8.5 * dataset.num_rows + 32
    np.testing.assert_array_equal(sums.features, before)
    np.testing.assert_array_equal(dataset.x, rows)


def bent(coefficients, row):
    return coefficients[0] * row[0] * row[0]


def bent_gradient(coefficients, row):
    return (row[0] * row[0],)


def test_a_model_that_is_not_affine_is_refused():
    dataset = make_rows("bent", 10, 1)
    with pytest.raises(DpmcError, match="`linear` must be True with affine True"):
        line_model(1, line_gradient, linear=False)
    with pytest.raises(DpmcError, match="must be False, got True: bent_gradient is not affine"):
        RowSums(line_model(1, bent_gradient), dataset)
    model = Model(
        "bent", 1, bent, line_gradient, ONE.log_prior, ONE.log_prior_gradient, coefficients,
        linear=True, affine=True,
    )  # fmt: skip
    with pytest.raises(DpmcError, match="must be False, got True: bent is not affine"):
        RowSums(model, dataset)


def test_a_move_of_several_components_is_not_searched(monkeypatch):
    sums = RowSums(banana_model(), make_rows("several", 50, 3))

    def search(*_):
        raise AssertionError

    monkeypatch.setattr(sums._sorted, "_weight", search)
    theta = np.zeros(3)
    assert sums.ratio(theta, theta + 0.1, 1.0) == sums.plain_ratio(theta, theta + 0.1, 1.0)
    with pytest.raises(AssertionError):
        sums.ratio(theta, np.array([0.0, 0.0, 0.1]), 1.0)


@pytest.mark.parametrize("name", ["gaussian_mean", "banana", "straight banana"])
def test_other_moves_are_left_to_others(name):
    sums, rng = sums_of(name), stream(1, "moves", name)
    for _ in range(20):
        theta, new = rng.standard_normal((2, sums.model.dim))
        assert sums._sorted.ratio(theta, new, 1.0) is None
        assert sums._sorted.gradient(new, 1.0) is None
    if name == "banana":  # the first component bends the second
        assert sums._sorted.ratio(theta, theta + 0.5 * np.eye(4)[0], 1.0) is None


def turning_gradient(coefficients, row):
    return row[0], 1.0


def test_gradients_that_turn_are_passed_over():
    sums = RowSums(line_model(2, turning_gradient), make_rows("turning", 100, 1))
    theta = np.array([0.2, 0.0])
    assert sums._sorted.gradient(theta, 1.1) is None
    assert sums.gradient(theta, 1.1)[1] == np.count_nonzero(sums.features[0] ** 2 + 1 > 1.1**2)


def test_a_move_to_nowhere_and_one_that_is_no_number():
    sums = sums_of("circle")
    theta = np.array([0.3, 0.4])
    assert sums.ratio(theta, theta, 0.0) == (0.0, 0)
    assert sums.ratio(theta, theta[::-1].copy(), 0.1) == (0.0, 0)
    # No row has a number to contribute there: all count as zero, and without a bound as none.
    nowhere = np.array([math.nan, 0.4])
    assert sums.ratio(theta, nowhere, 1.0) == (0.0, NUM_ROWS)
    assert sums.gradient(nowhere, 1.0)[0].tolist() == [0.0, 0.0]
    assert math.isnan(sums.ratio(theta, nowhere, math.inf)[0])
    assert math.isnan(sums.gradient(nowhere, math.inf)[0][0])
