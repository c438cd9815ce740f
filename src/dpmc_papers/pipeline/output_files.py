"""Names of the files of an output."""

from __future__ import annotations

import re

# A table with a number in its document: `table6_1` is Table 6.1, `table6_1_draws` is not.
NUMBERED = r"table[0-9]+(?:_[0-9]+)?"
# Of such a table, besides the long one: in the layout of the document.
LAYOUT_ENDINGS = ("layout.csv", "md", "tex")
FIGURE_ENDINGS = ("pdf", "svg", "png", "data.csv")


def is_numbered(name: str) -> bool:
    """Return whether an output has the name of a numbered table of the document."""
    return re.fullmatch(NUMBERED, name) is not None


def endings(name: str, kind: str) -> tuple[str, ...]:
    """Return how the names of all files of a figure or table end, the first of them first."""
    if kind == "figure":
        return FIGURE_ENDINGS
    return ("csv", *LAYOUT_ENDINGS) if kind == "table" and is_numbered(name) else ("csv",)
