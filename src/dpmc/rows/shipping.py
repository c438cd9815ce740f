"""Models as bytes: another process compiles from them what this one has compiled."""

from __future__ import annotations

import io
import operator
import pickle
from typing import Any

from numba.core import serialize

from dpmc.types import DpmcError, Model

PICKLER: Any = serialize.NumbaPickler


def packed(model: Model) -> bytes:
    """Return a model as bytes.

    Raises
    ------
    DpmcError
        If its functions hold what has no bytes, such as an open file.
    """
    with io.BytesIO() as stream:
        try:
            _Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(model)
        except Exception as error:  # whatever the functions of a user hold
            reason = " ".join(str(error).split())[:200]
            raise DpmcError(
                f"model {model.name!r}: its functions must be such that other processes can be "
                f"given them: {reason}"
            ) from None
        return stream.getvalue()


def unpacked(data: bytes) -> Model:
    """Return the model of `packed`."""
    model: Model = pickle.loads(data)
    return model


class _Pickler(PICKLER):  # type: ignore[misc]
    """Numba's, but that functions compiled by this package are compiled so again."""

    def reducer_override(self, value: Any) -> Any:
        """Return what a compiled function of this package is made anew from."""
        recipe = getattr(value, "recipe", None) if hasattr(value, "py_func") else None
        return super().reducer_override(value) if recipe is None else (operator.call, (recipe,))
