"""Compiled code on disk, found by the content of its sources, wherever they lie.

Numba's own index goes by the path of a file and by its content alone: another copy of the same
sources compiles anew, and a change in what a function calls is not noticed. Here the name of a
file is a digest of all that its code comes from, so that all checkouts of a user share one folder.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import pickle
import sys
import time
import types
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import serialize
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult

from dpmc.numerics import user_cache
from dpmc.numerics.source_digest import PACKAGES, canonical, code_digest

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: processes compile side by side
    fcntl = None

CONFIG: Any = numba.config
SUFFIX = ".nbc"
LOCKS = ".compiling"
DIGITS = 16
DIGEST_BYTES = hashlib.sha256().digest_size
# How everything is compiled is part of what the code comes from.
OPTIONS = "dpmc.numerics.compile_cache"
# Settings of Numba that change the code that it makes.
SETTINGS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")
# How long a process waits for another that compiles the same, and how often it looks.
SECONDS_TO_WAIT, SECONDS_BETWEEN_LOOKS = 600.0, 0.05
# Under this name the digest of a text stands among the globals of what is made from it.
KEY = "_dpmc_key"


def root() -> Path:
    """Return the folder of compiled code: NUMBA_CACHE_DIR if set, else in the user's cache."""
    if CONFIG.CACHE_DIR:
        return Path(CONFIG.CACHE_DIR)
    return user_cache.folder() / "compiled"


def digest_of(value: object) -> str:
    """Return the SHA-256 digest of the canonical text of `value`, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


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
    if module.partition(".")[0] not in PACKAGES:
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


def folder(function: Callable[..., Any]) -> Path | None:
    """Return where compiled code of a function is kept, None if it is not known.

    Raises
    ------
    DpmcError
        If the function claims to be of a module that the package does not have.
    """
    description = described(function)
    if description is None:
        return None
    return root() / digest_of([description, code_digest(OPTIONS), _tools()])[:DIGITS]


def _tools() -> list[Any]:
    """Return the versions and settings of what compiles, and of what the code works on."""
    versions = [numba.__version__, llvmlite.__version__, np.__version__]
    settings = [repr(getattr(CONFIG, name, None)) for name in SETTINGS]
    return [*versions, sys.implementation.cache_tag, getattr(sys, "abiflags", ""), *settings]


class ContentCache(_Cache):
    """Compiled code of one function: a file for each of its signatures and kind of processor.

    A file is written under another name first, holds one signature, and begins with the digest of
    the rest: processes that write at the same time do each other no harm, and what is damaged is
    compiled anew. A folder that cannot be written to is read only.

    Of several processes that need the same code at once one compiles it, where the others can see
    that: a minute for the longest chains.
    """

    # Digests take a while: the first call asks for them, not the import of a module.
    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._enabled = True
        self._locked: list[tuple[Path, int]] = []

    @functools.cached_property
    def _folder(self) -> Path | None:
        return folder(self._function)

    @property
    def cache_path(self) -> str | None:
        """The folder of these files."""
        return None if self._folder is None else str(self._folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for a signature, None if there is none."""
        target_context.refresh()
        path = self._path(sig, target_context.codegen())
        if path is None:
            return None
        found = _read(path, sig, target_context)
        if found is None and self._wait(path):
            found = _read(path, sig, target_context)
        return found

    def _wait(self, path: Path) -> bool:
        """Wait for another process that compiles for a file, and return whether there was one."""
        place = int(path.parent.name + path.stem.rpartition("-")[2], 16) % 2**62
        waited, deadline = False, time.monotonic() + SECONDS_TO_WAIT
        folder = path.parent.parent
        while (free := _lock(folder, place)) is False:
            if time.monotonic() > deadline:
                return True
            waited = True
            time.sleep(SECONDS_BETWEEN_LOOKS)
        if free:
            self._locked.append((folder, place))
        return waited

    def unlock(self) -> None:
        """Let other processes compile what this one has compiled, or could not."""
        while self._locked:
            _lock(*self._locked.pop(), free=True)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code for a signature, if a file can hold it."""
        path = self._path(sig, data.codegen)
        if path is None or data.library.has_dynamic_globals or data.lifted:
            return
        dumps: Any = serialize.dumps
        content = dumps((sig, data._reduce()))
        partial = path.with_name(f".{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(hashlib.sha256(content).digest() + content)
            partial.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink()

    def _path(self, sig: Any, codegen: Any) -> Path | None:
        text = str(sig)
        # A function as an argument is another one in every process.
        if not self._enabled or self._folder is None or " at 0x" in text:
            return None
        name = digest_of([text, [str(part) for part in codegen.magic_tuple()]])[:DIGITS]
        return self._folder / f"{self._function.__name__}-{name}{SUFFIX}"

    def enable(self) -> None:
        """Look for compiled code, and keep it."""
        self._enabled = True

    def disable(self) -> None:
        """Compile in memory."""
        self._enabled = False

    def flush(self) -> None:
        """Remove what is kept of the function."""
        if self._folder is not None:
            for path in self._folder.glob(f"{self._function.__name__}-*{SUFFIX}"):
                path.unlink(missing_ok=True)


def _read(path: Path, sig: Any, target_context: Any) -> Any:
    """Return the compiled code in a file, None if it has none for the signature."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content = data[DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != data[:DIGEST_BYTES]:
        return None
    known, parts = pickle.loads(content)
    result: Any = CompileResult
    return result._rebuild(target_context, *parts) if known == sig else None


@functools.cache
def _locks(folder: Path, process: int) -> int:
    """Return the file whose bytes processes lock, open as long as this one lives, -1 for none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder / LOCKS, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        return -1


def _lock(folder: Path, place: int, free: bool = False) -> bool | None:
    """Lock a byte or free it; return False if another process has it, None if nobody can.

    A lock ends with its process, however that ends, and is not inherited by a fork.
    """
    file = _locks(folder, os.getpid())
    if fcntl is None or file < 0:
        return None
    try:
        fcntl.lockf(file, fcntl.LOCK_UN if free else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except OSError as error:
        return False if error.errno in (errno.EACCES, errno.EAGAIN) else None
    return True


def keep(compiled: Any) -> Any:
    """Let a function that Numba is to compile be found by content, and return it.

    Numba's settings of a cache (a folder, classes that choose one) hold for a whole process,
    others' functions included, and leave its index as it is, in which two processes that write at
    once can lose or mix up entries. So each function is given a cache of its own, an
    implementation of Numba's abstract class, at the place where ``Dispatcher.enable_caching``
    puts one. Python functions, which Numba returns where it is switched off, stay as they are.
    """
    if hasattr(compiled, "enable_caching"):
        cache = compiled._cache = ContentCache(compiled.py_func)
        compile_one = compiled.compile

        def compile_in_turn(sig: Any) -> Any:
            try:
                return compile_one(sig)
            finally:
                cache.unlock()

        compiled.compile = compile_in_turn
    return compiled
