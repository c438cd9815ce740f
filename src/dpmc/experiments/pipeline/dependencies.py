"""Digests of all that a result depends on besides its settings: code, its script, packages."""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

from dpmc.numerics.source_digest import (
    closure,
    code_digest,
    file_digest,
    module_names,
    module_tree,
    short_digest,
    versions,
)

SCRIPTS = Path("workflow", "scripts")
# Logs, locks and the names of unfinished files: no result depends on it.
WITHOUT_EFFECT = {"_job"}


@functools.cache
def code(root: Path, script: str, *modules: str) -> str:
    """Return the digest of a script, of modules, of what both import, and of package versions.

    A module that looks others up by their names says so in a constant ``LOOKED_UP``, a list of
    packages: all modules in them count.

    Parameters
    ----------
    root : Path
        Folder that holds ``workflow/``. The script of a folder without it counts as empty.
    script : str
        Name of the script that makes the result.
    *modules : str
        Dotted names of what it looks up, and of what it imports from the package.

    Returns
    -------
    str

    Raises
    ------
    DpmcError
        If a module is missing or a file is not Python.
    """
    named: set[str] = set()
    while more := {m for name in closure(*modules, *named) for m in _looked_up(name)} - named:
        named |= more
    every = (*modules, *sorted(named))
    return short_digest([script_digest(root, script), code_digest(*every), versions(*every)])


def script_digest(root: Path, script: str) -> str:
    """Return the digest of a script and of the helpers that it imports from its folder."""
    path = root / SCRIPTS / f"{script}.py"
    return file_digest(path, *_helpers(path)) if path.is_file() else ""


def content_digest(*paths: Path) -> str:
    """Return the digest of the contents of text files; one that is missing counts as empty."""
    total = hashlib.sha256()
    for path in paths:
        content = path.read_bytes() if path.is_file() else b""
        total.update(hashlib.sha256(content).digest())
    return total.hexdigest()[:8]


def _helpers(path: Path) -> list[Path]:
    """Return the files of its own folder that a script imports, and those that these import."""
    reached: dict[Path, None] = {}
    waiting = [path]
    while waiting:
        for name in _imported(waiting.pop()):
            helper = path.with_name(f"{name}.py")
            if name not in WITHOUT_EFFECT and helper.is_file() and helper not in reached:
                reached[helper] = None
                waiting.append(helper)
    return sorted(reached)


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""


def _looked_up(name: str) -> Iterator[str]:
    for node in module_tree(name).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LOOKED_UP":
            for package in ast.literal_eval(node.value):
                yield from (f"{package}.{member}" for member in module_names(package))
