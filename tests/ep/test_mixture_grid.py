"""Steps on a grid: sums are integers of it, and no row moves them by more than it may."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmc.ep.mixture.engine import _Loop
from dpmc.ep.mixture.model import MixtureModel
from dpmc.ep.mixture.settings import MixtureSettings
from dpmc.privacy.discrete import SLACK

MODEL = MixtureModel.isotropic(1.0, [[-1.0, 0.0], [1.0, 0.0]], precision=0.1)
GRID, CLIP, STEP = 2.0**-20, 0.5, 0.01
SETTINGS = MixtureSettings(
    num_passes=1,
    step=STEP,
    clip="joint",
    clip_bound=CLIP,
    noise_multiplier=1.0,
    order="independent",
    repair="noise",
)


def after(row, clip=CLIP):
    """Return the state after one step from a row, as one vector, with no noise."""
    loop = _Loop(np.array([[0.3, 0.1], row]), MODEL, SETTINGS)
    loop.state.h[:] = 0.123
    loop.state.precision[:] = np.eye(2)
    loop.loop_settings = loop.loop_settings._replace(clip_bound=clip)
    order, noise = np.array([1]), np.zeros((1, MODEL.num_coordinates))
    assert loop(order, noise, GRID) == 1
    return loop.state.h.ravel(), loop.state.precision


@pytest.mark.parametrize("row", [(1e300, 0.0), (-1e8, 1e8), (0.0, 0.0), (1.7e308, -1.7e308)])
def test_a_row_moves_a_step_by_no_more_than_its_sensitivity(row):
    """And a clip bound that is ten times as wide, the broken variant, is noticed."""
    h, precision = after(row)
    np.testing.assert_array_equal(np.rint(h / GRID), h / GRID)
    other_h, other = after((0.2, -0.4))
    bound = 2 * STEP * CLIP * (1 + SLACK) + GRID * math.sqrt(MODEL.num_coordinates)
    assert math.hypot(np.linalg.norm(h - other_h), np.linalg.norm(precision - other)) <= bound


def test_a_wider_clip_is_noticed():
    h, precision = after((-1e8, 1e8), 100.0)
    other_h, other = after((0.2, -0.4))
    bound = 2 * STEP * CLIP * (1 + SLACK) + GRID * math.sqrt(MODEL.num_coordinates)
    assert math.hypot(np.linalg.norm(h - other_h), np.linalg.norm(precision - other)) > bound
