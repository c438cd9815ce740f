"""Numba's `njit` for the functions of this package: compiled code that is self-contained.

Only what is compiled here goes through :class:`SelfContainedCompiler`; functions that others
compile with Numba are left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from dpmc.numerics.content_cache import keep

Function = TypeVar("Function", bound=Callable[..., Any])


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


class SelfContainedCompiler(Compiler):
    """Numba's compiler, with self-contained code as its result."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile one function for the types that the compiler was made for; see Numba."""
        if self.state.library is None:
            made: Any = SelfContained
            library = made(self.state.targetctx.codegen(), func.__qualname__)
            # As Numba does for a library of its own: the code can be written to disk.
            library.enable_object_caching()
            self.state.library = library
        return super().compile_extra(func)  # type: ignore[no-untyped-call]


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
        As Numba takes them. With ``cache=True`` the code is kept on disk, see
        :mod:`dpmc.numerics.content_cache`.
    """
    decorate: Any = numba.njit
    cached = options.pop("cache", False)
    compiled = decorate(*function, pipeline_class=SelfContainedCompiler, **options)
    if not cached:
        return compiled
    return keep(compiled) if function else lambda one: keep(compiled(one))


def _defined(module: Any) -> list[Any]:
    return [function for function in module.functions if not function.is_declaration]
