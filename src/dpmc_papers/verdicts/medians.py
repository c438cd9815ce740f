"""Intervals of medians, by ranks: they hold for every law of a run.

Chains that are stuck or not have two humps, and what is known of a median then does not come from
its variance. Between which of the runs in order the median lies is a matter of coin tosses alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import bdtr

from dpmc.types import Array
from dpmc_papers.verdicts.scales import Scale

# Turns statistics of groups, each as often as one likes, into what is measured.
Of = Callable[[list[Array]], Array]


@dataclass(frozen=True)
class Sample:
    """Runs of one group.

    Parameters
    ----------
    values : ndarray of shape (n,)
        The metric of each run, ascending.
    replicates : int
        How many of them are independent: runs of one replicate share their start.
    """

    values: Array
    replicates: int

    @classmethod
    def of(cls, group: pd.DataFrame, metric: str) -> Sample:
        """The runs of a group that have the metric."""
        kept = group[group[metric].notna()]
        return cls(np.sort(kept[metric].to_numpy(float)), kept["replicate"].nunique())

    def interval(self, level: float) -> tuple[float, float]:
        """Ends of which each is beyond the median with probability `level` at most.

        The k-th smallest of n runs exceeds the median with the probability of fewer than k heads
        of n coins, at most. Runs of one replicate count as one.
        """
        n = self.replicates
        rank = int(np.searchsorted(bdtr(np.arange(n), n, 0.5), level, side="right"))
        if rank == 0:
            return -math.inf, math.inf
        place = (rank - 1) * len(self.values) // n
        return float(self.values[place]), float(self.values[-1 - place])


@dataclass(frozen=True)
class Box:
    """Interval of what is made of the medians of some groups.

    All medians are within their own intervals at once, at levels that add up to the one asked for;
    what is made of them is then between its values at the corners, if it rises or falls with each
    median. So the level holds whatever the laws are and however groups depend on each other.

    Parameters
    ----------
    samples : sequence of Sample
    of : callable
        What is made of the medians.
    scale : Scale
    """

    samples: Sequence[Sample]
    of: Of
    scale: Scale

    def __call__(self, level: float) -> tuple[float, float]:
        """Ends on the scale, each wrong with probability `level` at most."""
        ends = [sample.interval(level / len(self.samples)) for sample in self.samples]
        if any(math.isinf(low) for low, _ in ends):
            return -math.inf, math.inf
        corners = self.scale(self.of(list(np.array(list(itertools.product(*ends))).T)))
        return float(corners.min()), float(corners.max())
