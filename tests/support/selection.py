"""What `pytest -k` selects, without collecting: a name of a test, or of its file."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path


def names_of_tests(folder: Path) -> set[str]:
    """Return the names of the test functions below a folder, and of files that have some."""
    found: set[str] = set()
    for path in folder.rglob("test_*.py"):
        functions = {
            node.name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        }
        found |= functions | ({path.name} if functions else set())
    return found


def select_nothing(words: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the words that occur in no name; as for pytest, capitals do not matter."""
    known = [name.lower() for name in names]
    return sorted({word for word in words if not any(word.lower() in name for name in known)})
