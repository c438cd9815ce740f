"""Chains that are compiled once for all processes.

A chain and what it calls take longer to compile than most jobs take to run. Numba keeps
compiled code on disk, but notices a change in the file of a function only, not in those of
the functions that it calls. The folder is therefore named by a digest of the module and of
all that it imports.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from dpmc import kernels
from dpmc.digest import code_digest

CONFIG: Any = numba.config
FOLDER = "dpmc"
DIGITS = 16


def folder(module: str) -> Path:
    """Return where compiled chains of `module` are kept.

    In NUMBA_CACHE_DIR if it is set, in the user's cache otherwise.

    Raises
    ------
    DpmcError
        If there is no such module in the package.
    """
    digest = code_digest(module)[:DIGITS]
    if CONFIG.CACHE_DIR:
        return Path(CONFIG.CACHE_DIR) / digest
    import pooch

    return Path(pooch.os_cache(FOLDER)) / "compiled" / digest


def kept(function: Callable[..., Any]) -> Any:
    """Compile a chain, and keep it for other processes if the folder can be written to.

    Raises
    ------
    DpmcError
        If the function does not belong to a module of the package.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": kernels.FASTMATH}
    path, before = folder(function.__module__), CONFIG.CACHE_DIR
    if not _writable(path):  # Numba would keep it beside the source, whatever has changed
        return numba.njit(**options)(function)
    CONFIG.CACHE_DIR = str(path)
    try:
        return numba.njit(cache=True, **options)(function)
    finally:
        CONFIG.CACHE_DIR = before


def _writable(path: Path) -> bool:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(path, os.W_OK)
