"""What several noisy gradients say together, against the mode of a quadratic log-likelihood."""

from __future__ import annotations

import numpy as np
import pytest

from dpmc.automatic import knowledge
from dpmc.automatic.knowledge import Measurement
from dpmc.automatic.tail import Tail


def measured(dim: int, scale: float, place: float, curvature: float, noise: float) -> Measurement:
    """Return a gradient without error of a log-likelihood whose mode is at one."""
    theta, basis = np.full(dim, place), scale * np.eye(dim)
    score = basis.T @ (curvature * (1 - theta))
    return Measurement(theta, score, basis, noise, 10.0, 1.0, curvature * np.eye(dim))


@pytest.mark.parametrize("scale", [1 / 50, 1.0, 50.0])
def test_measurements_in_any_number_of_dimensions_agree_on_the_mode(scale):
    """The volumes of two whitenings differ by 50 to the power of 250: no float has it."""
    for dim in (2, 250):
        measurements = [measured(dim, scale, -1.0, 4.0, 0.5), measured(dim, 1.0, 0.5, 4.0, 0.5)]
        theta, basis = np.full(dim, 0.5), np.eye(dim)
        estimate = knowledge.combine(
            measurements,
            theta,
            basis,
            4 * np.eye(dim),
            0.0,
            np.zeros(dim),
            Tail.unknown(dim, 100, 2.0),
        )
        mode = np.linalg.solve(estimate.precision, estimate.weighted)
        np.testing.assert_allclose(theta + mode, 1.0, rtol=1e-9)
