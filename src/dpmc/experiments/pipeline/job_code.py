"""Digest of the code of a job: modules, what they import, and what those look up by name."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

from dpmc.numerics.source_digest import closure, code_digest, module_names, module_tree


@functools.cache
def job_code(*modules: str) -> str:
    """Return the digest of modules, of what they import, and of what those look up by name.

    A module that looks others up names their packages in a constant ``LOOKED_UP``: all modules
    in them count.
    """
    named: set[str] = set()
    while found := {m for name in closure(*modules, *named) for m in _looked_up(name)} - named:
        named |= found
    return code_digest(*modules, *sorted(named))


def _looked_up(name: str) -> Iterator[str]:
    for node in module_tree(name).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LOOKED_UP":
            for package in ast.literal_eval(node.value):
                yield from (f"{package}.{member}" for member in module_names(package))
