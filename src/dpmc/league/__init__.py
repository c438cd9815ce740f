"""Tasks with known posteriors, methods that compete on them, and what their draws are worth.

`dpmc.task` gives rows, a model and exact draws; a method returns draws and a ledger, and is scored
from these alone (:mod:`dpmc.league.gate`).
"""
