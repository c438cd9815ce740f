"""Digest of the modules that a job names: their code alone, and not how it is written.

Comments, layout, docstrings, annotations, imports for type checkers and the texts of errors change
nothing. A private module beside a named one that it imports is a part of it; whatever else it
imports is not looked at, so that who reads the rule knows what counts.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from pathlib import Path

from dpmc.numerics.source_digest import short_digest, text_of
from dpmc.types import DpmcError

SOURCES = Path(__file__).parents[2]


@functools.cache
def digest(*modules: str) -> str:
    """Eight hexadecimal digits of modules and their private parts.

    Parameters
    ----------
    *modules : str
        Dotted names, such as ``"dpmc.mcmc.methods.dp_hmc"``.
    """
    return short_digest({name: _of_file(_file(name)) for name in parts(*modules)})


def parts(*modules: str) -> tuple[str, ...]:
    """Sorted names of modules and of the private ones beside them that they import."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _private(name)
    return tuple(sorted(found))


@functools.cache
def defined(module: str) -> frozenset[str]:
    """Names that the top of a module defines, assigns or imports; it is not run."""
    found: set[str] = set()
    for node in _tree(_file(module)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(found)


@functools.cache
def _private(name: str) -> tuple[str, ...]:
    package = name.rpartition(".")[0]
    imported = (
        alias.name
        for node in ast.walk(_tree(_file(name)))
        if isinstance(node, ast.ImportFrom) and node.module == package
        for alias in node.names
    )
    sources = {
        node.module or ""
        for node in ast.walk(_tree(_file(name)))
        if isinstance(node, ast.ImportFrom)
    }
    named = {source.removeprefix(f"{package}.") for source in sources}
    private = {part for part in {*imported, *named} if part.startswith("_") and "." not in part}
    folder = _file(name).parent
    return tuple(f"{package}.{part}" for part in private if (folder / f"{part}.py").is_file())


@functools.cache
def _of_file(path: Path) -> str:
    tree = _Bare().visit(_tree(path))
    return hashlib.sha256(text_of(tree).encode()).hexdigest()


def _file(name: str) -> Path:
    base = SOURCES.joinpath(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    raise DpmcError(f"`module` must be one below {SOURCES}, got {name!r}")


def _tree(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise DpmcError(f"{path}: line {error.lineno} is not Python ({error.msg})") from None


class _Bare(ast.NodeTransformer):
    """Takes away what no result depends on."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                body[:] = [entry for entry in body if not _is_text(entry)]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        node.annotation = ast.Constant(None)  # a field of a class stays one
        return node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        name = getattr(node.test, "attr", None) or getattr(node.test, "id", None)
        return None if name == "TYPE_CHECKING" else self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                part.value = ""
        return node


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
