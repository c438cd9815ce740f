"""Look a thing up by its name: of a file in a package, or of an entry in the table of a module.

Adding one adds a file and edits none, or adds an entry where things are a few lines each.
"""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
import inspect
import numbers
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dpmc.numerics.source_digest import module_names, module_tree
from dpmc.types import DpmcError

# Packages that stand on the library add theirs.
KINDS = {
    "model": "dpmc.models",
    "method": "dpmc.mcmc.methods",
    "accountant": "dpmc.privacy.accountants",
    "statsel_posterior": "dpmc.statsel.chains.methods",
}


@functools.cache
def names(kind: str) -> tuple[str, ...]:
    """Sorted names that `kind` offers."""
    home = importlib.import_module(package(kind))
    table: Mapping[str, Any] | None = getattr(home, "TABLE", None)
    found = table or (info.name for info in pkgutil.iter_modules(home.__path__))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def load(kind: str, name: str) -> Any:
    """Module, or the entry of a table, of the `kind` called `name`."""
    known = names(kind)
    if name not in known:
        raise DpmcError(refusal(kind, f"one of {listed(known)}", name, known))
    home = importlib.import_module(package(kind))
    if hasattr(home, "TABLE"):
        return home.TABLE[name]
    return importlib.import_module(f"{home.__name__}.{name}")


def home(kind: str, name: str) -> str:
    """Name of the module that holds the `kind` called `name`."""
    found = importlib.import_module(package(kind))
    return found.__name__ if hasattr(found, "TABLE") else f"{found.__name__}.{name}"


def parameters(module: Any, values: Mapping[str, Any]) -> Any:
    """Build the ``Params`` of a module or of an entry of a table from `values`."""
    name: str = getattr(module, "__name__", None) or module.name
    return called(module.Params, name.rpartition(".")[2], values)


def called(function: Callable[..., Any], where: str, values: Mapping[str, Any]) -> Any:
    """Result of a function, or a class, for `values`, its arguments by name."""
    known = inspect.signature(function).parameters
    for key in values:
        if key not in known:
            wanted = f"a parameter of {where} ({listed(known)})"
            raise DpmcError(refusal(key, wanted, None, known))
    for key, entry in known.items():
        if entry.default is entry.empty and key not in values:
            raise DpmcError(refusal(key, f"given to {where}", None))
        if key in values:
            _check_plain(key, entry.annotation, values[key])
    return function(**values)


# Simple annotations, what they take and what a message calls it; YAML reads 1e5 as text.
PLAIN = {
    "bool": (bool, "true or false"),
    "int": (numbers.Integral, "an integer"),
    "float": (numbers.Real, "a number"),
}


def _check_plain(key: str, annotation: Any, value: Any) -> None:
    """Refuse a value of another type where the annotation is one of `PLAIN`, or that or None."""
    written = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    plain, _, optional = written.partition(" | ")
    if plain not in PLAIN or (optional and (optional != "None" or value is None)):
        return
    taken, wanted = PLAIN[plain]
    if not isinstance(value, taken) or (plain != "bool" and isinstance(value, bool)):
        raise DpmcError(refusal(key, wanted, value))


def refusal(key: str, wanted: str, value: object, choices: Iterable[object] = ()) -> str:
    """Line that refuses a value, or a key if there is no value.

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
    """Names as a reader wants to see them."""
    return ", ".join(sorted(map(str, names))) or "none"


@functools.cache
def package(kind: str) -> str:
    """Package that holds what `kind` offers, or the module whose table does.

    Under the name of a study stand the methods that it compares: the package that the
    ``METHODS`` of its module names, which is read without running it.
    """
    if kind in KINDS:
        return KINDS[kind]
    studies = module_names(KINDS["study"]) if "study" in KINDS else ()
    if kind not in studies:
        raise DpmcError(refusal("kind", f"one of {listed([*KINDS, *studies])}", kind, studies))
    for node in module_tree(f"{KINDS['study']}.{kind}").body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if "METHODS" in names:
                return str(node.value.value)
    raise DpmcError(f"`METHODS` of study {kind!r} must be the name of a package")
