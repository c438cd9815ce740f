"""Numba's `njit` for the functions of this package: compiled code that is self-contained.

Most functions are parts of others: compiled code calls them, and Python does not. Numba
optimises each of them for itself, and makes machine code and a way in from Python. Here that is
done for what is kept on disk, and for what Python does call: the rest is linked into its callers
first, and optimised there. Where functions have many parts that takes half of the time.

Only what is compiled here goes through :class:`SelfContainedCompiler`; functions that others
compile with Numba are left alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

from dpmc.numerics.content_cache import keep

Function = TypeVar("Function", bound=Callable[..., Any])
# Numba's prefix of the way in from Python.
WAY_IN = "_ZN7cpython"


class SelfContained(JITCodeLibrary):
    """Compiled code that calls its own copies of the functions that it calls.

    Numba optimises these copies once more, but the process that compiles them calls whatever of
    that name it has compiled before, and only one that takes the code from disk calls the copies:
    with sums that may be reordered their last digits differ. Copies that are private leave no
    choice.
    """

    def finalize(self) -> None:
        """Link, optimise and compile, once; see Numba."""
        self._own = {function.name for function in _defined(self._final_module)}
        super().finalize()  # type: ignore[no-untyped-call]

    def _optimize_final_module(self) -> None:
        for function in _defined(self._final_module):
            # Reference counts are those of one runtime.
            if function.name not in self._own and not function.name.startswith("NRT_"):
                function.linkage = "internal"
        super()._optimize_final_module()  # type: ignore[no-untyped-call]


class Part(JITCodeLibrary):
    """Code of a function that compiled functions call: no more than what they link."""

    def finalize(self) -> None:
        """Link what the function calls, and leave the code as it is."""
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(library, "_reload_init"):  # Numba 0.61 and 0.62 have none
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: there is no way in from Python, see :class:`PartDispatcher`."""
        if not name.startswith(WAY_IN):
            raise NotImplementedError(f"{self.name} is a part of compiled functions, got {name!r}")
        return 0

    @property
    def codegen(self) -> Any:
        """Numba's generator of code, which tells this library of no environment."""
        return _WithoutEnvironment(self._codegen)


class _WithoutEnvironment:
    """A generator of code for a library that is not executable: it has no place for globals."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing."""


class SelfContainedCompiler(Compiler):
    """Numba's compiler, with self-contained code as its result."""

    library: type[JITCodeLibrary] = SelfContained

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile one function for the types that the compiler was made for; see Numba."""
        if self.state.library is None:
            made: Any = self.library
            library = made(self.state.targetctx.codegen(), func.__qualname__)
            # As Numba does for a library of its own: the code can be written to disk.
            library.enable_object_caching()
            self.state.library = library
        return super().compile_extra(func)  # type: ignore[no-untyped-call]


class PartCompiler(SelfContainedCompiler):
    """The same for a part of compiled functions."""

    library = Part


class PartDispatcher(CPUDispatcher):
    """A function that is part of those that call it, and compiled as a whole if Python does."""

    whole: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it from Python."""
        return self.whole(*args, **kwargs)


@overload
def njit(function: Function, /) -> Function: ...


@overload
def njit(**options: Any) -> Callable[[Function], Function]: ...


def njit(*function: Any, **options: Any) -> Any:
    """Compile a function as ``numba.njit`` does, to self-contained code.

    Parameters
    ----------
    *function : callable
        None to decorate with options.
    **options
        As Numba takes them, `fastmath` False by default. With ``cache=True`` the code is kept on
        disk, see :mod:`dpmc.numerics.content_cache`.
    """
    if not function:
        return functools.partial(njit, **options)
    # Else those of the first caller, on whom the code of a part would depend.
    options.setdefault("fastmath", False)
    finish = keep if options.pop("cache", False) else _part
    decorate: Any = numba.njit
    return finish(decorate(*function, pipeline_class=SelfContainedCompiler, **options))


def _part(whole: Any) -> Any:
    """Return a function that compiled functions link. Python's own stay as they are."""
    if not hasattr(whole, "targetoptions"):
        return whole  # Numba is switched off
    options = {**whole.targetoptions, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made: Any = PartDispatcher
    part = made(whole.py_func, {}, options, PartCompiler)
    # Whoever reads them sees what was asked for.
    part.whole, part.targetoptions = whole, whole.targetoptions
    return part


def _defined(module: Any) -> list[Any]:
    return [function for function in module.functions if not function.is_declaration]
