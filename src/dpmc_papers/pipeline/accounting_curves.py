"""Curves over epsilon of the iterations that a budget affords, by several accountants."""

from __future__ import annotations

import pandas as pd

from dpmc import registry
from dpmc.privacy import accounting
from dpmc.types import Budget, DpmcError
from dpmc_papers.config.settings import Curves

COLUMNS = {
    "label": "str",
    "method": "str",
    "accountant": "str",
    "upper_bound": "bool",
    "epsilon": "float64",
    "delta": "float64",
    "num_iterations": "int64",
}


def curve(setup: Curves) -> pd.DataFrame:
    """Number of iterations of one chain that each accountant allows.

    Columns and types are ``COLUMNS``, one row per label, accountant and epsilon in the order given;
    0 iterations where the budget does not last for one. `upper_bound` tells whether the accountant
    proves that the budget is kept.
    """
    rows = []
    for label, entry in setup.settings.items():
        module = registry.load("method", entry.method)
        params = registry.parameters(module, entry.params)
        releases = module.releases(params, setup.num_rows)
        if releases is None:
            raise DpmcError(f"`method` of {label} must be private, got {entry.method!r}")
        for name in entry.accountants:
            upper_bound = bool(accounting.load(name).UPPER_BOUND)
            for epsilon in entry.epsilons or setup.epsilons:
                budget = Budget(epsilon, setup.delta, name)
                count = accounting.max_iterations(releases, budget, 1)
                spent = (budget.epsilon, budget.delta, count)
                rows.append((label, entry.method, name, upper_bound, *spent))
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)
