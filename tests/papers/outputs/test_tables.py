"""Tables of comparisons: quartiles of metrics that are infinite where a chain stands still."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpmc_papers.outputs._facts import number_text
from dpmc_papers.outputs._tables import quartiles

RUNS = {
    "finite": [1.0, 2.0, 3.0, 4.0],
    "two stand still": [1.0, 2.0, np.inf, np.inf],
    "one stands still": [1.0, 2.0, 3.0, np.inf],
    "none moves": [np.inf] * 4,
}


def test_quartiles_between_infinite_values_are_infinite():
    values = pd.Series([v for runs in RUNS.values() for v in runs])
    groups = values.groupby(np.repeat(list(RUNS), 4), sort=False)
    found = [quartiles(groups, share).tolist() for share in (0.25, 0.5, 0.75)]
    assert found[0] == [1.75, 1.75, 1.75, np.inf]
    assert found[1] == [2.5, np.inf, 2.5, np.inf]
    assert found[2] == [3.25, np.inf, np.inf, np.inf]


def test_numbers_that_are_none_have_a_text():
    assert [number_text(v) for v in (np.nan, np.inf, 2.0, 0.12345)] == ["–", "∞", "2", "0.123"]
