"""Products of rows in pieces against products by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dpmc.numerics.row_products import PIECE, times
from dpmc.rng import stream


@pytest.mark.parametrize(("count", "size", "width"), [(1, 1, 1), (5000, 10, 10), (333, 40, 3)])
def test_products_are_those_by_hand(count, size, width):
    rng = stream(0, "products", count)
    rows, matrix = rng.standard_normal((count, size)), rng.standard_normal((size, width))
    np.testing.assert_allclose(
        times(rows, matrix), np.einsum("ik,kl->il", rows, matrix), rtol=1e-10, atol=1e-12
    )


def test_no_rows_and_odd_numbers_of_them_are_multiplied():
    assert times(np.empty((0, 3)), np.eye(3)).shape == (0, 3)
    many = PIECE // 9 * 2 + 7
    np.testing.assert_array_equal(times(np.ones((many, 3)), np.eye(3)), 1.0)


def test_rows_that_are_not_finite_stay_among_themselves():
    rows = np.ones((5, 2))
    rows[3] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        found = times(rows, 2.0 * np.ones((2, 2)))
    assert np.isfinite(found).all(axis=1).tolist() == [True, True, True, False, True]
