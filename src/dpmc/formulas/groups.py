"""Intercepts of groups in a formula, ``(1 | C(clinic, levels=['a', 'b']))``, which is no design."""

from __future__ import annotations

import re
from typing import Any

from dpmc.formulas.syntax import CATEGORY, LEVELS, Uses
from dpmc.types import DpmcError

# Where a term in brackets begins with something before a bar; strings, and quoted names.
BAR = re.compile(r"(?<=[~+])\s*\(\s*([^()|~]*?)\s*\|")
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")


def without_groups(text: Any) -> tuple[Any, Uses]:
    """Formula without its term of groups, and what that reads of a table.

    Raises
    ------
    DpmcError
        If the term is another than an intercept by one column with declared levels.
    """
    uses = Uses()
    if not isinstance(text, str):
        return text, uses
    blind = QUOTED.sub(lambda found: "_" * len(found[0]), text)
    found = BAR.search(blind)
    if found is None:
        return text, uses
    end = _closing(blind, found.end())
    inner = text[found.end() : end].strip()
    wanted = f"`formula` must have terms of groups such as (1 | {LEVELS % 'clinic'})"
    if found[1] != "1":
        raise DpmcError(
            f"{wanted}, which have no slopes: write {_slopes(found[1], inner)} beside it for one "
            f"of each level, got ({found[1]} | {inner})"
        )
    if end == len(text):
        raise DpmcError(f"{wanted}, got one whose bracket is not closed in {text!r}")
    if BAR.search(blind, end):
        raise DpmcError(f"{wanted}, one at most, got several in {text!r}")
    if not inner.startswith(f"{CATEGORY}("):
        raise DpmcError(
            f"`formula` must declare the levels of groups, which would be private values "
            f"otherwise: (1 | {LEVELS % (inner or 'clinic')}), got (1 | {inner})"
        )
    try:
        uses.expression(inner)
    except SyntaxError:
        raise DpmcError(f"{wanted}, got (1 | {inner})") from None
    before, after = text[: found.start()].rstrip(), text[end + 1 :].lstrip()
    if before.endswith("+"):
        before = before[:-1]
    elif after.startswith("+"):
        after = after[1:]
    else:
        before += " 1 "
    return f"{before} {after}".strip(), uses


def _slopes(varying: str, inner: str) -> str:
    """Term of a formula that has a slope for each level of a column."""
    names = [one for one in map(str.strip, varying.split("+")) if one not in ("", "0", "1")]
    slope = f"({' + '.join(names)})" if len(names) > 1 else (names or ["x"])[0]
    column = inner.removeprefix(f"{CATEGORY}(").partition(",")[0].rstrip(") ") or "clinic"
    return f"{slope}:{inner if 'levels' in inner else LEVELS % column}"


def _closing(text: str, first: int) -> int:
    """Place of the bracket that closes one that is open at `first`; the end if none does."""
    depth = 1
    for place in range(first, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return place
    return len(text)
