"""Chains that are compiled once for all processes.

A chain and what it calls take longer to compile than most jobs take to run. Numba keeps
compiled code on disk, but notices a change in the file of a function only, not in those of
the functions that it calls. The folder is therefore named by a digest of all the sources.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from dpmc import kernels

CONFIG: Any = numba.config
# What chains are compiled from.
SOURCES = (Path(__file__).parent, Path(kernels.__file__))
FOLDER = "dpmc"
DIGITS = 16


@functools.cache
def digest() -> str:
    """Return the digest of all sources that compiled code can come from."""
    total = hashlib.sha256()
    for source in SOURCES:
        paths = [source] if source.is_file() else sorted(source.rglob("*.py"))
        for path in paths:
            total.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return total.hexdigest()[:DIGITS]


def folder() -> Path:
    """Return where compiled chains are kept: in NUMBA_CACHE_DIR if set, else the user's cache."""
    if CONFIG.CACHE_DIR:
        return Path(CONFIG.CACHE_DIR) / digest()
    import pooch

    return Path(pooch.os_cache(FOLDER)) / "compiled" / digest()


def kept(function: Callable[..., Any]) -> Any:
    """Compile a chain, and keep it for other processes if the folder can be written to."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": kernels.FASTMATH}
    path, before = folder(), CONFIG.CACHE_DIR
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
