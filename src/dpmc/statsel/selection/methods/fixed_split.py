"""One statistic of both parts, released apart: no selection, the records split all the same."""

from __future__ import annotations

from dpmc.statsel.selection import two_stage
from dpmc.statsel.selection.planning import SelectionPlan
from dpmc.statsel.selection.task import SelectionResult, SelectionTask, unselected
from dpmc.types import Array, NoParams

Params = NoParams


def prepare(task: SelectionTask, params: Params) -> SelectionPlan:
    """Return what is fixed before any record is read."""
    return task.plan([task.first])


def run(plan: SelectionPlan, params: Params, x: Array, noise: Array) -> SelectionResult:
    """Estimate theta of several data sets."""
    return unselected(two_stage.run(plan, x, noise).estimate, plan.guarantee)
