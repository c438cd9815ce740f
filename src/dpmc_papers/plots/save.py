"""Figure files: the same figure always gives the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from dpmc.types import DpmcError
from dpmc_papers.plots.style import SETTINGS

# Dates and random identifiers would make every run differ.
METADATA: dict[str, dict[str, Any]] = {
    ".pdf": {"CreationDate": None, "ModDate": None},
    ".svg": {"Date": None},
    ".png": {"Software": None},
}


def save(figure: Figure, path: Path | str) -> None:
    """Write `figure` in the format of the path: ``.pdf``, ``.svg`` or ``.png`` (200 dpi)."""
    path = Path(path)
    if path.suffix not in METADATA:
        raise DpmcError(
            f"the suffix of {path} must be one of {', '.join(METADATA)}, got {path.suffix!r}"
        )
    with mpl.rc_context(SETTINGS):
        figure.savefig(path, metadata=METADATA[path.suffix], dpi=200)
    figure.set_layout_engine("none")  # the next format is laid out as this one
