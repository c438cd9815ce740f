"""Who called the library: what a warning names."""

from __future__ import annotations

import sys

PACKAGE = __name__.partition(".")[0]


def stacklevel() -> int:
    """``stacklevel`` at which a warning names the first line outside of the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    return level


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE
