"""Checks of epsilon and delta, with each of their bounds, and how a model is sent."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from numba import cloudpickle

from dpmc.models import logistic
from dpmc.rows.sums import RowSums
from dpmc.types import Dataset, DpmcError, check_delta, check_epsilon


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


def test_a_model_can_be_sent():
    """joblib, Dask and Ray send what they are given by cloudpickle."""
    model = logistic.build(logistic.Params(2))
    sent = pickle.loads(cloudpickle.dumps(model))
    rows = np.array([[0.5, -0.5, 1.0], [0.1, 0.2, 0.0]])
    dataset, theta = Dataset.of("rows", rows), np.array([0.3, -0.2, 0.1])
    there, here = (RowSums(each, dataset).gradient(theta, 1.0) for each in (sent, model))
    np.testing.assert_array_equal(there[0], here[0])
    assert there[1] == here[1]
