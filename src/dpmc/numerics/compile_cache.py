"""Compiled functions, cached on disk for other processes.

A chain and what it calls take longer to compile than many jobs take to run. Where the code lies,
and what it is found by, is a matter of :mod:`dpmc.numerics.content_cache`.
"""

from __future__ import annotations

import functools
import inspect
import math
import types
from collections.abc import Callable, Mapping
from typing import Any

from dpmc.numerics.content_cache import DIGITS, KEY, described, digest_of
from dpmc.numerics.jit import njit
from dpmc.numerics.source_digest import PACKAGES, code_digest
from dpmc.types import DpmcError

# Sums may be reordered; NaN keeps its meaning, so that a diverged leapfrog shows.
FASTMATH = {"reassoc", "contract", "arcp", "nsz", "afn"}
# Loops divide by zero as NumPy does; functions of a model raise, as Python does.
LOOP: dict[str, Any] = {"error_model": "numpy"}


def kept(function: Callable[..., Any]) -> Any:
    """Compile a chain, and keep it for other processes if the folder can be written to.

    Raises
    ------
    DpmcError
        If the function does not belong to a module of the package.
    """
    if function.__module__.partition(".")[0] not in PACKAGES:
        raise DpmcError(f"`function` must be of a module of dpmc, got {function.__module__!r}")
    return _compile(function, fastmath=FASTMATH, **LOOP)


def kept_closure(function: Callable[..., Any]) -> Any:
    """Compile a function of a model, and keep it if it is known and closes over data alone.

    Compiled functions among what it closes over would be new ones in every process.
    """
    if not function.__closure__:
        return _compile(function)
    description = described(function)
    if description is None or any(callable(cell.cell_contents) for cell in function.__closure__):
        return njit(nogil=True)(function)
    return _compile(_named(function, digest_of(description)))


def kept_source(source: str, fastmath: Any, names: Mapping[str, Any]) -> Any:
    """Compile the function `kernel` of a text, and keep it where all that it uses is known.

    Parameters
    ----------
    source : str
        Python.
    fastmath : bool or set of str
        As Numba takes it.
    names : mapping of str to object
        What the text may use besides `math`. See :func:`dpmc.numerics.content_cache.described`.
    """
    told = {name: described(value) for name, value in names.items()}
    key = None
    if None not in told.values():
        flags = sorted(fastmath) if isinstance(fastmath, set) else fastmath
        key = digest_of([source, flags, told, code_digest(__name__)])
    # Numba asks for the module of a function when it takes it from disk.
    namespace: dict[str, Any] = {"__name__": __name__, KEY: key, "math": math, **names}
    text = f"<{__name__}>"
    exec(compile(source, text, "exec"), namespace)  # the text is ours alone
    kernel = namespace["kernel"]
    if key is None:
        return njit(nogil=True, fastmath=fastmath, **LOOP)(kernel)
    return _compile(_named(kernel, key), fastmath=fastmath, **LOOP)


def kept_loop(loop: Any) -> Any:
    """Keep a compiled function that closes over compiled functions, where all of them are known.

    It is called by a text: Numba would not recognise such a closure in another process.
    """
    arguments = ", ".join(inspect.signature(loop.py_func).parameters)
    source = f"\ndef kernel({arguments}):\n    return loop({arguments})\n"
    return kept_source(source, False, {"loop": loop})


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    return njit(cache=True, nogil=True, **options)(function)


def _named(function: Any, digest: str) -> Any:
    """Return a copy of a function whose place in its module ends with a digest.

    Machine code is found by the name that it was compiled under: place, types of arguments, and
    a number that each process counts anew. Two functions of one place that two processes have
    compiled would be one in a third.
    """
    copy = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__module__, copy.__doc__ = function.__module__, function.__doc__
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, function.__annotations__
    copy.__qualname__ = f"{function.__qualname__}_{digest[:DIGITS]}"
    return copy


@functools.cache
def assemble(make: Callable[..., Any], *functions: Any) -> Any:
    """Compile a loop for some functions of its population, and keep it on disk if it can be.

    Parameters
    ----------
    make : callable
        Given the functions, returns the loop, which closes over them: a compiled function that
        is an argument could not be kept.
    *functions : compiled functions
    """
    return kept_loop(make(*functions))


@functools.cache
def compile_once(function: Callable[..., Any]) -> Any:
    """Return `function` compiled by Numba, or itself if it is compiled already."""
    return function if hasattr(function, "py_func") else kept_closure(function)


def identity(theta: Any) -> Any:
    """Return theta: the coefficients of a model that names none."""
    return theta
