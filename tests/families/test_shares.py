"""Shares of responses: what one row may move them by, whatever it is."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpmc.families.shares import counted

END = st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 1)


def alone(low: float, high: float) -> np.ndarray:
    return counted(np.array([low]), np.array([high]), "replace").value


@given(END, END, END, END)
def test_a_row_in_place_of_another_moves_counts_by_the_sensitivity_at_most(a, b, c, d):
    moved = np.linalg.norm(alone(a, b) - alone(c, d))
    assert moved <= counted(np.zeros(1), np.ones(1), "replace").sensitivity + 1e-12


def test_two_rows_reach_the_sensitivity():
    moved = np.linalg.norm(alone(0.01, 0.01) - alone(0.99, 0.99))
    assert moved > 0.999 * counted(np.zeros(1), np.ones(1), "replace").sensitivity
