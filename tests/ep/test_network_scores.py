"""Scores of predictions, against the normal law of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from dpmc.ep.network.scores import scores


def test_scores_are_those_of_normal_predictions():
    """Mean log-density of the targets on their own scale, noise of the targets included."""
    mean, variance = np.array([0.3, -1.0, 2.0]), np.array([0.4, 0.1, 1.5])
    y = np.array([5.0, 2.5, 11.0])
    found = scores(mean, variance, 0.7, y, 5.0, 2.0)
    sd = 2.0 * np.sqrt(variance + 0.7)
    assert found.log_likelihood == pytest.approx(norm.logpdf(y, 5.0 + 2.0 * mean, sd).mean())
    assert found.rmse == pytest.approx(np.sqrt(np.mean((y - 5.0 - 2.0 * mean) ** 2)))
