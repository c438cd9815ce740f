"""Statistic selection for Bayesian estimation under differential privacy.

``dpmc.statsel.rank(...)`` compares statistics by their Fisher information, ``release(...)``
releases one, ``sample(...)`` draws from the posterior given the release, and ``reference(...)``
computes that posterior by quadrature [alparslan2023thesis, chapters 4 and 6].
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmc.statsel.lookup import mechanism, population, statistic
    from dpmc.statsel.ranking import rank
    from dpmc.statsel.releases import release
    from dpmc.statsel.sampling import reference, sample

__all__ = ["mechanism", "population", "rank", "reference", "release", "sample", "statistic"]

_HOMES = {
    "mechanism": "dpmc.statsel.lookup",
    "population": "dpmc.statsel.lookup",
    "rank": "dpmc.statsel.ranking",
    "reference": "dpmc.statsel.sampling",
    "release": "dpmc.statsel.releases",
    "sample": "dpmc.statsel.sampling",
    "statistic": "dpmc.statsel.lookup",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: each brings compiled code along."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dpmc.statsel' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value  # the next look-up finds it here
    return value


def __dir__() -> list[str]:
    """Public names, whether imported yet or not."""
    return sorted(__all__)
