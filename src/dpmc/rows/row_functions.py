"""Row functions that give a number for every row: an error in a loop would reveal a row."""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from dpmc.numerics.compiled import njit
from dpmc.types import DpmcError, Model

# Modules whose functions do not raise for numbers, compiled.
TRUSTED = ("dpmc", "numba", "numpy", "math", "scipy")


def without_errors(model: Model) -> Model:
    """Model whose row functions divide by zero as NumPy does.

    Numba compiles a function for given types once: one that was called on its own before, or
    whose helpers were, raises ZeroDivisionError from within a loop over rows. Those of the
    user, and the compiled functions that they name, are therefore compiled anew, once each.
    Functions that are attributes of a module stay as they are.
    """
    row = {name: _total(getattr(model, name)) for name in ("log_likelihood", "gradient")}
    slope = None if model.slope is None else _total(model.slope)
    return replace(model, **row, slope=slope)


def refuse_errors(model: Model) -> None:
    """Refuse row functions with a raise or an assert, or that call one by name."""
    for function in filter(None, (model.log_likelihood, model.gradient, model.slope)):
        python = _python(function)
        for part in _parts(python, set()):
            if any(step.opname == "RAISE_VARARGS" for step in dis.get_instructions(part)):
                raise DpmcError(
                    f"model {model.name!r}: `{python.__name__}` must return a number for every "
                    f"row, such as NaN, got one that can raise an error ({part.co_name}, line "
                    f"{part.co_firstlineno})"
                )


def _python(function: Callable[..., Any]) -> Any:
    return getattr(function, "py_func", function)


def _of_user(function: Any) -> bool:
    python = _python(function)
    if not isinstance(python, types.FunctionType):
        return False
    return (python.__module__ or "").partition(".")[0] not in TRUSTED


def _codes(function: types.FunctionType) -> list[types.CodeType]:
    """Code of a function and of those within it."""
    codes = [function.__code__]
    for code in codes:  # grows as it goes
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return codes


def _parts(function: Any, seen: set[int]) -> Iterator[types.CodeType]:
    """Code of a function, of those within it and of those that it calls by name."""
    if not _of_user(function) or id(function) in seen:
        return
    seen.add(id(function))
    codes = _codes(function)
    yield from codes
    names = {name for code in codes for name in code.co_names}
    called = [function.__globals__[name] for name in names if name in function.__globals__]
    called += [cell.cell_contents for cell in function.__closure__ or ()]
    for other in called:
        yield from _parts(_python(other), seen)


@functools.cache
def _total(function: Callable[..., Any]) -> Any:
    if not _of_user(function):
        return function
    python = _python(function)
    names = {name for code in _codes(python) for name in code.co_names}
    known = {name: python.__globals__[name] for name in names if name in python.__globals__}
    anew = {name: _total(value) for name, value in known.items() if _compiled(value, python)}
    cells = tuple(
        types.CellType(_total(value)) if _compiled(value := cell.cell_contents, python) else cell
        for cell in python.__closure__ or ()
    )
    copy = types.FunctionType(
        python.__code__,
        {**python.__globals__, **anew},
        python.__name__,
        python.__defaults__,
        cells or None,
    )
    copy.__module__, copy.__qualname__ = python.__module__, python.__qualname__
    options = dict(getattr(function, "targetoptions", {}))
    known_options = {key: options[key] for key in ("fastmath", "inline") if key in options}
    return njit(copy, **known_options)


def _compiled(value: Any, caller: Any) -> bool:
    """Whether a name stands for another compiled function of the user."""
    return hasattr(value, "py_func") and _python(value) is not caller and _of_user(value)
