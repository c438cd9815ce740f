"""Columns of a file of Arrow, by its schema: names, an index of pandas, types."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmc.shards.content import DOUBLE, OTHER, PARSED
from dpmc.types import DpmcError, is_name

# What pandas calls a level of an index that has no name.
LEVEL = "__index_level_"


def columns(schema: Any, told: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Places of the columns, and names of those that pandas wrote as an index.

    An index without a name is none of the columns.

    Parameters
    ----------
    schema : pyarrow.Schema
    told : str
        Before the message.
    """
    try:
        metadata = schema.pandas_metadata or {}
        index = tuple(name for name in metadata.get("index_columns", ()) if isinstance(name, str))
        kinds = [str(one.get("numpy_type")) for one in metadata.get("column_indexes", ())]
    except (ValueError, TypeError, AttributeError):  # of a writer that only looks like pandas
        raise DpmcError(f"{told} what pandas notes in a file must be its own, got others") from None
    places = tuple(k for k, name in enumerate(schema.names) if not name.startswith(LEVEL))
    names = [schema.names[k] for k in places]
    # Integers that somebody gave are texts in a file, and pandas notes that they were none.
    if not (kinds and all(kind.startswith("int") for kind in kinds)):
        for k, name in enumerate(names):
            if not is_name(name):
                raise DpmcError(
                    f"{told} columns must have names, and column {k} has a number in the place of "
                    "one, as of a file that was read without its header"
                )
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DpmcError(f"{told} columns must have different names, got {twice!r} twice")
    return places, index


def dtype(kind: Any) -> str:
    """NumPy's name of a type of Arrow, `PARSED` or `OTHER`."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return dtype(kind.value_type)
    if types.is_boolean(kind):
        return "bool"
    if types.is_integer(kind) or types.is_floating(kind):
        return str(np.dtype(kind.to_pandas_dtype()).name)
    if types.is_decimal(kind) or types.is_null(kind):
        return DOUBLE
    texts = types.is_string, types.is_large_string, types.is_binary, types.is_large_binary
    return PARSED if any(is_one(kind) for is_one in texts) else OTHER
