"""Look a thing up by the name of its file: adding one adds a file and edits none."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import fields
from types import ModuleType
from typing import Any

from dpmc.types import DpmcError

KINDS = {
    "model": "dpmc.models",
    "method": "dpmc.methods",
    "data": "dpmc.data",
    "output": "dpmc.outputs",
    "accountant": "dpmc.privacy.accountants",
    "study": "dpmc.studies",
    # Under the name of a study stand the methods that it compares.
    "regression": "dpmc.linreg.methods",
    "regression_convergence": "dpmc.linreg.methods",
    "regression_time": "dpmc.linreg.methods",
    "mixture": "dpmc.ep.mixture_methods",
    "networks": "dpmc.ep.network_methods",
    "perturbation": "dpmc.ep.perturbations",
}


def names(kind: str) -> tuple[str, ...]:
    """Return the sorted names that `kind` offers.

    Raises
    ------
    DpmcError
        If `kind` is unknown.
    """
    package = importlib.import_module(_package(kind))
    found = (info.name for info in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def load(kind: str, name: str) -> ModuleType:
    """Return the module of the `kind` called `name`.

    Raises
    ------
    DpmcError
        If there is no such kind or name.
    """
    if name not in names(kind):
        raise DpmcError(f"{kind}: {name!r}, allowed {', '.join(names(kind))}")
    return importlib.import_module(f"{_package(kind)}.{name}")


def parameters(module: ModuleType, values: dict[str, Any]) -> Any:
    """Build the ``Params`` of `module` from `values`, naming a key that it does not have.

    Raises
    ------
    DpmcError
        If a key is unknown or missing, or a value is refused by ``Params``.
    """
    cls: Any = module.Params
    allowed = {entry.name for entry in fields(cls)}
    where = module.__name__.rpartition(".")[2]
    for key in values:
        if key not in allowed:
            raise DpmcError(f"{where}: parameter {key!r}, allowed {', '.join(sorted(allowed))}")
    try:
        return cls(**values)
    except TypeError as error:
        missing = str(error).partition("__init__() ")[2]
        raise DpmcError(f"{where}: {missing or error}") from None


def _package(kind: str) -> str:
    if kind not in KINDS:
        raise DpmcError(f"kind: {kind!r}, allowed {', '.join(KINDS)}")
    return KINDS[kind]
