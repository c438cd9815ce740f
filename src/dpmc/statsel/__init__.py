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
    "dpmc.statsel.lookup": ("mechanism", "population", "statistic"),
    "dpmc.statsel.ranking": ("rank",),
    "dpmc.statsel.releases": ("release",),
    "dpmc.statsel.sampling": ("reference", "sample"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: each brings compiled code along."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'dpmc.statsel' has no attribute {name!r}")
