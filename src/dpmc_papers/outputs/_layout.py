"""Tables in the layout of their document: our number and the printed one in each cell.

A document declares rows, columns and what stands in a cell; this module writes CSV, Markdown and
LaTeX. The long table beside it stays the one for programs.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd

Row = TypeVar("Row", bound=Hashable)
Column = TypeVar("Column", bound=Hashable)

NOTHING = "–"  # what was not run, or could not be
# Where a cell holds several numbers: how they are written, and their names in CSV.
FORMS = {
    "number": ("{}", ("",)),
    "spread": ("{} ± {}", ("", "sd")),
    "interval": ("[{}, {}]", ("lower", "upper")),
}
LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "[": "{[}", "]": "{]}", "|": r"\textbar{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "ε": r"$\varepsilon$", "δ": r"$\delta$", "θ": r"$\theta$", "σ": r"$\sigma$",
    "±": r"$\pm$", "∞": r"$\infty$", "†": r"$\dagger$", "−": "$-$", "–": "--", "²": "$^2$",
    "₀": "$_0$", "…": r"\ldots{}",
}  # fmt: skip
MARKDOWN = {**{sign: f"\\{sign}" for sign in "\\`*_|["}, "<": "&lt;"}


@dataclass(frozen=True)
class Cell:
    """Our number beside the printed one.

    Parameters
    ----------
    ours, printed : tuple of float
        The numbers that the form of the layout asks for; NaN for one that is unknown. Empty
        where there is none: in print, or in this block.
    decimals : tuple of int
        How many of them each number has; as many as it needs where it is empty.
    cut : bool
        Whether further digits are cut off, as print has them, and not rounded.
    mark : str
        Sign of a note, behind our number.
    """

    ours: tuple[float, ...] = ()
    printed: tuple[float, ...] = ()
    decimals: tuple[int, ...] = ()
    cut: bool = False
    mark: str = ""

    def texts(self, values: tuple[float, ...]) -> list[str]:
        """Numbers as text, an unknown one as empty."""
        places = self.decimals or (None,) * len(values)
        return [number(v, d, self.cut) for v, d in zip(values, places, strict=False)]


@dataclass(frozen=True)
class Block:
    """All rows of a table for one variant.

    Parameters
    ----------
    title : str
        The variant, and the epsilon that holds.
    rows : tuple of tuple of str
        Labels of each row.
    cells : tuple of tuple of Cell
    """

    title: str
    rows: tuple[tuple[str, ...], ...]
    cells: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Layout:
    """A table in the layout of its document.

    Parameters
    ----------
    title : str
    heads : tuple of str
        Headings of the labels of rows.
    columns : tuple of str
    blocks : tuple of Block
        What is as published comes first.
    form : {"number", "spread", "interval"}
        What a cell holds.
    least : bool
        Whether the least of our numbers of each row is bold, as in the document.
    notes : tuple of str
    """

    title: str
    heads: tuple[str, ...]
    columns: tuple[str, ...]
    blocks: tuple[Block, ...]
    form: str = "number"
    least: bool = False
    notes: tuple[str, ...] = ()

    def text(self, values: Sequence[str]) -> str:
        """Numbers of a cell as one text: the first alone where others are unknown."""
        if not any(values):
            return NOTHING
        return FORMS[self.form][0].format(*values) if all(values) else values[0] or NOTHING

    def best(self, cells: Sequence[Cell]) -> list[bool]:
        """Which cells of a row are bold: the least of several that are not all the same."""
        shown = [cell.texts(cell.ours)[:1] for cell in cells]
        numbers = [float(text[0]) if text and text[0] else math.nan for text in shown]
        known = [value for value in numbers if not math.isnan(value)]
        several = self.least and len(set(known)) > 1
        return [several and value == min(known) for value in numbers]


def block(
    title: str,
    rows: Mapping[Row, Sequence[str]],
    columns: Iterable[Column],
    cell: Callable[[Row, Column], Cell],
) -> Block:
    """Block from the labels of its rows, the keys of its columns and its cells."""
    keys = list(columns)
    return Block(
        title,
        tuple(tuple(labels) for labels in rows.values()),
        tuple(tuple(cell(row, column) for column in keys) for row in rows),
    )


def of_table(table: pd.DataFrame, title: str) -> Layout:
    """Table as it is, for a document that declares no layout of it."""
    numeric = [name for name in table if pd.api.types.is_numeric_dtype(table[name])]
    heads = [str(name) for name in table if name not in numeric]
    rows = {k: [str(table[name].iloc[k]) for name in heads] for k in range(len(table))}
    body = block("", rows, numeric, lambda k, name: Cell((float(table[name].iloc[k]),)))
    return Layout(title, tuple(heads), tuple(map(str, numeric)), (body,))


def number(value: float, decimals: int | None = None, cut: bool = False) -> str:
    """Number as print has it; empty for NaN."""
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if decimals is None:
        return f"{value:.0f}" if value == round(value) and abs(value) < 1e9 else f"{value:.4g}"
    unit = decimal.Decimal(1).scaleb(-decimals)
    rule = decimal.ROUND_DOWN if cut else decimal.ROUND_HALF_EVEN
    exact = decimal.Decimal(repr(float(value))) if cut else decimal.Decimal(float(value))
    return f"{exact.quantize(unit, rule):f}"


def files(layout: Layout) -> tuple[str, str, str]:
    """Texts of the files of a layout: CSV, Markdown and LaTeX."""
    return csv(layout), markdown(layout), latex(layout)


def csv(layout: Layout) -> str:
    """Layout as CSV: one row per row of the document and block, each number alone."""
    parts = FORMS[layout.form][1]
    records = []
    for body in layout.blocks:
        for labels, cells in zip(body.rows, body.cells, strict=True):
            record: dict[str, Any] = {"block": body.title}
            record |= dict(zip(layout.heads, labels, strict=True))
            for name, cell in zip(layout.columns, cells, strict=True):
                for source, values in (("", cell.ours), ("printed", cell.printed)):
                    texts = cell.texts(values) or [""] * len(parts)
                    for part, text in zip(parts, texts, strict=True):
                        words = " ".join(filter(None, (source, part)))
                        record[f"{name}: {words}" if words else name] = text
            records.append(record)
    table = pd.DataFrame(records)
    kept = [name for name in table if name != "block" or table[name].ne("").any()]
    made: str = table[kept].to_csv(index=False, lineterminator="\n")
    return made


def markdown(layout: Layout) -> str:
    """Layout as Markdown: a table per block, with columns of equal width."""
    lines = [f"**{_escaped(layout.title, MARKDOWN)}**", ""]
    for body in layout.blocks:
        if body.title:
            lines += [f"*{_escaped(body.title, MARKDOWN)}*", ""]
        rows = [[*layout.heads, *layout.columns]]
        rows = [[_escaped(text, MARKDOWN) for text in row] for row in rows]
        for labels, cells in zip(body.rows, body.cells, strict=True):
            shown = zip(cells, layout.best(cells), strict=True)
            texts = [
                _cell(layout, cell, ("**{}**" if bold else "{}", "{}")) for cell, bold in shown
            ]
            rows.append([*(_escaped(label, MARKDOWN) for label in labels), *texts])
        lines += [*_aligned(rows, len(layout.heads)), ""]
    for note in layout.notes:
        lines += [_escaped(note, MARKDOWN), ""]
    return "\n".join(lines[:-1]) + "\n"


def latex(layout: Layout) -> str:
    """Layout as a LaTeX ``tabular`` to include, which needs ``booktabs`` alone."""
    count = len(layout.heads) + len(layout.columns)
    wide = rf"\multicolumn{{{count}}}{{@{{}}p{{0.95\linewidth}}@{{}}}}"
    lines = [
        f"% {layout.title}",
        "% Needs \\usepackage{booktabs}.",
        rf"\begin{{tabular}}{{@{{}}{'l' * len(layout.heads)}{'r' * len(layout.columns)}@{{}}}}",
        r"\toprule",
        _line(_escaped(text, LATEX) for text in (*layout.heads, *layout.columns)),
    ]
    for body in layout.blocks:
        lines.append(r"\midrule")
        if body.title:
            lines += [rf"{wide}{{\emph{{{_escaped(body.title, LATEX)}}}}} \\", r"\midrule"]
        for labels, cells in zip(body.rows, body.cells, strict=True):
            shown = zip(cells, layout.best(cells), strict=True)
            texts = [
                _cell(
                    layout, cell, (r"\textbf{{{}}}" if bold else "{}", r"{{\scriptsize {}}}"), LATEX
                )
                for cell, bold in shown
            ]
            lines.append(_line([*(_escaped(label, LATEX) for label in labels), *texts]))
    lines.append(r"\bottomrule")
    lines += [rf"{wide}{{\footnotesize {_escaped(note, LATEX)}}} \\" for note in layout.notes]
    return "\n".join([*lines, r"\end{tabular}", ""])


def _cell(
    layout: Layout,
    cell: Cell,
    around: tuple[str, str],
    signs: Mapping[str, str] | None = None,
) -> str:
    """Text of a cell; `around` is set around our number, and around the printed one."""
    if not cell.ours and not cell.printed:
        return ""

    def shown(values: tuple[float, ...], form: str, around: str) -> str:
        text = form.format(layout.text(cell.texts(values)))
        # A hyphen is no minus in LaTeX.
        return around.format(_escaped(text.replace("-", "−"), signs) if signs else text)

    parts = [shown(cell.ours, "{}" + cell.mark, around[0])]
    if cell.printed:
        parts.append(shown(cell.printed, "({})", around[1]))
    return " ".join(parts)


def _escaped(text: str, signs: Mapping[str, str]) -> str:
    return "".join(signs.get(sign, sign) for sign in text)


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _aligned(rows: Sequence[Sequence[str]], labels: int) -> list[str]:
    """Lines of a Markdown table: labels to the left, numbers to the right."""
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    rule = ["-" * w if k < labels else "-" * (w - 1) + ":" for k, w in enumerate(widths)]
    padded = [
        [
            text.ljust(width) if k < labels else text.rjust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in (rows[0], rule, *rows[1:])
    ]
    return [f"| {' | '.join(row)} |" for row in padded]
