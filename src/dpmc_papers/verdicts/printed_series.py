"""Printed series: a compact block of a file of claims, of which every number is judged alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from dpmc_papers.verdicts.kinds import Cell, Kind
from dpmc_papers.verdicts.scales import scale_of

KEYS = {"id", "where", "output", "columns", "axis", "cells"}
# What a number may differ by for its rounding: one of these.
ROUNDING = {"decimals", "within"}
OPTIONAL = {"rule", "variants", "cut", "printed_variants", "setting"}
SHARED = ("where", "output", "variants", "printed_variants")
# What stands for the rule of a series of settings, which has none.
NO_RULE: Mapping[str, Any] = {"kind": ""}
# Names the verdict on all numbers of one row together.
TOGETHER = "together"


def judged(published: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Series of a file of claims that runs can bear out: all but settings."""
    return [block for block in published.get("series", ()) if not block.get("setting")]


def expand(block: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry per printed cell of a series.

    Parameters
    ----------
    block : mapping
        Keys `id`, `where`, `output`, `rule` and optionally `variants` as in an entry; `columns`:
        what the nested keys of `cells` name; `axis`: one column and its values along each
        list of cells; `cells`: lists of a number, of ``[first quartile, median, third
        quartile]``, of ``[lower end, mean, upper end]`` of an interval or of ``[mean,
        standard deviation]``, null where nothing is printed; `decimals`: how many of them print
        has, one number or one by the first name of a row; `cut`: true where print cuts further
        digits off instead of rounding; `within`, in place of `decimals`: how far a number that
        nothing random enters may be off; `printed_variants`, in place of those of the file;
        `setting`: true where print says how runs were set up, and not what came out: such a series
        has no `rule` and no rounding, and a table alone shows it.

    Returns
    -------
    list of dict
        Entries whose limits are the least and the largest number that is printed so. All cells of
        a block share its error rate: key `family` holds their number. An entry with key
        `together` is about all numbers of a row, where it has two or more with an error.
    """
    block = {"rule": NO_RULE, **block}
    ((axis, points),) = block["axis"].items()
    entries, rows = [], []
    for names, row in _rows(block["cells"], len(block["columns"])):
        unit = _unit(block, names)
        cells = []
        for point, printed in zip(points, row, strict=True):
            if printed is None:
                continue
            low, high = _printed_so(_middle(printed, block["rule"]), unit, block)
            where = {**dict(zip(block["columns"], names, strict=True)), axis: point}
            rule = {**block["rule"], "printed": printed, "unit": unit}
            rule["where"] = {**block["rule"].get("where", {}), **where}
            cells.append(
                {
                    "id": "/".join([block["id"], *names, _short(axis, point)]),
                    "published": _in_words(printed, block["rule"]["kind"]),
                    "rule": rule,
                    "low": low,
                    "high": high,
                }
            )
        entries += cells
        if len(cells) > 1 and "decimals" in block and block["rule"].get("count") != 0:
            rows.append(
                {
                    "id": "/".join([block["id"], *names, TOGETHER]),
                    "published": f"the {len(cells)} numbers of this row",
                    "rule": {"kind": block["rule"]["kind"], TOGETHER: cells},
                    "low": math.exp(-_rounding(cells)),
                    "high": math.exp(_rounding(cells)),
                }
            )
    shared = {key: block[key] for key in SHARED if key in block}
    return [
        *({**entry, **shared, "family": len(entries)} for entry in entries),
        *({**entry, **shared, "family": len(rows)} for entry in rows),
    ]


def fault(block: Any, kinds: Mapping[str, Kind]) -> str | None:
    """In one line what is wrong with a block, None if nothing is."""
    if not isinstance(block, Mapping):
        return f"a series must be a mapping, got {block!r}"
    for key in sorted(KEYS - set(block)):
        return f"`{key}` is missing"
    known = KEYS | ROUNDING | OPTIONAL
    for key in sorted(set(block) - known):
        return f"a key must be one of {', '.join(sorted(known))}, got {key!r}"
    axis = block["axis"]
    if not isinstance(axis, Mapping) or len(axis) != 1:
        return f"`axis` must be one column with its values, got {axis!r}"
    if block.get("setting"):
        return _fault_of_cells(block, None)
    rule = block.get("rule")
    name = rule.get("kind") if isinstance(rule, Mapping) else rule
    possible = sorted(key for key, kind in kinds.items() if kind.in_series)
    if name not in possible:
        return f"`kind` of the rule must be one of {', '.join(possible)} in a series, got {name!r}"
    return _fault_of_rounding(block, kinds[name]) or _fault_of_cells(block, kinds[name].cell)


def _fault_of_rounding(block: Mapping[str, Any], kind: Kind) -> str | None:
    given = sorted(ROUNDING & set(block))
    if len(given) != 1:
        return f"one of `decimals` and `within` must be given, got {' and '.join(given) or 'none'}"
    if "within" in block:
        if not kind.exact and block["rule"].get("count") != 0:
            return "`within` is for numbers that nothing random enters: `decimals` must be given"
        if not _is_number(block["within"]) or block["within"] < 0:
            return f"`within` must be a number of at least 0, got {block['within']!r}"
        return None
    decimals = block["decimals"]
    names = {names[0] for names, _ in _rows(block["cells"], len(block["columns"])) if names}
    if isinstance(decimals, Mapping) and set(decimals) != names:
        return f"`decimals` must have the keys {', '.join(sorted(names))}, got {sorted(decimals)}"
    given_numbers = decimals.values() if isinstance(decimals, Mapping) else [decimals]
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in given_numbers):
        return f"`decimals` must be whole numbers of at least 0, got {decimals!r}"
    return None


def _unit(block: Mapping[str, Any], names: tuple[str, ...]) -> float:
    """Half a unit in the last place of print."""
    if "decimals" not in block:
        return float(block.get("within", 0))
    decimals = block["decimals"]
    return 0.5 * 10.0 ** -int(decimals[names[0]] if isinstance(decimals, Mapping) else decimals)


def _printed_so(middle: float, unit: float, block: Mapping[str, Any]) -> tuple[float, float]:
    """Least and the largest number that is printed as `middle`."""
    if not block.get("cut"):
        return middle - unit, middle + unit
    return (middle, middle + 2 * unit) if middle >= 0 else (middle - 2 * unit, middle)


def _fault_of_cells(block: Mapping[str, Any], several: Cell | None) -> str | None:
    (points,) = block["axis"].values()
    for names, row in _rows(block["cells"], len(block["columns"])):
        where = "/".join(names)
        if len(names) != len(block["columns"]):
            return f"`cells` must be nested by {' and '.join(block['columns'])}, got {where!r}"
        if not isinstance(row, list) or len(row) != len(points):
            return f"`cells` of {where!r} must be a list of length {len(points)}, got {row!r}"
        wrong = [cell for cell in row if not _is_cell(cell, several)]
        if wrong:
            possible = f"a number, {several.meaning}" if several else "a number"
            return f"a cell of {where!r} must be {possible} or null, got {wrong[0]!r}"
    return None


def _rows(cells: Any, depth: int, names: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Nested keys and what is below them."""
    if len(names) == depth or not isinstance(cells, Mapping):
        yield names, cells
        return
    for name, below in cells.items():
        yield from _rows(below, depth, (*names, str(name)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_cell(cell: Any, several: Cell | None) -> bool:
    if cell is None or _is_number(cell):
        return True
    if several is None or not isinstance(cell, list) or len(cell) != several.size:
        return False
    if not all(map(_is_number, cell)):
        return False
    # A mean comes with its standard deviation; longer cells are ends around a middle.
    return bool(cell[1] >= 0) if several.size == 2 else cell == sorted(cell)


def _short(axis: str, point: Any) -> str:
    if isinstance(point, str):
        return point
    if not isinstance(point, Mapping):
        return f"{axis}={point:g}"
    return f"{axis}={point.get('at_least', 0):g}-{point.get('below', math.inf):g}"


def _rounding(cells: list[dict[str, Any]]) -> float:
    """How far rounding may move the mean of numbers, on their scale."""
    scales = [scale_of(cell["rule"]["metric"], cell["rule"]["unit"]) for cell in cells]
    widths = [
        scale.of(max(cell["high"], cell["low"])) - scale.of(cell["low"])
        for scale, cell in zip(scales, cells, strict=True)
    ]
    finite = [width for width in widths if math.isfinite(width)]
    return sum(finite) / (2 * len(finite)) if finite else 0.0


def _middle(printed: Any, rule: Mapping[str, Any]) -> float:
    if not isinstance(printed, list):
        return float(printed)
    if rule.get("of") == "half_width":
        return float(printed[2] - printed[0]) / 2
    if rule["kind"] == "spread":
        return float(printed[0])
    return float(printed[1])


def _in_words(printed: Any, kind: str) -> str:
    if not isinstance(printed, list):
        return f"{printed:g}"
    if kind == "interval":
        return f"{printed[1]:g} ({printed[0]:g} to {printed[2]:g})"
    if kind == "spread":
        return f"{printed[0]:g} (sd {printed[1]:g})"
    return f"{printed[1]:g} (quartiles {printed[0]:g} and {printed[2]:g})"
