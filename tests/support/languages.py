"""Whether other languages are on this machine."""

from __future__ import annotations

import functools
import shutil
import subprocess


@functools.cache
def has_r() -> bool:
    """Return whether there is R with jsonlite, of which a method of the league is written."""
    if shutil.which("Rscript") is None:
        return False
    asked = ["Rscript", "--vanilla", "-e", "library(jsonlite)"]
    return subprocess.run(asked, capture_output=True).returncode == 0
