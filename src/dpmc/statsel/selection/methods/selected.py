"""A statistic chosen on the first part, and both releases estimate [thesis, section 6.5]."""

from __future__ import annotations

from dataclasses import dataclass

from dpmc import checks
from dpmc.statsel.selection import planning, two_stage
from dpmc.statsel.selection.planning import SelectionPlan
from dpmc.statsel.selection.task import SelectionResult, SelectionTask, powers
from dpmc.types import Array


@dataclass(frozen=True)
class Params:
    """How candidates are scored.

    Parameters
    ----------
    score : {"mean_inverse", "mean_log"}
        Posterior mean of 1 / F, as the thesis has it, or of -log F, which is finite for
        every candidate.
    """

    score: str = "mean_inverse"

    def __post_init__(self) -> None:
        checks.one_of("score", self.score, planning.SCORES)


def prepare(task: SelectionTask, params: Params) -> SelectionPlan:
    """Return what is fixed before any record is read."""
    return task.plan(task.candidates, params.score)


def run(plan: SelectionPlan, params: Params, x: Array, noise: Array) -> SelectionResult:
    """Estimate theta of several data sets."""
    outcome = two_stage.run(plan, x, noise)
    return SelectionResult(outcome.estimate, powers(plan, outcome.selected), plan.guarantee)
