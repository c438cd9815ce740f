"""Folder in which the user keeps what can be made again."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import platformdirs

NAME = "dpmc"


def folder() -> Path:
    """Folder in the user's cache; of a user without a home, one that ends with the process.

    A fixed place in a shared folder would be open to others, and compiled code is run.
    """
    try:
        path = platformdirs.user_cache_path(NAME)
    except RuntimeError:
        path = Path()
    return path if path.is_absolute() else Path(_temporary().name)


@functools.cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=f"{NAME}-", ignore_cleanup_errors=True)
