"""Monte Carlo inference under differential privacy.

``dpmc.fit(model, rows, epsilon=1, delta=1e-6)`` samples a posterior under a privacy budget;
:mod:`dpmc.types` says what a model is, and `dpmc.models` has some.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmc import priors, statsel
    from dpmc.autodiff.tracing import where
    from dpmc.comparison import Comparison, compare
    from dpmc.families.linear_regression import linear_regression
    from dpmc.families.mixture import mixture
    from dpmc.families.network import network
    from dpmc.families.regression import regression
    from dpmc.families.select_statistic import select_statistic
    from dpmc.fits import Fit, Summary
    from dpmc.fitting import PosteriorWarning, fit, methods
    from dpmc.modelling import model
    from dpmc.planning import plan
    from dpmc.privacy.empirical import AuditResult, audit
    from dpmc.privacy.one_run import audit_one_run
    from dpmc.releases import Release, from_release, mechanisms
    from dpmc.session import Session
    from dpmc.shards.federation import federation
    from dpmc.shards.rows import open_rows
    from dpmc.types import Dataset, DpmcError, Guarantee, Model

    __version__: str

__all__ = [
    "AuditResult",
    "Comparison",
    "Dataset",
    "DpmcError",
    "Fit",
    "Guarantee",
    "Model",
    "PosteriorWarning",
    "Release",
    "Session",
    "Summary",
    "audit",
    "audit_one_run",
    "compare",
    "federation",
    "fit",
    "from_release",
    "linear_regression",
    "mechanisms",
    "methods",
    "mixture",
    "model",
    "network",
    "open_rows",
    "plan",
    "priors",
    "regression",
    "select_statistic",
    "statsel",
    "where",
]

_HOMES = {
    "AuditResult": "dpmc.privacy.empirical",
    "Comparison": "dpmc.comparison",
    "Dataset": "dpmc.types",
    "DpmcError": "dpmc.types",
    "Fit": "dpmc.fits",
    "Guarantee": "dpmc.types",
    "Model": "dpmc.types",
    "PosteriorWarning": "dpmc.fitting",
    "Release": "dpmc.releases",
    "Session": "dpmc.session",
    "Summary": "dpmc.fits",
    "audit": "dpmc.privacy.empirical",
    "audit_one_run": "dpmc.privacy.one_run",
    "compare": "dpmc.comparison",
    "federation": "dpmc.shards.federation",
    "fit": "dpmc.fitting",
    "from_release": "dpmc.releases",
    "linear_regression": "dpmc.families.linear_regression",
    "methods": "dpmc.fitting",
    "mixture": "dpmc.families.mixture",
    "model": "dpmc.modelling",
    "network": "dpmc.families.network",
    "open_rows": "dpmc.shards.rows",
    "plan": "dpmc.planning",
    "regression": "dpmc.families.regression",
    "select_statistic": "dpmc.families.select_statistic",
    "where": "dpmc.autodiff.tracing",
}

_MODULES = {
    "mechanisms": "dpmc.releases.mechanisms",
    "priors": "dpmc.priors",
    "statsel": "dpmc.statsel",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: the workflow needs only a few."""
    value: Any
    if name == "__version__":
        value = importlib.import_module("importlib.metadata").version("dpmc")
    elif name in _MODULES:
        value = importlib.import_module(_MODULES[name])
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'dpmc' has no attribute {name!r}")
    globals()[name] = value  # the next look-up finds it here
    return value


def __dir__() -> list[str]:
    """Public names, whether imported yet or not."""
    return sorted([*__all__, "__version__"])
