"""Look a thing up by the name of its file: adding one adds a file and edits none."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from dataclasses import fields
from types import ModuleType
from typing import Any

from dpmc.numerics.source_digest import module_names, module_tree
from dpmc.types import DpmcError

KINDS = {
    "model": "dpmc.models",
    "method": "dpmc.mcmc.methods",
    "data": "dpmc.experiments.data",
    "output": "dpmc.experiments.outputs",
    "accountant": "dpmc.privacy.accountants",
    "study": "dpmc.experiments.studies",
    "rules": "dpmc.experiments.outputs._rules",
}


def names(kind: str) -> tuple[str, ...]:
    """Return the sorted names that `kind` offers.

    Raises
    ------
    DpmcError
        If `kind` is unknown.
    """
    home = importlib.import_module(package(kind))
    found = (info.name for info in pkgutil.iter_modules(home.__path__))
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
    return importlib.import_module(f"{package(kind)}.{name}")


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


def package(kind: str) -> str:
    """Return the package that holds what `kind` offers.

    Under the name of a study stand the methods that it compares: the package that the
    ``METHODS`` of its module names, which is read without running it.

    Raises
    ------
    DpmcError
        If there is no such kind, or a study does not say.
    """
    if kind in KINDS:
        return KINDS[kind]
    studies = module_names(KINDS["study"])
    if kind not in studies:
        raise DpmcError(f"kind: {kind!r}, allowed {', '.join([*KINDS, *studies])}")
    for node in module_tree(f"{KINDS['study']}.{kind}").body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if "METHODS" in names:
                return str(node.value.value)
    raise DpmcError(f"study {kind!r}: METHODS is missing, allowed the name of a package")
