"""Privacy: events of releases, accounting, calibration, and the noise itself.

A noise multiplier is the noise standard deviation over the sensitivity under the relation that
a guarantee names: SUBSTITUTION everywhere but in private regression, which knows both.
"""

import importlib
from typing import Any

from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.calibration import Plan, plan
from dpmc.privacy.clipped import Clipped, asserted
from dpmc.privacy.events import Releases, barker, gaussian, sampled_gaussian
from dpmc.privacy.ledger import Ledger

__all__ = [
    "Clipped",
    "GaussianBudget",
    "Ledger",
    "Plan",
    "Releases",
    "add_gaussian",
    "add_laplace",
    "asserted",
    "barker",
    "compose",
    "gaussian",
    "plan",
    "sampled_gaussian",
]

_HOMES = {"add_gaussian": "discrete", "add_laplace": "discrete", "compose": "joint"}


def __getattr__(name: str) -> Any:
    """Import a public name that takes long when it is first asked for."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"dpmc.privacy.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'dpmc.privacy' has no attribute {name!r}")
