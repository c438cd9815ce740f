"""Monte Carlo inference under differential privacy.

``dpmc.fit("dp_hmc", model, data, epsilon=4, delta=1e-6, ...)`` samples a posterior
under a privacy budget; :mod:`dpmc.types` says what a model is.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmc.mcmc.fit import fit
    from dpmc.privacy.empirical import AuditResult, audit
    from dpmc.rows.tuples import dot, scale, subtract
    from dpmc.types import Budget, Dataset, DpmcError, Fit, Guarantee, Model

__all__ = [
    "AuditResult",
    "Budget",
    "Dataset",
    "DpmcError",
    "Fit",
    "Guarantee",
    "Model",
    "audit",
    "dot",
    "fit",
    "scale",
    "statsel",
    "subtract",
]

_HOMES = {
    "dpmc.mcmc.fit": ("fit",),
    "dpmc.privacy.empirical": ("AuditResult", "audit"),
    "dpmc.rows.tuples": ("dot", "scale", "subtract"),
    "dpmc.types": ("Budget", "Dataset", "DpmcError", "Fit", "Guarantee", "Model"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: the workflow needs only a few."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    if name == "statsel":
        return importlib.import_module("dpmc.statsel")
    raise AttributeError(f"module 'dpmc' has no attribute {name!r}")
