"""Checks of epsilon and delta, with each of their bounds, and how a model is sent."""

from __future__ import annotations

import pickle

import numpy as np
from numba import cloudpickle

from dpmc.models import logistic
from dpmc.rows.sums import RowSums
from dpmc.types import Dataset


def test_a_model_can_be_sent():
    """joblib, Dask and Ray send what they are given by cloudpickle."""
    model = logistic.build(logistic.Params(2))
    sent = pickle.loads(cloudpickle.dumps(model))
    rows = np.array([[0.5, -0.5, 1.0], [0.1, 0.2, 0.0]])
    dataset, theta = Dataset.of("rows", rows), np.array([0.3, -0.2, 0.1])
    there, here = (RowSums(each, dataset).gradient(theta, 1.0) for each in (sent, model))
    np.testing.assert_array_equal(there[0], here[0])
    assert there[1] == here[1]
