"""Tables of pages as HTML, which Sphinx takes as it is: faster than Markdown, and with anchors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import pandas as pd

from dpmc_papers.outputs._facts import number_text, value_text

# Bytes of a table on a page; of a longer one the first rows are shown.
LARGEST = 150_000


class Row(NamedTuple):
    """A row of HTML cells.

    Parameters
    ----------
    cells : sequence of str
    anchor : str
        Its name on the page; empty if it has none.
    kind : str
        The verdict that a reader can filter by; empty if there is none.
    """

    cells: Sequence[str]
    anchor: str = ""
    kind: str = ""


def table(label: str, columns: Sequence[str], rows: Sequence[Row], style: str = "") -> str:
    """HTML of a table that can be scrolled by keyboard.

    `label` is what a screen reader calls it; `style` is ``claims`` for a table with a filter.
    """
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "\n".join(
        f"<tr{_attribute('id', row.anchor)}{_attribute('data-verdict', row.kind)}>"
        f"{''.join(f'<td>{cell}</td>' for cell in row.cells)}</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">\n'
        f"<table{_attribute('class', f'results {style}'.strip())}>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>\n"
    )


def frame(label: str, values: pd.DataFrame, file: str = "") -> str:
    """HTML of a table of values, without columns that hold none.

    The whole of a table that is too long for a page is in `file`.
    """
    printed = {str(name): [value_text(v) for v in values[name]] for name in values.columns}
    kept = {name: column for name, column in printed.items() if any(column) or values.empty}
    rows = [Row([escape(cell) for cell in row]) for row in zip(*kept.values(), strict=True)]
    size, shown = 0, 0
    for row in rows:
        size += sum(len(cell.encode()) + 9 for cell in row.cells) + 10
        shown += size <= LARGEST
    text = table(label, [name.replace("_", " ") for name in kept], rows[:shown])
    if shown < len(rows):
        text += f"\nThe first {shown:,} of {len(rows):,} rows; all are in [{file}]({file}).\n"
    return text


def compact(values: pd.DataFrame) -> pd.DataFrame:
    """A table with ``<m>_q1``, ``_median`` and ``_q3`` merged into one column each."""
    shown: dict[str, Any] = {}
    for column in values.columns:
        name, _, part = str(column).rpartition("_")
        if part == "median" and {f"{name}_q1", f"{name}_q3"} <= set(values.columns):
            parts = (values[f"{name}_{p}"] for p in ("median", "q1", "q3"))
            shown[name] = [
                "" if math.isnan(m) else f"{number_text(m)} [{number_text(a)}, {number_text(b)}]"
                for m, a, b in zip(*parts, strict=True)
            ]
        elif not (part in ("q1", "q3") and f"{name}_median" in values.columns):
            shown[str(column)] = list(values[column])
    return pd.DataFrame(shown)


def folded(heading: str, items: Sequence[str]) -> str:
    """HTML of a list that a reader unfolds."""
    lines = "\n".join(f"<li>{escape(item)}</li>" for item in items)
    return f"<details><summary>{escape(heading)}</summary>\n<ul>\n{lines}\n</ul></details>\n"


def _attribute(name: str, value: str) -> str:
    return f' {name}="{escape(value)}"' if value else ""
