"""One statistic of both parts, released apart: no selection, the records split all the same."""

from __future__ import annotations

from dataclasses import dataclass

from dpmc.statsel import initial_data
from dpmc.statsel.initial_data import Plan
from dpmc.statsel.selection_tasks import Found, Task, unselected
from dpmc.types import Array


@dataclass(frozen=True)
class Params:
    """Nothing is chosen."""


def prepare(task: Task, params: Params) -> Plan:
    """Return what is fixed before any record is read."""
    return task.plan([task.first])


def run(plan: Plan, params: Params, x: Array, noise: Array) -> Found:
    """Estimate theta of several data sets: see :func:`dpmc.statsel.selections.selected.run`."""
    return unselected(initial_data.run(plan, x, noise).estimate, plan.guarantee)
