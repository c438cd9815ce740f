"""Compiled functions, cached on disk for other processes.

A chain and what it calls take longer to compile than many jobs take to run. Numba keeps
compiled code, but notices a change in the file of a function only, not in those of the
functions that it calls. Folders are therefore named by a digest of all that the code comes
from.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import math
import os
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numba
import numpy as np
import platformdirs

from dpmc.numerics.jit import njit
from dpmc.numerics.source_digest import PACKAGE, canonical, code_digest

CONFIG: Any = numba.config
FOLDER = "dpmc"
DIGITS = 16
# Sums may be reordered; NaN keeps its meaning, so that a diverged leapfrog shows.
FASTMATH = {"reassoc", "contract", "arcp", "nsz", "afn"}
# Under this name the digest of a text stands among the globals of what is made from it.
KEY = "_dpmc_key"
# Loops divide by zero as NumPy does; functions of a model raise, as Python does.
LOOP: dict[str, Any] = {"error_model": "numpy"}


def root() -> Path:
    """Return the folder of compiled code: NUMBA_CACHE_DIR if set, else in the user's cache."""
    if CONFIG.CACHE_DIR:
        return Path(CONFIG.CACHE_DIR)
    return platformdirs.user_cache_path(FOLDER) / "compiled"


def folder(module: str) -> Path:
    """Return where compiled chains of `module` are kept.

    Raises
    ------
    DpmcError
        If there is no such module in the package.
    """
    return root() / code_digest(module, __name__)[:DIGITS]


def kept(function: Callable[..., Any]) -> Any:
    """Compile a chain, and keep it for other processes if the folder can be written to.

    Raises
    ------
    DpmcError
        If the function does not belong to a module of the package.
    """
    return _compile(function, folder(function.__module__), fastmath=FASTMATH, **LOOP)


def kept_closure(function: Callable[..., Any]) -> Any:
    """Compile a function of a model, and keep it if it is known and closes over data alone.

    Numba tells closures apart by these data; compiled functions among them would be new ones
    in every process.
    """
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    if any(callable(cell) for cell in cells) or described(function) is None:
        return _compile(function, None)
    return _compile(function, folder(function.__module__))


def kept_source(source: str, fastmath: Any, names: Mapping[str, Any]) -> Any:
    """Compile the function `kernel` of a text, and keep it where all that it uses is known.

    Parameters
    ----------
    source : str
        Python.
    fastmath : bool or set of str
        As Numba takes it.
    names : mapping of str to object
        What the text may use besides `math`. See :func:`described`.
    """
    told = {name: described(value) for name, value in names.items()}
    key, path, text = None, None, "<dpmc.numerics.compile_cache>"
    if None not in told.values():
        flags = sorted(fastmath) if isinstance(fastmath, set) else fastmath
        key = hashlib.sha256(
            canonical([source, flags, told, code_digest(__name__)]).encode()
        ).hexdigest()
        path = root() / key[:DIGITS]
        text = str(path / "kernel.py")
        if not _written(Path(text), source):
            path = None
    # Numba asks for the module of a function when it takes it from disk.
    namespace: dict[str, Any] = {"__name__": __name__, KEY: key, "math": math, **names}
    exec(compile(source, text, "exec"), namespace)  # the text is ours alone
    return _compile(namespace["kernel"], path, fastmath=fastmath, **LOOP)


def kept_loop(loop: Any) -> Any:
    """Keep a compiled function that closes over compiled functions, where all of them are known.

    It is called by a text: Numba would not recognise such a closure in another process.
    """
    arguments = ", ".join(inspect.signature(loop.py_func).parameters)
    source = f"\ndef kernel({arguments}):\n    return loop({arguments})\n"
    return kept_source(source, False, {"loop": loop})


def described(value: object) -> Any:
    """Return all that a function or constant is determined by, None for what is not known.

    A function: the code of its module and of what that imports, its place there, and what it
    closes over. Nothing is known of functions of other packages.
    """
    if isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return [value.dtype.str, list(value.shape), hashlib.sha256(value.tobytes()).hexdigest()]
    if isinstance(value, types.ModuleType):
        return ["module", value.__name__]
    # Compiled functions and intrinsics of Numba keep the Python function.
    function = getattr(value, "py_func", getattr(value, "_defn", value))
    if not isinstance(function, types.FunctionType):
        return None
    module = function.__module__ or ""
    if KEY in function.__globals__:  # made from a text, which has no module of its own
        return function.__globals__[KEY]
    if not module.startswith(f"{PACKAGE}."):
        return None
    cells = [described(cell.cell_contents) for cell in function.__closure__ or ()]
    cells += [described(default) for default in function.__defaults__ or ()]
    if None in cells:
        return None
    return [code_digest(module), function.__qualname__, _code(function.__code__), cells]


def _code(code: types.CodeType) -> list[Any]:
    """Return what tells two functions of one name and line apart."""
    constants = [_code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return [code.co_firstlineno, code.co_code.hex(), list(code.co_names), constants]


def _compile(function: Callable[..., Any], path: Path | None, **options: Any) -> Any:
    if path is None or not _writable(path):  # Numba would keep it beside the source
        return njit(nogil=True, **options)(function)
    before, CONFIG.CACHE_DIR = CONFIG.CACHE_DIR, str(path)
    try:
        return njit(cache=True, nogil=True, **options)(function)
    finally:
        CONFIG.CACHE_DIR = before


def _written(path: Path, source: str) -> bool:
    """Write a text that is not there yet, once: Numba looks at the time of the file."""
    if path.is_file():
        return True
    partial = path.with_name(f".{os.getpid()}.py")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(source, encoding="utf-8")
        with contextlib.suppress(FileExistsError):
            os.link(partial, path)
        partial.unlink()
    except OSError:
        return False
    return True


def _writable(path: Path) -> bool:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(path, os.W_OK)


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
