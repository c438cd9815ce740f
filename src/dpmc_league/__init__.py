"""Tasks with known posteriors, methods that compete on them, and what their draws are worth.

`task` gives rows, a model and exact draws; a method returns draws and a ledger, and is scored
from these alone (:mod:`dpmc_league.gate`).
"""

from dpmc_league.score import score
from dpmc_league.task import task, tasks

__all__ = ["score", "task", "tasks"]
