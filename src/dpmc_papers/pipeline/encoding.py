"""JSON for the metadata of files, with numbers that JSON does not know."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def to_json(value: object) -> str:
    """Return the JSON text of nested values, keys sorted."""
    return json.dumps(_encoded(value), sort_keys=True, allow_nan=False)


def _encoded(value: object) -> object:
    # JSON has no infinity: it becomes an object, so that no text is taken for a number.
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"not_finite": str(value)}
    if isinstance(value, Mapping):
        return {str(key): _encoded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_encoded(entry) for entry in value]
    return value


def from_json(text: bytes) -> Any:
    """Return the value of which :func:`to_json` made a text."""

    def decoded(entry: dict[str, Any]) -> Any:
        return NOT_FINITE[entry["not_finite"]] if set(entry) == {"not_finite"} else entry

    return json.loads(text, object_hook=decoded)
