"""Look a thing up by the name of its file: adding one adds a file and edits none."""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
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
    "population": "dpmc.statsel.populations",
    "statistic": "dpmc.statsel.statistics",
    "mechanism": "dpmc.statsel.mechanisms",
    "rules": "dpmc.experiments.outputs._rules",
}


@functools.cache
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
    known = names(kind)
    if name not in known:
        raise DpmcError(refusal(kind, f"one of {listed(known)}", name, known))
    return importlib.import_module(f"{package(kind)}.{name}")


def parameters(module: ModuleType, values: Mapping[str, Any]) -> Any:
    """Build the ``Params`` of `module` from `values`.

    Raises
    ------
    DpmcError
        If a key is unknown or missing, or a value is refused by ``Params``.
    """
    cls: Any = module.Params
    known = {entry.name: entry for entry in fields(cls)}
    where = module.__name__.rpartition(".")[2]
    for key in values:
        if key not in known:
            wanted = f"a parameter of {where} ({listed(known)})"
            raise DpmcError(refusal(key, wanted, None, known))
    for key, entry in known.items():
        needed = entry.default is MISSING and entry.default_factory is MISSING
        if needed and key not in values:
            raise DpmcError(refusal(key, f"given to {where}", None))
        if entry.type in (bool, "bool") and not isinstance(values.get(key, True), bool):
            raise DpmcError(refusal(key, "true or false", values[key]))
    return cls(**values)


def refusal(key: str, wanted: str, value: object, choices: Iterable[object] = ()) -> str:
    """Return the line that refuses a value, or a key if there is no value.

    Parameters
    ----------
    key : str
    wanted : str
        What it must be.
    value : object
        None where the key itself is at fault, or missing.
    choices : iterable
        What may have been meant.
    """
    line = f"`{key}` must be {wanted}"
    if value is not None:
        line += f", got {value!r}"
    meant = key.rpartition(".")[2] if value is None else str(value)
    near = difflib.get_close_matches(meant, list(map(str, choices)), n=1)
    return f"{line} (did you mean {near[0]}?)" if near and near[0] != meant else line


def listed(names: Iterable[object]) -> str:
    """Return names as a reader wants to see them."""
    return ", ".join(sorted(map(str, names))) or "none"


@functools.cache
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
        raise DpmcError(refusal("kind", f"one of {listed([*KINDS, *studies])}", kind, studies))
    for node in module_tree(f"{KINDS['study']}.{kind}").body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if "METHODS" in names:
                return str(node.value.value)
    raise DpmcError(f"`METHODS` of study {kind!r} must be the name of a package")
