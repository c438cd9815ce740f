"""Printed series: one compact block of a file of claims is many numbers, each judged alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from scipy.special import stdtrit

KEYS = {"id", "where", "rule", "margin", "columns", "axis", "cells"}
OPTIONAL = {"variants"}
KINDS = ("quartiles", "interval", "spread", "curve", "problem")
# Those whose cells may be several numbers: how many, and what they are.
SEVERAL = {
    "quartiles": (3, "quartiles, ascending"),
    "interval": (3, "an interval around a mean, ascending"),
    "spread": (2, "a mean and a standard deviation >= 0"),
}


def expand(block: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one entry per printed cell of a series.

    Parameters
    ----------
    block : mapping
        Keys `id`, `where`, `rule` and, where given, `variants` as in an entry; `columns`:
        what the nested keys of `cells` name; `axis`: one column and its values along each
        list of cells; `cells`: lists of a number, of ``[first quartile, median, third
        quartile]``, of ``[lower end, mean, upper end]`` of an interval or of ``[mean,
        standard deviation]``, null where nothing is printed; `margin`: the largest
        difference that counts as equal: a number, or the largest of `least`, of `of_value`, a
        share of the printed number, and of `of_sd`, a share of the standard deviation of
        printed runs, which a mean with it or with its interval tells.

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
                    "published": _told(printed, block["rule"]["kind"]),
                    "rule": rule,
                    "low": middle - margin,
                    "high": middle + margin,
                }
            )
    shared = {key: block[key] for key in OPTIONAL if key in block}
    return [{**entry, **shared, "family": len(entries)} for entry in entries]


def problem_of(block: Any) -> str | None:
    """Return in one line what is wrong with a block, None if nothing is."""
    if not isinstance(block, Mapping) or set(block) - OPTIONAL != KEYS:
        return f"allowed keys {', '.join(sorted(KEYS))}, all of them, and variants"
    rule, margin = block["rule"], block["margin"]
    kind = rule.get("kind") if isinstance(rule, Mapping) else rule
    if kind not in KINDS:
        return f"rule {kind!r}, allowed {', '.join(KINDS)} in a series"
    parts = margin if isinstance(margin, Mapping) else {"least": margin}
    shares = {"of_value", "of_sd"} if kind in ("spread", "interval") else {"of_value"}
    if not {"least"} <= set(parts) <= {"least", *shares}:
        return f"margin {margin!r}, allowed a number or least and {', '.join(sorted(shares))}"
    if not all(_is_number(part) and part >= 0 for part in parts.values()):
        return f"margin {margin!r}, allowed >= 0"
    axis = block["axis"]
    if not isinstance(axis, Mapping) or len(axis) != 1:
        return f"axis {axis!r}, allowed one column with its values"
    (points,) = axis.values()
    for names, row in _rows(block["cells"], len(block["columns"])):
        where = "/".join(names)
        if len(names) != len(block["columns"]):
            return f"cells of {where!r}, allowed below {' and '.join(block['columns'])}"
        if not isinstance(row, list) or len(row) != len(points):
            return f"cells of {where!r}, allowed a list of {len(points)}"
        wrong = [cell for cell in row if not _is_cell(cell, kind)]
        if wrong:
            _, told = SEVERAL.get(str(kind), (0, "nothing else"))
            return f"cell {wrong[0]!r} of {where!r}, allowed a number or {told}"
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


def _is_cell(cell: Any, kind: str) -> bool:
    if cell is None or _is_number(cell):
        return True
    count, _ = SEVERAL.get(kind, (0, ""))
    if not isinstance(cell, list) or len(cell) != count or not all(map(_is_number, cell)):
        return False
    return bool(cell[1] >= 0) if kind == "spread" else cell == sorted(cell)


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


def _told(printed: Any, kind: str) -> str:
    if not isinstance(printed, list):
        return f"{printed:g}"
    if kind == "interval":
        return f"{printed[1]:g} ({printed[0]:g} to {printed[2]:g})"
    if kind == "spread":
        return f"{printed[0]:g} (sd {printed[1]:g})"
    return f"{printed[1]:g} (quartiles {printed[0]:g} and {printed[2]:g})"
