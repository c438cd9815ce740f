"""Functions compiled by Numba, which keeps their machine code on disk for other processes.

Numba's cache does not notice an edit in what a function calls. Here the folder that it is given
for a function is named by a digest of the function's module and of all that this imports: an edit,
or another version of the package, compiles anew what depends on it and nothing else.

Machine code is found by a name, the types of arguments and a number that each process counts anew:
closures of one name from two processes would be one in a third. So the name of a closure, and that
of a function which is made from a text, ends with a digest of what it is made from.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import math
import os
import shutil
import threading
import types
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, overload

import numba
import numpy as np

from dpmc.numerics import user_cache
from dpmc.numerics.source_digest import canonical, code_digest
from dpmc.types import DpmcError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: processes compile side by side
    fcntl = None

Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")
CONFIG: Any = numba.config
# Sums may be reordered; NaN keeps its meaning, so that a diverged leapfrog shows.
FASTMATH = {"reassoc", "contract", "arcp", "nsz", "afn"}
# Loops divide by zero as NumPy does. Without a flag of its own a function would have that of its
# first caller.
OPTIONS: Any = {"nogil": True, "error_model": "numpy", "fastmath": False}
# What stands between the name of a function and the digest of what it is made from.
MARK = "#"
# Held while Numba is told of another folder than the user's.
_setting = threading.RLock()


def root() -> Path:
    """Folder of compiled code: NUMBA_CACHE_DIR if set, else in the user's cache."""
    with _setting:
        return Path(CONFIG.CACHE_DIR) if CONFIG.CACHE_DIR else user_cache.folder() / "compiled"


@overload
def njit(function: Function, /, **options: Any) -> Function: ...


@overload
def njit(**options: Any) -> Callable[[Function], Function]: ...


def njit(function: Any = None, /, **options: Any) -> Any:
    """Compile a function as ``numba.njit`` does, and keep the code on disk where it can be.

    Parameters
    ----------
    function : callable
        None to decorate with options.
    **options
        As Numba takes them, in place of `OPTIONS`.
    """
    if function is None:
        return functools.partial(njit, **options)
    if function.__closure__:
        _rename(function, described(function))
    decorate: Any = numba.njit
    # Where sums may be reordered, a function that is optimised once more comes out otherwise. As
    # a part of its callers it is optimised as often in the process that compiles them as in one
    # that takes them from disk.
    options = {**OPTIONS, "forceinline": bool(options.get("fastmath")), **options}
    compiled = decorate(**options)(function)
    if hasattr(compiled, "enable_caching"):  # else Numba is switched off
        compiled.recipe = functools.partial(njit, function, **options)
        compiled.compile = _Compile(compiled)
    return compiled


def kept(function: Callable[..., Result]) -> Callable[..., Result]:
    """Compile a chain or a part of one: its sums may be reordered."""
    return njit(function, fastmath=FASTMATH)


class _Compile:
    """Numba's method `compile` of one function, in a folder of its own and one process at a time.

    Processes take turns: Numba's index of a function could mix up the code for two types of
    arguments that are saved at once, and what another process compiles need only be waited for.
    """

    def __init__(self, compiled: Any) -> None:
        self._compiled, self._compile = compiled, compiled.compile
        self._folder: Path | None = None
        self._looked = False

    def __call__(self, signature: Any) -> Any:
        if not self._looked:
            self._folder, self._looked = self._enabled(), True
        if self._folder is None:
            return self._compile(signature)
        with _turn(self._folder):
            try:
                return self._compile(signature)
            except numba.errors.NumbaError:
                raise
            except Exception:  # of a file that is damaged, or a disk that is full
                shutil.rmtree(self._compiled.stats.cache_path, ignore_errors=True)
                return self._compile(signature)

    def _enabled(self) -> Path | None:
        """Folder in which Numba keeps the function from now on, None if it cannot be kept."""
        function = self._compiled.py_func
        description = described(function)
        cells = function.__closure__ or ()
        # Compiled functions in a closure are other ones in every process.
        if description is None or any(callable(cell.cell_contents) for cell in cells):
            return None
        # Numba looks for the folder where a cache is enabled, and never again.
        with contextlib.suppress(OSError, RuntimeError), _setting:
            folder = root() / _digest(description)
            folder.mkdir(parents=True, exist_ok=True)
            # Else Numba would write beside the sources, whatever these import.
            if os.access(folder, os.W_OK):
                before, CONFIG.CACHE_DIR = CONFIG.CACHE_DIR, str(folder)
                try:
                    self._compiled.enable_caching()
                finally:
                    CONFIG.CACHE_DIR = before
                return folder
        return None


@contextlib.contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, if files can be locked there; it ends with the process."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # also where two processes would wait for each other
            file = stack.enter_context((folder / "lock").open("ab"))
            if fcntl is not None:
                fcntl.lockf(file, fcntl.LOCK_EX)
        yield


def described(value: object) -> Any:
    """All that a function or constant is determined by; None for what is not known.

    Of a function: the code of its module and of what that imports, its place there, and what it
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
    try:
        code = code_digest(function.__module__ or "")
    except DpmcError:  # of a module that is not ours
        return None
    parts = [cell.cell_contents for cell in function.__closure__ or ()]
    cells = [described(part) for part in (*parts, *(function.__defaults__ or ()))]
    if None in cells:
        return None
    line = function.__code__.co_firstlineno
    return [code, _name(function), line, cells]


def _name(function: Any) -> str:
    """Place of a function in its module, without the digest of what a closure is made from."""
    name: str = function.__qualname__
    return name.partition(MARK)[0] if function.__closure__ else name


def _rename(function: Any, description: object) -> None:
    """Give a function a name that no other has in any process, if it is known."""
    if description is not None:
        function.__qualname__ = f"{_name(function)}{MARK}{_digest(description)}"


def _digest(value: object) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]


def compile_source(source: str, fastmath: Any = FASTMATH, **names: Any) -> Any:
    """Compile the function `kernel` of a text, and keep it where all that it uses is known.

    Parameters
    ----------
    source : str
        Python.
    fastmath : bool or set of str
        As Numba takes it.
    **names
        What the text may use besides `math`. See :func:`described`.
    """
    known = {name: described(value) for name, value in names.items()}
    key = None
    if None not in known.values():
        flags = sorted(fastmath) if isinstance(fastmath, set) else fastmath
        key = _digest([source, flags, known])
    # Numba asks for the module of a function when it takes it from disk.
    module = __name__ if key else "kernels"
    namespace: dict[str, Any] = {"__name__": module, "math": math, **names}
    exec(compile(source, _written(source, key), "exec"), namespace)  # the text is ours alone
    function = namespace["kernel"]
    _rename(function, key)
    compiled: Any = njit(function, fastmath=fastmath)
    if hasattr(compiled, "recipe"):
        compiled.recipe = functools.partial(compile_source, source, fastmath, **names)
    return compiled


def _written(source: str, key: str | None) -> str:
    """Path of a file with a text: Numba keeps nothing of functions that have none."""
    path = root() / "kernels" / f"k_{key}.py"
    partial = path.with_name(f".{uuid.uuid4().hex}")
    with contextlib.suppress(OSError):
        if key is None:
            return "<kernel>"
        if not path.is_file() or path.read_text(encoding="utf-8") != source:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(source, encoding="utf-8")
            partial.replace(path)
        return str(path)
    with contextlib.suppress(OSError):
        partial.unlink()
    return "<kernel>"


def kept_loop(loop: Any) -> Any:
    """Compiled function like one that closes over compiled functions, kept if all are known.

    It is called by a text: Numba would not recognise such a closure in another process.
    """
    arguments = ", ".join(inspect.signature(loop.py_func).parameters)
    source = f"def kernel({arguments}):\n    return loop({arguments})\n"
    return compile_source(source, False, loop=loop)


@functools.cache
def assemble(make: Callable[..., Any], *functions: Any) -> Any:
    """Compiled loop for some functions of its population.

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
    """Compile a function if it is not."""
    return function if hasattr(function, "py_func") else njit(function)


def identity(theta: Any) -> Any:
    """Theta: the coefficients of a model that names none."""
    return theta
