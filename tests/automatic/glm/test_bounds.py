"""Bounds on features and residuals: as tight as noise asks, and no tighter for large budgets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmc.automatic.glm import residuals, shape
from dpmc.automatic.glm.residuals import EDGES, SIZES, Residuals
from dpmc.automatic.glm.shape import Lengths

DIM = 4
# A fiftieth of the rows has features four times as long as the others.
LENGTHS = Lengths(np.array([0.98, 0.02]), math.sqrt(DIM) * np.array([1.0, 4.0]))


def reach(num_rows, mu):
    """Return R over sqrt(d), for residuals of variance 1."""
    return LENGTHS.bounds(num_rows, DIM, 1.0, lambda r, t: 2 * r / mu)[0] / math.sqrt(DIM)


def test_weights_leave_long_rows_whole_where_noise_allows_it(monkeypatch):
    found = [reach(100_000, mu) for mu in (0.005, 0.01, 0.05, 1.0)]
    assert found == sorted(found)
    assert found[0] < 2.0
    assert found[2] == pytest.approx(4.0)
    monkeypatch.setattr(shape, "MISSPECIFIED", 0.0)
    assert reach(100_000, 0.05) < 1.0


@pytest.mark.parametrize("mu", [0.3, 3.0])
def test_a_bound_on_residuals_grows_with_heavy_tails_alone(mu, monkeypatch):
    """Residuals of either sign, as of a normal distribution, and as of a Laplace one."""

    def usual(bound):
        density = math.exp(-(bound**2) / 2) * math.sqrt(2 / math.pi)
        return 0.0, 1e6 * (density - bound * math.erfc(bound / math.sqrt(2)))

    def bound(beyond):
        rows = -5e5 * np.diff(np.append(beyond(np.append(0.0, SIZES)), 0.0))
        sizes = Residuals.of(np.zeros(len(EDGES) + 1), 0.0, 1.0).sizes
        noise = 2 * math.sqrt(DIM) / mu
        return Residuals(rows, rows, sizes).bound(noise, DIM, 2.0, 64.0, usual)

    def normal_beyond(sizes):
        return np.array([math.erfc(size / math.sqrt(2)) for size in sizes])

    def laplace_beyond(sizes):
        return np.exp(-sizes)

    heavy = bound(laplace_beyond)
    assert heavy > 1.5 * bound(normal_beyond)
    monkeypatch.setattr(residuals, "ONE_WAY", 0.0)
    assert bound(laplace_beyond) < heavy
