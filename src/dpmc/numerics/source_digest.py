"""Digest of the code that a result depends on: what imports show, comments and docstrings aside.

Versions of other packages are no part of it.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpmc.types import DpmcError

# The library, and what stands on it in a checkout.
PACKAGES = ("dpmc", "dpmc_league", "dpmc_papers")
ROOT = Path(__file__).parents[2]


def canonical(value: object) -> str:
    """Canonical JSON text of `value`.

    Keys are sorted and numbers that compare equal read the same, so that neither the
    order of a mapping nor ``1`` in place of ``1.0`` counts as a change.

    Parameters
    ----------
    value : object
        Nested mappings, sequences, strings, finite numbers, booleans and None.

    Returns
    -------
    str
        One line of JSON.
    """
    return json.dumps(_normal(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def short_digest(value: object) -> str:
    """First 8 hexadecimal digits of the SHA-256 digest of ``canonical(value)``."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:8]


@functools.cache
def code_digest(*module_names: str) -> str:
    """Digest of modules and of everything in the package that they import.

    Imports are found in the source, without running it. What is looked up by name while
    a program runs (a model, a method) is not followed: the caller names those modules.
    Imports for type checkers only, docstrings, comments and layout do not count.

    Parameters
    ----------
    *module_names : str
        Dotted names inside the package, such as ``"dpmc.mcmc.methods.dp_hmc"``.

    Returns
    -------
    str
        SHA-256, in hexadecimal. The same for every supported version of Python.
    """
    digests = {name: module_digest(name) for name in closure(*module_names)}
    return hashlib.sha256(canonical(digests).encode()).hexdigest()


@functools.cache
def closure(*module_names: str) -> tuple[str, ...]:
    """Sorted names of the modules that `module_names` reach by imports, themselves too."""
    reached: set[str] = set()
    waiting = list(module_names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(imported(name))
    return tuple(sorted(reached))


@functools.cache
def file_digest(path: Path, *helpers: Path) -> str:
    """SHA-256 digest of the code of Python files, comments and docstrings aside.

    Parameters
    ----------
    path : Path
        A script.
    *helpers : Path
        Files that it imports from its own folder.
    """
    text = [text_of(_tree(file)) for file in (path, *helpers)]
    return hashlib.sha256(canonical(text).encode()).hexdigest()


@functools.cache
def module_digest(name: str) -> str:
    """SHA-256 digest of one module's code, in hexadecimal."""
    return hashlib.sha256(text_of(module_tree(name)).encode()).hexdigest()


@functools.cache
def module_tree(name: str) -> ast.Module:
    """Syntax tree of one module without what has no effect when it runs.

    Docstrings and imports for type checkers are gone.
    """
    path = _file(name)
    if path is None:
        raise DpmcError(f"`module` must be one of {', '.join(PACKAGES)}, got {name!r}")
    return _tree(path)


def _tree(path: Path) -> ast.Module:
    try:
        tree = ast.parse("" if path.is_dir() else path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise DpmcError(f"{path}: line {error.lineno} is not Python ({error.msg})") from None
    for node in _statements(tree):
        if hasattr(node, "body"):
            node.body[:] = [entry for entry in node.body if not _is_idle(entry)]
    return tree


@functools.cache
def module_names(package: str) -> tuple[str, ...]:
    """Sorted public modules of `package`, found by their files."""
    parts = package.split(".")
    folder = ROOT.joinpath(*parts)
    if parts[0] not in PACKAGES or not folder.is_dir():
        raise DpmcError(f"`package` must be one of {', '.join(PACKAGES)}, got {package!r}")
    found = {p.stem for p in folder.glob("*.py")}
    found |= {p.parent.name for p in folder.glob("*/__init__.py")}
    return tuple(sorted(name for name in found if not name.startswith("_")))


def _normal(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _normal(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_normal(entry) for entry in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return float(value)
    return value


@functools.cache
def _file(name: str) -> Path | None:
    parts = name.split(".")
    if parts[0] not in PACKAGES:
        return None
    base = ROOT.joinpath(*parts)
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.is_file() and base != path:
            return path
    # A folder without __init__.py is a package too, with no code of its own.
    return base if base.is_dir() else None


def _statements(node: Any) -> Iterator[Any]:
    """Module, and all statements and clauses in it at any depth, but no expressions."""
    yield node
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for entry in getattr(node, field, ()):
            yield from _statements(entry)


def _is_idle(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return isinstance(node.value.value, str)
    if isinstance(node, ast.If) and not node.orelse:
        name = getattr(node.test, "attr", None) or getattr(node.test, "id", None)
        return name == "TYPE_CHECKING"
    return False


@functools.cache
def imported(name: str) -> tuple[str, ...]:
    """Modules of the package that one module imports, and the packages they are in."""
    return tuple(_imported(name))


def _imported(name: str) -> Iterator[str]:
    path = _file(name)
    is_package = path is not None and (path.is_dir() or path.name == "__init__.py")
    for node in _statements(module_tree(name)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(name, is_package, node)
            for alias in node.names:
                member = f"{base}.{alias.name}"
                yield from _with_parents(member if _file(member) else base, asked=True)


def _absolute(name: str, is_package: bool, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = name.split(".")
    keep = len(parts) - node.level + (1 if is_package else 0)
    return ".".join([*parts[:keep], *([node.module] if node.module else [])])


def _with_parents(name: str, asked: bool = False) -> Iterator[str]:
    # The top package re-exports everything: importing a part of it runs it, but nothing is
    # taken from it unless a name is asked of it.
    if _file(name) is None:
        return
    parts = name.split(".")
    if len(parts) == 1:
        if asked:
            yield name
        return
    for length in range(2, len(parts) + 1):
        yield ".".join(parts[:length])


def text_of(node: object) -> str:
    """Text of a syntax tree that is the same for every supported version of Python."""
    # ast.dump writes empty fields or not, by the version of Python; here they never count.
    if isinstance(node, ast.AST):
        fields = [
            f"{key}={text_of(value)}"
            for key, value in ast.iter_fields(node)
            if key not in ("type_comment", "kind") and value is not None and value != []
        ]
        return f"{type(node).__name__}({','.join(fields)})"
    if isinstance(node, list):
        return f"[{','.join(map(text_of, node))}]"
    return repr(node)
