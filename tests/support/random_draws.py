"""Draws of random numbers in source code, found in its syntax trees."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_STATE = {"spawn", "bit_generator", "get_state", "set_state", "seed"}
_NUMPY = {
    name
    for kind in (np.random.Generator, np.random.RandomState)
    for name in dir(kind)
    if not name.startswith("_")
}
# Of NumPy's generators, SciPy's distributions, the standard library and the operating system.
METHODS = frozenset(
    _NUMPY - _STATE
    | {"random_raw", "rvs", "urandom", "getrandbits", "gauss", "normalvariate"}
    | {"expovariate", "randbelow", "randbits", "token_bytes"}
)
# Also names of other things: as an attribute that is not called they say nothing.
_ORDINARY = frozenset({"random", "f", "power", "gamma", "beta", "bytes", "choice"})
_NAMED, _OTHERS = ("|".join(sorted(names)) for names in (METHODS - _ORDINARY, _ORDINARY))
_IN_TEXT = re.compile(rf"\.({_NAMED})\(|\brng\.({_OTHERS})\(")
# Where moves and batches may be drawn from streams of their own: no list names new methods.
METHODS_AT, PUBLIC = "dpmc/mcmc/methods", {"streams.chain", "streams.batches"}
_NO_GENERATORS = ("dpmc", "numpy", "math")


def draws(root: Path) -> Counter[str]:
    """Return how often each function below `root` draws, as ``file::function method``.

    Found are calls of a generator's methods, such methods taken without a call or by their name,
    imports of such functions, and calls inside text that may be source code; but for the streams
    of moves and of batches in a sampling method.
    """
    found: Counter[str] = Counter()
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text())
        modules = {name for node in ast.walk(tree) for name in _modules(node)}
        if path.relative_to(root).is_relative_to(METHODS_AT):
            modules |= PUBLIC
        for function, method in _visit(tree, (), modules):
            found[f"{path.relative_to(root).as_posix()}::{function} {method}"] += 1
    return found


def _modules(node: ast.AST) -> Iterator[str]:
    """Yield the names that an import gives to modules and functions that are no generators."""
    if isinstance(node, ast.Import):
        for name in node.names:
            if name.name in _NO_GENERATORS:
                yield name.asname or name.name
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "getattr" and isinstance(name := node.args[1], ast.Constant):
            yield from {str(name.value)} & METHODS
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dpmc":
        yield from (name.asname or name.name for name in node.names)


def _visit(node: ast.AST, outer: tuple[str, ...], modules: set[str]) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        outer = (*outer, node.name)
    yield from ((".".join(outer) or "module", method) for method in _methods(node, modules))
    for child in ast.iter_child_nodes(node):
        yield from _visit(child, outer, modules)


def _methods(node: ast.AST, modules: set[str]) -> Iterator[str]:
    """Yield the methods that a node draws with, itself."""
    if isinstance(node, ast.Attribute) and node.attr in METHODS - _ORDINARY:
        if ast.unparse(node.value) not in modules:
            yield node.attr
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _ORDINARY and ast.unparse(node.func.value) not in modules:
            yield node.func.attr
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "getattr" and isinstance(name := node.args[1], ast.Constant):
            yield from {str(name.value)} & METHODS
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] != "dpmc":
        drawn = node.module in ("numpy.random", "random", "secrets", "os")
        yield from (name.name for name in node.names if drawn and name.name in METHODS)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        for line in node.value.splitlines():
            if not line.lstrip().startswith((">>>", "...")):  # an example of a docstring
                yield from (match[1] or match[2] for match in _IN_TEXT.finditer(line))
