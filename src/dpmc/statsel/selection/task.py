"""Inputs and results shared by all two-stage selection methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpmc.statsel.selection import planning
from dpmc.statsel.selection.planning import SelectionPlan
from dpmc.statsel.types import Mechanism, Population, Statistic
from dpmc.types import Array, Guarantee


@dataclass(frozen=True)
class SelectionTask:
    """Setting shared by all selection methods.

    Parameters
    ----------
    population : Population
        Distribution of one record.
    mechanism : Mechanism
        Noise of the release.
    epsilon : float
        Budget of either release.
    first : Statistic
        The statistic that is released where none is selected.
    candidates : tuple of Statistic
        Statistics of which one is selected.
    sizes : (int, int)
        Records of the first and of the second part.
    num_points : int
        Points of the grid of theta.
    """

    population: Population
    mechanism: Mechanism
    epsilon: float
    first: Statistic
    candidates: tuple[Statistic, ...]
    sizes: tuple[int, int]
    num_points: int

    def plan(self, candidates: Sequence[Statistic], score: str = "mean_inverse") -> SelectionPlan:
        """Return the plan that chooses among `candidates`."""
        return planning.plan(
            self.population,
            candidates,
            self.mechanism,
            self.epsilon,
            self.sizes,
            self.first,
            num_points=self.num_points,
            score=score,
        )


class SelectionResult(NamedTuple):
    """Estimates of R data sets.

    Parameters
    ----------
    estimate : ndarray of shape (R,)
        Posterior mean of theta.
    power : ndarray of shape (R,)
        Of the selected statistic; NaN where nothing is selected.
    guarantee : Guarantee
        Of all that is released of one data set.
    """

    estimate: Array
    power: Array
    guarantee: Guarantee


def unselected(estimate: Array, guarantee: Guarantee) -> SelectionResult:
    """Return estimates from statistics that are fixed in advance."""
    return SelectionResult(estimate, np.full(len(estimate), np.nan), guarantee)


def powers(plan: SelectionPlan, selected: npt.NDArray[np.int64]) -> Array:
    """Return the power of each selected statistic."""
    selected_powers: Array = np.array([statistic.power for statistic in plan.candidates])[selected]
    return selected_powers
