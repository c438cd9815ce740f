"""A statistic chosen on the first part, and the second release alone estimates.

[alparslan2023thesis, section 6.5] estimates from both releases where it describes the
procedure, and from y1 where it describes the experiment.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpmc import checks
from dpmc.statsel.selection import planning, scoring, two_stage
from dpmc.statsel.selection.planning import SelectionPlan
from dpmc.statsel.selection.task import SelectionResult, SelectionTask, powers, unselected
from dpmc.types import Array


@dataclass(frozen=True)
class Params:
    """How candidates are scored.

    Parameters
    ----------
    score : {"mean_inverse", "mean_log"}
        Posterior mean of 1 / F, as the thesis has it, or of -log F.
    select : bool
        Whether there is a choice: otherwise y1 has the fixed statistic.
    """

    score: str = "mean_inverse"
    select: bool = True

    def __post_init__(self) -> None:
        checks.one_of("score", self.score, planning.SCORES)


def prepare(task: SelectionTask, params: Params) -> SelectionPlan:
    """Return what is fixed before any record is read."""
    return task.plan(task.candidates if params.select else [task.first], params.score)


def run(plan: SelectionPlan, params: Params, x: Array, noise: Array) -> SelectionResult:
    """Estimate theta of several data sets."""
    outcome = two_stage.run(plan, x, noise)
    estimate = scoring.estimate(plan, None, outcome.second, outcome.selected)
    if not params.select:
        return unselected(estimate, plan.guarantee)
    return SelectionResult(estimate, powers(plan, outcome.selected), plan.guarantee)
