"""Checks of epsilon and delta, with each of their bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmc.types import DpmcError, check_delta, check_epsilon


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("infinite", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0, math.inf, -1.0, -math.inf, math.nan, "1", None, 2.0])
def test_epsilon_is_refused_outside_of_its_bounds(epsilon, zero, infinite):
    allowed = epsilon == 2 or (zero and epsilon == 0) or (infinite and epsilon == math.inf)
    if allowed:
        check_epsilon(epsilon, zero=zero, infinite=infinite)
        return
    text = f"{'at least 0' if zero else 'positive'}{'' if infinite else ' and finite'}"
    with pytest.raises(DpmcError, match=f"^`epsilon` must be {text}, got {epsilon!r}$"):
        check_epsilon(epsilon, zero=zero, infinite=infinite)


@pytest.mark.parametrize("delta", [0, 1, 0.0, 1.0, -0.1, math.nan, math.inf, None, "0.1"])
def test_delta_is_refused_outside_of_its_bounds(delta):
    with pytest.raises(DpmcError, match=rf"^`delta` must be in \(0, 1\), got {delta!r}$"):
        check_delta(delta)
    with pytest.raises(DpmcError, match=r"in \(0, 1\) for smooth_laplace, got "):
        check_delta(delta, "smooth_laplace")


def test_numbers_of_numpy_are_numbers():
    check_epsilon(np.float32(0.5))
    check_epsilon(np.int64(2))
    assert check_delta(np.float64(0.25)) == 0.25
