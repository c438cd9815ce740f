"""Methods that estimate theta from two releases; a new one is an entry of ``TABLE``.

``prepare(task, params)`` gives the plan, everything that is fixed before any record is read, and
``run(plan, params, x, noise)`` the estimates of R data sets: `x` has shape (R, n), the records of
the first part first, and `noise` shape (R, 2), of both releases in units of their scales.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dpmc import checks
from dpmc.statsel.selection import planning, two_stage
from dpmc.statsel.selection.planning import Indices, SelectionPlan
from dpmc.statsel.types import Mechanism, Population, Statistic
from dpmc.types import Array, Guarantee, NoParams


@dataclass(frozen=True)
class SelectionTask:
    """Setting shared by all selection methods."""

    population: Population  # Distribution of one record
    mechanism: Mechanism  # Noise of the release
    epsilon: float  # Budget of either release
    first: Statistic  # The statistic that is released where none is selected
    candidates: tuple[Statistic, ...]  # Statistics of which one is selected
    sizes: tuple[int, int]  # Records of the first and of the second part
    num_points: int  # Points of the grid of theta

    def plan(self, candidates: Sequence[Statistic], score: str = "mean_inverse") -> SelectionPlan:
        """Plan that chooses among `candidates`."""
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
    """Estimates of R data sets."""

    estimate: Array  # (R,): posterior mean of theta
    power: Array  # (R,): power of the selected statistic; NaN where nothing is selected
    guarantee: Guarantee  # Guarantee of all that is released of one data set


@dataclass(frozen=True)
class SelectionMethod:
    """A method, with its parameters."""

    name: str
    Params: type[Any]
    prepare: Callable[[SelectionTask, Any], SelectionPlan]
    run: Callable[[SelectionPlan, Any, Array, Array], SelectionResult]


@dataclass(frozen=True)
class SelectedParams:
    """Score of the candidates.

    Parameters
    ----------
    score : {"mean_inverse", "mean_log"}
        Posterior mean of 1 / F, as the thesis has it, or of -log F, which is finite for
        every candidate.
    """

    score: str = "mean_inverse"

    def __post_init__(self) -> None:
        checks.one_of("score", self.score, planning.SCORES)


@dataclass(frozen=True)
class SecondOnlyParams(SelectedParams):
    """Score of the candidates, and whether there is a choice.

    Parameters
    ----------
    score : {"mean_inverse", "mean_log"}
        See `SelectedParams`.
    select : bool
        Whether there is a choice: otherwise y1 has the fixed statistic.
    """

    select: bool = True


def _prepare_all(task: SelectionTask, params: NoParams) -> SelectionPlan:
    return replace(task, sizes=(1, sum(task.sizes))).plan([task.first])


def _run_all(plan: SelectionPlan, params: NoParams, x: Array, noise: Array) -> SelectionResult:
    """Estimates from one release of all records, with the second column of the noise."""
    zero = np.zeros(len(x), dtype=np.int64)
    means = two_stage.exact_means(plan.candidates, plan, x, zero)
    y = means + plan.distributions.scale[zero] * noise[:, 1]
    return _unselected(plan, two_stage.estimate(plan, None, y, zero))


def _prepare_split(task: SelectionTask, params: NoParams) -> SelectionPlan:
    return task.plan([task.first])


def _run_split(plan: SelectionPlan, params: NoParams, x: Array, noise: Array) -> SelectionResult:
    return _unselected(plan, two_stage.run(plan, x, noise).estimate)


def _prepare_selected(task: SelectionTask, params: SelectedParams) -> SelectionPlan:
    return task.plan(task.candidates, params.score)


def _run_selected(
    plan: SelectionPlan, params: SelectedParams, x: Array, noise: Array
) -> SelectionResult:
    outcome = two_stage.run(plan, x, noise)
    return _selected(plan, outcome.estimate, outcome.selected)


def _prepare_second(task: SelectionTask, params: SecondOnlyParams) -> SelectionPlan:
    return task.plan(task.candidates if params.select else [task.first], params.score)


def _run_second(
    plan: SelectionPlan, params: SecondOnlyParams, x: Array, noise: Array
) -> SelectionResult:
    outcome = two_stage.run(plan, x, noise)
    estimate = two_stage.estimate(plan, None, outcome.second, outcome.selected)
    return (
        _selected(plan, estimate, outcome.selected)
        if params.select
        else _unselected(plan, estimate)
    )


def _unselected(plan: SelectionPlan, estimate: Array) -> SelectionResult:
    return SelectionResult(estimate, np.full(len(estimate), np.nan), plan.guarantee)


def _selected(plan: SelectionPlan, estimate: Array, selected: Indices) -> SelectionResult:
    powers = np.array([statistic.power for statistic in plan.candidates])
    return SelectionResult(estimate, powers[selected], plan.guarantee)


TABLE = {
    method.name: method
    for method in (
        # One statistic of all records, released once: what an analyst would do without selection.
        SelectionMethod("fixed_all", NoParams, _prepare_all, _run_all),
        # One statistic of both parts, released apart: the records split all the same.
        SelectionMethod("fixed_split", NoParams, _prepare_split, _run_split),
        # A statistic chosen on the first part, and both releases estimate [thesis, section 6.5].
        SelectionMethod("selected", SelectedParams, _prepare_selected, _run_selected),
        # The second release alone estimates: [alparslan2023thesis, section 6.5] estimates from both
        # where it describes the procedure, and from y1 where it describes the experiment.
        SelectionMethod("second_only", SecondOnlyParams, _prepare_second, _run_second),
    )
}
