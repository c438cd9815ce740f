"""Models as bytes: another process compiles from them what this one has compiled."""

from __future__ import annotations

import io
import pickle
from typing import Any

from numba.core import serialize
from numba.core.dispatcher import Dispatcher

from dpmc.numerics.content_cache import KEY, ContentCache
from dpmc.numerics.jit import SelfContainedCompiler, njit
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
        if isinstance(value, Dispatcher) and _own(value):
            compiled: Any = value  # it has no types
            options = {k: v for k, v in compiled.targetoptions.items() if k != "nopython"}
            kept = isinstance(compiled._cache, ContentCache)
            key = compiled.py_func.__globals__.get(KEY)
            return _compiled, (compiled.py_func, options, kept, key)
        return super().reducer_override(value)


def _own(function: Any) -> bool:
    pipeline = getattr(function._compiler, "pipeline_class", None)
    return isinstance(pipeline, type) and issubclass(pipeline, SelfContainedCompiler)


def _compiled(function: Any, options: dict[str, Any], kept: bool, key: str | None) -> Any:
    if key is not None:
        function.__globals__[KEY] = key
    return njit(cache=kept, **options)(function)
