"""Curves over epsilon of the iterations that a budget affords, by several accountants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpmc import registry
from dpmc.privacy import accounting
from dpmc.types import Budget, DpmcError

COLUMNS = {
    "label": "str",
    "method": "str",
    "accountant": "str",
    "upper_bound": "bool",
    "epsilon": "float64",
    "delta": "float64",
    "num_iterations": "int64",
}


def curve(settings: Mapping[str, Any]) -> pd.DataFrame:
    """Return the number of iterations of one chain that each accountant allows.

    Parameters
    ----------
    settings : mapping
        ``delta``, ``num_rows``, ``epsilons`` and ``settings``: by label, a ``method``
        with its ``params``, a list of ``accountants`` and, in place of those above, its
        own ``epsilons``.

    Returns
    -------
    pandas.DataFrame
        Columns and types of ``COLUMNS``, one row per label, accountant and epsilon in the
        order given; 0 iterations where the budget does not last for one. `upper_bound`
        tells whether the accountant proves that the budget is kept.

    Raises
    ------
    DpmcError
        If a method, parameter or accountant is unknown or refused, a method has no
        privacy, or an accountant does not know what it releases.
    """
    rows = []
    for label, entry in settings["settings"].items():
        module = registry.load("method", entry["method"])
        params = registry.parameters(module, dict(entry["params"]))
        releases = module.releases(params, settings["num_rows"])
        if releases is None:
            raise DpmcError(f"accounting of {label}: {entry['method']}, allowed a private method")
        for name in entry["accountants"]:
            upper_bound = bool(accounting.load(name).UPPER_BOUND)
            for epsilon in entry.get("epsilons", settings["epsilons"]):
                budget = Budget(float(epsilon), float(settings["delta"]), name)
                count = accounting.max_iterations(releases, budget, 1)
                spent = (budget.epsilon, budget.delta, count)
                rows.append((label, entry["method"], name, upper_bound, *spent))
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)
