"""Sums over whitened rows against sums by hand, and the clip of every float."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpmc.automatic import rank_one, whitened
from dpmc.automatic.whitened import WhitenedRows
from dpmc.models import logistic, poisson
from dpmc.rng import stream
from dpmc.rows.vectors import clip_rows, pack, unpack
from dpmc.types import Dataset, Model
from tests.support import posteriors
from tests.support.clipped import values

ANY = hnp.arrays(np.float64, (4, 3), elements=st.floats(allow_nan=True, allow_infinity=True))


@given(ANY, st.floats(1e-6, 1e6))
def test_no_row_is_longer_than_the_bound(rows, bound):
    before = rows.copy()
    clip_rows(rows, bound)
    lengths = np.linalg.norm(rows, axis=1)
    assert np.isfinite(rows).all()
    assert (lengths <= bound * (1 + 1e-12)).all()
    inside = np.isfinite(before).all(axis=1)
    inside[inside] &= np.abs(before[inside]).max(axis=1) <= bound / 2
    np.testing.assert_array_equal(rows[inside], before[inside])
    assert not rows[np.isnan(before).any(axis=1)].any()


@pytest.fixture(scope="module")
def regression():
    rng = stream(0, "automatic", "whitened")
    features = rng.uniform(-1, 1, (700, 2))
    counts = rng.poisson(np.exp(0.3 + features @ [0.5, -0.4]))
    model = poisson.build(poisson.Params(2))
    x = np.column_stack([np.ones(700), features])
    return WhitenedRows(model, Dataset.of("rows", np.column_stack([features, counts]))), x, counts


THETA = np.array([0.2, -0.3, 0.7])
BASIS = np.array([[0.5, 0.1, 0.0], [0.0, 0.3, 0.2], [0.4, 0.0, 1.0]])


def test_squares_are_within_their_bound(regression):
    rows, x, counts = regression
    lengths = np.linalg.norm(((counts - np.exp(x @ THETA))[:, None] * x) @ BASIS, axis=1)
    bound = float(np.quantile(lengths, 0.7))
    found = rows.squares_sum(THETA, BASIS, bound)
    assert found.value == pytest.approx(np.sum(np.minimum(lengths, bound) ** 2))
    # A row that contributes nothing, and one that is far beyond the bound.
    assert found.sensitivity == pytest.approx(bound**2)


def test_gradients_are_those_of_a_poisson_regression(regression):
    rows, x, counts = regression
    by_hand = ((counts - np.exp(x @ THETA))[:, None] * x) @ BASIS
    lengths = np.linalg.norm(by_hand, axis=1)
    for share in (0.1, 0.5, 0.9):
        between = float(np.quantile(lengths, share))
        assert values(rows.gradients_beyond(THETA, BASIS, [between])) == {
            between: (lengths > between).sum()
        }
    bound = float(np.quantile(lengths, 0.8))
    clipped = by_hand * np.minimum(1, bound / lengths)[:, None]
    np.testing.assert_allclose(
        values(rows.gradient_sum(THETA, BASIS, bound)), clipped.sum(axis=0), rtol=1e-10
    )
    along = np.array([0.3, -0.2, 0.9])
    slopes = ((counts - np.exp(x @ THETA))[:, None] * x) @ along
    np.testing.assert_allclose(
        values(rows.slope_sum(THETA, along, 0.5)), np.clip(slopes, -0.5, 0.5).sum(), rtol=1e-10
    )


def test_curvatures_are_those_of_a_poisson_regression(regression):
    rows, x, _ = regression
    weighted = np.exp(x @ THETA)[:, None, None] * (x[:, :, None] * x[:, None, :])
    by_hand = BASIS.T @ weighted @ BASIS
    lengths = np.linalg.norm(by_hand, axis=(1, 2))
    for share in (0.1, 0.5, 0.9):
        between = float(np.quantile(lengths, share))
        assert values(rows.curvatures_beyond(THETA, BASIS, [between])) == {
            between: (lengths > between).sum()
        }
    bound = float(np.quantile(lengths, 0.7))
    clipped = by_hand * np.minimum(1, bound / lengths)[:, None, None]
    np.testing.assert_allclose(
        unpack(values(rows.curvature_sum(THETA, BASIS, bound)), 3), clipped.sum(axis=0), rtol=1e-6
    )


def test_large_gradients_are_counted_and_their_directions_added(regression):
    rows, x, counts = regression
    by_hand = ((counts - np.exp(x @ THETA))[:, None] * x) @ BASIS
    lengths = np.linalg.norm(by_hand, axis=1)
    low, high = (float(np.quantile(lengths, share)) for share in (0.8, 0.9))
    large = lengths > high
    beyond, far_beyond, total = values(rows.large_sum(THETA, BASIS, low, high))
    assert (beyond, far_beyond) == ((lengths > low).sum(), large.sum())
    np.testing.assert_allclose(
        total, (by_hand[large] / lengths[large, None]).sum(axis=0), rtol=1e-10
    )


def without_slope(dim: int) -> Model:
    """Return a Poisson regression whose curvatures are found by differences of whole gradients."""
    return dataclasses.replace(poisson.build(poisson.Params(dim - 1)), slope=None)


@pytest.mark.parametrize("dim", [1, 3, 12])
@pytest.mark.parametrize("bound", [1e-3, 0.2, 1e9])
def test_curvatures_from_slopes_are_those_from_gradients(dim, bound):
    rng = stream(1, "automatic", "whitened", dim)
    features = rng.uniform(-1, 1, (900, dim - 1))
    x = np.column_stack([features, rng.poisson(1.0, 900)])
    data = Dataset.of("rows", x)
    theta, basis = rng.normal(size=dim) / dim, rng.normal(size=(dim, dim)) / dim
    fast = WhitenedRows(poisson.build(poisson.Params(dim - 1)), data)
    slow = WhitenedRows(without_slope(dim), data)
    np.testing.assert_allclose(
        values(fast.curvature_sum(theta, basis, bound)),
        values(slow.curvature_sum(theta, basis, bound)),
        rtol=1e-5,
        atol=1e-6 * min(bound, 1.0) * 900,
    )
    assert values(fast.curvatures_beyond(theta, basis, [0.1, 0.5])) == values(
        slow.curvatures_beyond(theta, basis, [0.1, 0.5])
    )


@given(
    hnp.arrays(np.float64, (2, 3), elements=st.floats(allow_nan=True, allow_infinity=True)),
    st.floats(1e-6, 1e6),
)
def test_no_row_adds_more_curvature_than_the_bound(x, bound):
    rows = WhitenedRows(poisson.build(poisson.Params(2)), Dataset.of("rows", x, "zero"))
    for basis in (np.eye(3), BASIS * 1e3):
        found = values(rows.curvature_sum(THETA, basis, bound))
        assert np.linalg.norm(found) <= 2 * bound * (1 + 1e-12)


def test_curvature_that_is_not_clipped_is_found_out(monkeypatch):
    monkeypatch.setattr(rank_one, "clip_rows", lambda rows, bound: 0)
    x = np.array([[1e170, 1.0, 2.0]])
    rows = WhitenedRows(poisson.build(poisson.Params(2)), Dataset.of("rows", x))
    assert not np.linalg.norm(values(rows.curvature_sum(np.zeros(3), np.eye(3), 1.0))) <= 1.0


@pytest.mark.parametrize("limit", [0, 100])
def test_fused_sums_are_those_by_products(regression, monkeypatch, limit):
    monkeypatch.setattr(whitened, "FUSED", limit)
    rows, x, counts = regression
    by_hand = ((counts - np.exp(x @ THETA))[:, None] * x) @ BASIS
    lengths = np.linalg.norm(by_hand, axis=1)
    clipped = by_hand * np.minimum(1, 0.4 / lengths)[:, None]
    np.testing.assert_allclose(
        values(rows.gradient_sum(THETA, BASIS, 0.4)), clipped.sum(axis=0), rtol=1e-10
    )
    assert values(rows.gradients_beyond(THETA, BASIS, [0.4])) == {0.4: (lengths > 0.4).sum()}


@pytest.mark.parametrize("limit", [0, 100])
@given(hnp.arrays(np.float64, (2, 3), elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_no_row_adds_more_gradient_than_the_bound(limit, x):
    rows = WhitenedRows(poisson.build(poisson.Params(2)), Dataset.of("rows", x, "zero"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whitened, "FUSED", limit)
        for basis in (BASIS, np.ascontiguousarray(BASIS[:, :1])):
            found = values(rows.gradient_sum(THETA, basis, 0.3))
            assert np.linalg.norm(found) <= 2 * 0.3 * (1 + 1e-12)
            beyond = values(rows.gradients_beyond(THETA, basis, [1e-3, 1e3]))
            assert 0 <= beyond[1e3] <= beyond[1e-3] <= 2


@pytest.mark.parametrize("row", [(1e200, 1e200), (1.7e308, -1.7e308), (np.nan, np.inf), (0, 0)])
@pytest.mark.parametrize("threshold", [1e-30, 1.0, 1e30])
def test_no_row_adds_more_than_one_to_large_gradients(row, threshold):
    rows = WhitenedRows(posteriors.gaussian_model(), Dataset.of("rows", np.array([row]), "zero"))
    beyond, far_beyond, total = values(
        rows.large_sum(np.zeros(2), 3.0 * np.eye(2), threshold, 2 * threshold)
    )
    assert far_beyond in (0, beyond)
    assert beyond in (0, 1)
    assert np.linalg.norm(total) <= far_beyond * (1 + 1e-12)


def test_a_response_that_is_no_label_counts_as_nothing():
    model = logistic.build(logistic.Params(1))
    x = np.array([[0.5, 1.0], [0.2, 0.0], [0.3, 0.7]])
    rows = WhitenedRows(model, Dataset.of("rows", x))
    without = WhitenedRows(model, Dataset.of("rows", x[:2]))
    theta, basis = np.array([0.1, 0.2]), np.eye(2)
    np.testing.assert_array_equal(
        values(rows.gradient_sum(theta, basis, 1.0)),
        values(without.gradient_sum(theta, basis, 1.0)),
    )


@given(hnp.arrays(np.float64, (3, 3), elements=st.floats(-1e3, 1e3)))
def test_packing_keeps_symmetric_matrices_and_their_norm(matrix):
    symmetric = 0.5 * (matrix + matrix.T)
    np.testing.assert_allclose(unpack(pack(symmetric), 3), symmetric, rtol=1e-14, atol=1e-12)
    np.testing.assert_allclose(
        np.linalg.norm(pack(symmetric)), np.linalg.norm(symmetric), rtol=1e-12, atol=1e-12
    )


def test_tempering_scales_what_a_row_contributes(regression):
    data = posteriors.rows("tempered", 50, 2)
    whole = WhitenedRows(posteriors.gaussian_model(2), data)
    tenth = WhitenedRows(posteriors.gaussian_model(2, 0.1), data)
    theta, basis = np.array([0.1, 0.2]), np.eye(2)
    np.testing.assert_allclose(
        values(tenth.gradient_sum(theta, basis, 1e6)),
        0.1 * values(whole.gradient_sum(theta, basis, 1e6)),
    )
