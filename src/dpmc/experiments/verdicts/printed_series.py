"""Printed series: a compact block of a file of claims, of which every number is judged alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from scipy.special import stdtrit

from dpmc.experiments.verdicts.kinds import Cell, Kind

KEYS = {"id", "where", "output", "rule", "margin", "columns", "axis", "cells"}
OPTIONAL = {"variants"}


def expand(block: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one entry per printed cell of a series.

    Parameters
    ----------
    block : mapping
        Keys `id`, `where`, `output`, `rule` and optionally `variants` as in an entry; `columns`:
        what the nested keys of `cells` name; `axis`: one column and its values along each
        list of cells; `cells`: lists of a number, of ``[first quartile, median, third
        quartile]``, of ``[lower end, mean, upper end]`` of an interval or of ``[mean,
        standard deviation]``, null where nothing is printed; `margin`: the largest
        difference that counts as equal: a number, or the largest of `least`, of `of_value`, a
        share of the printed number, and of `of_sd`, a share of the standard deviation of
        printed runs, where print gives it or the interval of a mean.

    Returns
    -------
    list of dict
        Entries whose limits are the printed number less and plus the margin. All cells of
        a block share its error rate: key `family` holds their number.
    """
    ((axis, points),) = block["axis"].items()
    entries = []
    for names, row in _rows(block["cells"], len(block["columns"])):
        for point, printed in zip(points, row, strict=True):
            if printed is None:
                continue
            middle, margin = _middle(printed, block["rule"]), _margin(printed, block)
            where = {**dict(zip(block["columns"], names, strict=True)), axis: point}
            rule = {**block["rule"], "printed": printed}
            rule["where"] = {**block["rule"].get("where", {}), **where}
            entries.append(
                {
                    "id": "/".join([block["id"], *names, _short(axis, point)]),
                    "where": block["where"],
                    "output": block["output"],
                    "published": _in_words(printed, block["rule"]["kind"]),
                    "rule": rule,
                    "low": middle - margin,
                    "high": middle + margin,
                }
            )
    shared = {key: block[key] for key in OPTIONAL if key in block}
    return [{**entry, **shared, "family": len(entries)} for entry in entries]


def fault(block: Any, kinds: Mapping[str, Kind]) -> str | None:
    """Return in one line what is wrong with a block, None if nothing is.

    Parameters
    ----------
    block : mapping
        As for :func:`expand`.
    kinds : mapping of str to Kind
        The kinds of rules that the document may have.
    """
    if not isinstance(block, Mapping):
        return f"a series must be a mapping, got {block!r}"
    for key in sorted(KEYS - set(block)):
        return f"`{key}` is missing"
    for key in sorted(set(block) - KEYS - OPTIONAL):
        return f"a key must be one of {', '.join(sorted(KEYS | OPTIONAL))}, got {key!r}"
    rule = block["rule"]
    name = rule.get("kind") if isinstance(rule, Mapping) else rule
    possible = sorted(key for key, kind in kinds.items() if kind.in_series)
    if name not in possible:
        return f"`kind` of the rule must be one of {', '.join(possible)} in a series, got {name!r}"
    axis = block["axis"]
    if not isinstance(axis, Mapping) or len(axis) != 1:
        return f"`axis` must be one column with its values, got {axis!r}"
    return _fault_of_margin(block["margin"], name) or _fault_of_cells(block, kinds[name].cell)


def _fault_of_margin(margin: Any, kind: str) -> str | None:
    parts = margin if isinstance(margin, Mapping) else {"least": margin}
    shares = {"of_value", "of_sd"} if kind in ("spread", "interval") else {"of_value"}
    if not {"least"} <= set(parts) <= {"least", *shares}:
        return (
            f"`margin` must be a number, or `least` and {' or '.join(sorted(shares))}, "
            f"got {margin!r}"
        )
    if not all(_is_number(part) and part >= 0 for part in parts.values()):
        return f"`margin` must be at least 0, got {margin!r}"
    return None


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
    """Yield the nested keys and what is below them."""
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


def _middle(printed: Any, rule: Mapping[str, Any]) -> float:
    if not isinstance(printed, list):
        return float(printed)
    if rule.get("of") == "half_width":
        return float(printed[2] - printed[0]) / 2
    if rule["kind"] == "spread":
        return float(printed[0])
    return float(printed[1])


def _margin(printed: Any, block: Mapping[str, Any]) -> float:
    margin, rule = block["margin"], block["rule"]
    if not isinstance(margin, Mapping):
        return float(margin)
    shares = [margin.get("of_value", 0.0) * abs(_middle(printed, rule))]
    if isinstance(printed, list) and "of_sd" in margin:
        shares.append(margin["of_sd"] * _deviation(printed, rule))
    return float(max(margin["least"], *shares))


def _deviation(printed: Any, rule: Mapping[str, Any]) -> float:
    """Return the standard deviation over printed runs: as printed, or from a printed interval."""
    if rule["kind"] == "spread":
        return float(printed[1])
    half, count = (printed[2] - printed[0]) / 2, int(rule["count"])
    return float(half * math.sqrt(count) / stdtrit(count - 1, 0.5 + rule["confidence"] / 2))


def _in_words(printed: Any, kind: str) -> str:
    if not isinstance(printed, list):
        return f"{printed:g}"
    if kind == "interval":
        return f"{printed[1]:g} ({printed[0]:g} to {printed[2]:g})"
    if kind == "spread":
        return f"{printed[0]:g} (sd {printed[1]:g})"
    return f"{printed[1]:g} (quartiles {printed[0]:g} and {printed[2]:g})"
