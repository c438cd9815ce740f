"""What robust covariances and checks of any likelihood release, on neighbouring rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmc.automatic.whitened import WhitenedRows
from dpmc.families import shares
from dpmc.rng import stream
from dpmc.types import Dataset
from tests.support.posteriors import gaussian_model

RELATIONS = ["replace", "add_remove"]
BOUND = 2.0
# The first two are as unlike as rows can be; the others are bounded by nothing.
LAST = [(50.0, 50.0), (50.0, -50.0), (1e300, -1e300), (1e-300, 0.0), (math.nan, math.inf)]
# Ends of probabilities: within bins, at their edges, over several, and none at all.
ENDS = [(0.02, 0.02), (0.6, 0.6), (0.25, 0.25), (0.0, 1.0), (1.0, 1.0), (0.0, 0.05), (0.9, 0.2)]


def largest_move(release, rows, lasts, relation):
    """Largest change of a release between neighbours, over the sensitivity that it states."""
    alone = [] if relation == "replace" else [release(rows, relation)]
    found = [release(np.vstack([rows, last]), relation) for last in lasts]
    pairs = [(one, other) for one in found for other in alone or found]
    return max(float(np.linalg.norm(a.value - b.value)) / a.sensitivity for a, b in pairs)


def outer(rows, relation):
    dataset = Dataset.of("rows", rows, "zero")
    sums = WhitenedRows(gaussian_model(), dataset, relation)
    return sums.outer_sum(np.zeros(2), np.eye(2), BOUND)


def counted(rows, relation):
    return shares.counted(rows[:, 0], rows[:, 1], relation)


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_row_moves_outer_products_by_what_is_stated_and_no_more(relation):
    rows = stream(0, "automatic", "outer").standard_normal((40, 2))
    # Less would be paid for a bound that nothing comes near.
    assert 0.99 < largest_move(outer, rows, LAST, relation) <= 1 + 1e-9


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_row_moves_counts_of_responses_by_what_is_stated_and_no_more(relation):
    ends = np.sort(stream(0, "families", "ends").uniform(size=(40, 2)), axis=1)
    assert 0.99 < largest_move(counted, ends, ENDS, relation) <= 1 + 1e-9


@pytest.mark.parametrize("ends", ENDS)
def test_a_row_counts_once_or_not_at_all(ends):
    low, high = ends
    number = counted(np.array([ends]), "replace").value.sum()
    assert number == pytest.approx(float(low <= high), abs=1e-12)
