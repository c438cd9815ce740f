"""One statistic of all records, released once: what an analyst without selection would do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpmc.statsel.selection import scoring, two_stage
from dpmc.statsel.selection.planning import SelectionPlan
from dpmc.statsel.selection.task import SelectionResult, SelectionTask, unselected
from dpmc.types import Array, NoParams

Params = NoParams


def prepare(task: SelectionTask, params: Params) -> SelectionPlan:
    """Return what is fixed before any record is read: all of them are in the second part."""
    return replace(task, sizes=(1, sum(task.sizes))).plan([task.first])


def run(plan: SelectionPlan, params: Params, x: Array, noise: Array) -> SelectionResult:
    """Estimate theta of several data sets, with the second column of the noise."""
    zero = np.zeros(len(x), dtype=np.int64)
    y = two_stage.released(plan.candidates, plan, x, zero, plan.distributions.scale, noise[:, 1])
    return unselected(scoring.estimate(plan, None, y, zero), plan.guarantee)
